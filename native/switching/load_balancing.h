// Chooses among several next hops that are equally near.
//
//   ecmp      all frames of a flow the same, by a hash of the flow (RFC 2992; a modulo)
//   spray     each frame another, at random (Dixit et al., "On the impact of packet spraying", INFOCOM 2013)
//   flowlet   as long as a flow's frames follow each other within a gap, the same; after a longer pause another, at random
//             (Vanini et al., "Let it flow", NSDI 2017). Flows that share one of kFlowlets places are one.
//   adaptive  each frame that with the shortest queue of the frame's priority; of equal ones that whose link falls free first; of
//             equal ones again one at random. DRILL (Ghorbani et al., SIGCOMM 2017) which looks at all queues, not at a few.
//
// A flow that is not kept to one way is reordered. Draws come from a stream of the switch, keyed by the seed of the hash.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.h"
#include "base/types.h"

namespace weir {

enum class LoadBalancing : uint8_t { ecmp, spray, flowlet, adaptive };
constexpr auto words_of(LoadBalancing) { return std::array{"ecmp", "spray", "flowlet", "adaptive"}; }

// Load before a frame at a port.
struct PortLoad {
  int64_t bytes = 0;  // bytes in the queue that it would join
  Time free_at = 0;   // when the frame that is on the link is over
  auto operator<=>(const PortLoad&) const = default;
};

class LoadBalancer {
 public:
  static constexpr size_t kFlowlets = 1 << 13;

  // `seed` and `component` key the hash and the draws.
  LoadBalancer(uint64_t seed, uint64_t component) : hash_seed_(Random(seed, component, 1).next()), random_(seed, component, 2) {}

  // `gap`: ns without a frame after which a flowlet is over. Flowlets that are known stay.
  void configure(LoadBalancing how, Time gap) {
    how_ = how;
    gap_ = gap;
    if (how == LoadBalancing::flowlet) flowlets_.resize(kFlowlets);
  }

  // Returns one of `ways`, of which there are two at least. `load(way)`: the PortLoad of its port.
  template <class Load>
  size_t choose(Time now, uint32_t flow_hash, size_t ways, Load load) {
    if (how_ == LoadBalancing::ecmp) return Random::mix(flow_hash ^ hash_seed_) % ways;
    if (how_ == LoadBalancing::adaptive) return least(ways, load);
    return how_ == LoadBalancing::spray ? below(ways) : flowlet(now, flow_hash, ways);
  }

 private:
  struct Flowlet {
    Time last = std::numeric_limits<Time>::min() / 2;
    uint64_t choice = 0;
  };

  uint64_t below(size_t limit) { return random_.next() % limit; }

  uint64_t flowlet(Time now, uint32_t flow_hash, size_t count) {
    Flowlet& own = flowlets_[Random::mix(flow_hash ^ hash_seed_) % kFlowlets];
    // Fewer ways than when it chose: routes have changed, or another flow to elsewhere shares its place.
    if (now - own.last > gap_ || own.choice >= count) own.choice = below(count);
    own.last = now;
    return own.choice;
  }

  template <class Load>
  __attribute__((noinline)) size_t least(size_t ways, Load load) {
    size_t chosen = 0;
    PortLoad lowest = load(chosen);
    size_t alike = 1;
    for (size_t way = 1; way < ways; ++way) {
      const PortLoad own = load(way);
      if (own > lowest) continue;
      alike = own == lowest ? alike + 1 : 1;
      lowest = own;
      if (alike == 1 || below(alike) == 0) chosen = way;  // each of those alike with the same probability
    }
    return chosen;
  }

  LoadBalancing how_ = LoadBalancing::ecmp;
  Time gap_ = 0;
  uint64_t hash_seed_;
  Random random_;
  std::vector<Flowlet> flowlets_;
};

}  // namespace weir
