// Decides which devices of a simulation belong together, and which thread is to look after them.
//
// A partition is the devices with which one thread lives through a round. There are several for each thread, so that work can be
// dealt out evenly; the partition of a device never changes, and no result depends on it.
//
// How long a round may be is a matter of the links between partitions alone. Where some are longer than others, as those between
// switches are in a building, short ones are kept within partitions if these can still be about equal. A round ends for all at
// one time; so it is no use to know more exactly for each pair of partitions how long they may go without each other: the nearest
// pair has them all wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "simulation/config.h"

namespace weir {

// Least time from a frame's start at one end of a link to its arrival at the other, ns: the shortest frame at their faster rate.
Time lookahead_of(const SimulationConfig& config, const SimulatedLink& link);
// The lookahead of all links, or Schedule::kLongest. Throws NativeError when a link has none.
Time longest_window(const SimulationConfig& config);
// Number of such windows that pass before an event in a partition reaches another; 1 for one partition.
uint64_t windows_of_round(const SimulationConfig& config, const std::vector<uint32_t>& division);

// Returns for each device the number of its partition. Partitions are of about equal line rates, `partitions` at most, none
// without a device; NICs of one machine are in one, hosts with their switch where they can be, and devices with short links
// between them.
std::vector<uint32_t> divide(const SimulationConfig& config, uint32_t partitions);
// Number of partitions for so many threads.
uint32_t partitions_for(uint32_t threads);
// `threads`, or fewer where the hosts cannot send enough in a round for so many.
uint32_t worthwhile_threads(const SimulationConfig& config, uint32_t threads);

// Division of a simulation's work.
struct Sharing {
  // For each device the number of its partition, from 0 without gaps, NICs of one machine in one; empty: as divide() says.
  std::vector<uint32_t> division;
  // Threads go through rounds together where so many events are in one, some 20 us of work: else they would mostly wait.
  uint64_t worthwhile = 150;
};

// Partitions in the order in which threads take them, each its own share first and then what others have not come to.
class Shares {
 public:
  // The first partitions of all are the first thread's.
  Shares(uint32_t partitions, uint32_t threads);

  // Deals anew if the threads would have had too unequal a part of `loads`, by partition, all of which are then forgotten. Must
  // not be called within a round.
  void balance(std::vector<uint64_t>& loads);
  // All may be taken once more by those who know the number of the round. All must have been taken and done before.
  void begin_round(uint32_t round);
  // Takes one for `thread`; kNone when all have been taken, or when it is another round by now. A thread that takes one after
  // begin_round() sees what was done before it.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t take(uint32_t thread, uint32_t round);

 private:
  struct alignas(64) Share {
    std::atomic<uint64_t> left = 0;  // number of those that have not been taken, and above that 32 bits of the round's number
    std::vector<uint32_t> partitions;
  };
  std::vector<Share> shares_;  // shares by thread
};

}  // namespace weir
