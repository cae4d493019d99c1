// Which devices of a simulation belong together, and which thread is to look after them.
//
// A partition is what one thread lives through a window with. There are several for each thread, so that work can be dealt out
// evenly; who belongs to which partition never changes, and no result depends on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "simulation/config.h"

namespace weir {

// For each device the number of its partition. Of about equal line rates, `partitions` at most, none without a device; hosts are
// with their switch where they can be.
std::vector<uint32_t> divide(const SimulationConfig& config, uint32_t partitions);
// How many partitions it takes for so many threads.
uint32_t partitions_for(uint32_t threads);

// How the work of a simulation is shared out.
struct Sharing {
  std::vector<uint32_t> division;  // for each device the number of its partition, from 0 without gaps; empty: as divide() says
  // Threads go through windows together where so many events are in one, some 20 us of work: else they would mostly wait.
  uint64_t worthwhile = 150;
};

// Partitions in the order in which threads take them, each its own share first and then what others have not come to.
class Shares {
 public:
  // The first partitions of all are the first thread's.
  Shares(uint32_t partitions, uint32_t threads);

  // Deals anew if the threads would have had too unequal a part of `loads`, by partition, all of which are then forgotten. Not
  // within a round.
  void balance(std::vector<uint64_t>& loads);
  // All may be taken once more by those who know the number of the round. Only when all have been taken and are done.
  void begin_round(uint32_t round);
  // Takes one for `thread`; kNone when all have been taken, or when it is another round by now. What was done before
  // begin_round() is seen by who takes one after it.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t take(uint32_t thread, uint32_t round);

 private:
  struct alignas(64) Share {
    std::atomic<uint64_t> left = 0;  // how many have not been taken, and above that 32 bits of the round's number
    std::vector<uint32_t> partitions;
  };
  std::vector<Share> shares_;  // by thread
};

}  // namespace weir
