// The ways of a message graph's flows, as far as it matters which messages meet, and which ways are alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "simulation/config.h"

namespace weir {

// A direction of a link: 2 x link, and 1 more for what its `to` sends.
struct MessageHop {
  uint32_t direction;
  Time after;  // from when the last byte of a message has left this link until it has come
};

class MessageWays {
 public:
  // Throws NativeError INVALID_CONFIG as FlowWays does.
  explicit MessageWays(const SimulationConfig& config);

  // The last link first.
  std::span<const MessageHop> hops(uint32_t flow) const { return std::span(hops_).subspan(ways_[flow].first, ways_[flow].count); }
  // Ways of one kind have links of the same rates and delays, in the same order.
  uint32_t kind(uint32_t flow) const { return ways_[flow].kind; }
  // At the rate of the slowest link, with headers; 0: none has a rate.
  double ns_per_byte(uint32_t flow) const { return ways_[flow].ns_per_byte; }

 private:
  struct Way {
    uint32_t first;
    uint32_t count;
    uint32_t kind;
    double ns_per_byte;
  };

  std::vector<MessageHop> hops_;
  std::vector<Way> ways_;
};

// Why phases of a network's message graphs do not say all of what happens to them; empty: they do.
std::string phases_refusal(const SimulationConfig& config);

}  // namespace weir
