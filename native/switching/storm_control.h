// Storm control: how much of what comes in by a port may be flooded, by kind. A policer, as in SONiC (`config interface
// storm-control`) and SAI (SAI_PORT_ATTR_BROADCAST_STORM_CONTROL_POLICER_ID and its like): single rate, two colours, red is
// dropped.
//
//   broadcast        to ff:ff:ff:ff:ff:ff
//   unknown unicast  to an address that the forwarding table does not have
//   multicast        to any other group address: none is known here, so all of them are flooded (SONiC: unknown-multicast)
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.h"
#include "wire/ethernet.h"

namespace weir {

enum class Storm : uint8_t { broadcast, unknown_unicast, multicast };
using StormRates = std::array<Rate, 3>;  // bit/s of the link, by Storm; 0: no limit

inline Storm storm_of(uint64_t destination_mac) {
  if (destination_mac == 0xffff'ffff'ffff) return Storm::broadcast;
  return is_group(destination_mac) ? Storm::multicast : Storm::unknown_unicast;
}

class StormControl {
 public:
  // Frames that the rate brings in this time may come at once, and a frame more.
  static constexpr Time kBurst = 50 * kMillisecond;

  void configure(const StormRates& rates) { rates_ = rates; }
  // Takes the frame into account unless it is beyond the limit.
  bool exceeded(Time now, Storm kind, uint32_t wire_bytes) {
    const auto i = static_cast<size_t>(kind);
    if (rates_[i] == 0) return false;
    if (used_[i] - now > kBurst) return true;
    const uint64_t cost = uint64_t{wire_bytes} * 8 * kSecond / static_cast<uint64_t>(rates_[i]);
    used_[i] = std::max(used_[i], now) + static_cast<Time>(cost);
    return false;
  }

 private:
  StormRates rates_{};
  std::array<Time, 3> used_{};  // up to when the rate is used up
};

}  // namespace weir
