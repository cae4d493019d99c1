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

  // Deals anew if the threads would have had too unequal a part of `loads`, by partition, all of which are then forgotten.
  void balance(std::vector<uint64_t>& loads);
  // Nobody has taken anything. Nobody may take anything meanwhile.
  void begin_round();
  // Takes one for `thread`; kNone when all have been taken.
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t take(uint32_t thread);

 private:
  struct alignas(64) Share {
    std::atomic<uint32_t> taken = 0;
    std::vector<uint32_t> partitions;
  };
  std::vector<Share> shares_;  // by thread
};

}  // namespace weir
