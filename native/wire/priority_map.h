// From what a frame carries to its priority 0..7: DSCP or PCP, by a table ("trust" in the words of mlnx_qos and SONiC).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/native_error.h"
#include "base/types.h"
#include "wire/packet.h"

namespace weir {

struct PriorityMap {
  enum class Trust : uint8_t { dscp, pcp, port };
  Trust trust = Trust::dscp;
  std::array<uint8_t, 64> dscp{};  // DSCP -> priority
  std::array<uint8_t, 8> pcp{0, 1, 2, 3, 4, 5, 6, 7};
  uint8_t fallback = 0;  // frames without what is trusted

  uint8_t priority(const PacketMeta& meta) const {
    if (trust == Trust::dscp && meta.ip_version != 0) return dscp[meta.dscp & 63];
    if (trust != Trust::port && meta.tagged) return pcp[meta.pcp()];
    return fallback;
  }
};

// Throws NativeError INVALID_CONFIG.
inline void check(const PriorityMap& map) {
  const auto is_priority = [](uint8_t value) { return value < kPriorities; };
  require(std::ranges::all_of(map.dscp, is_priority) && std::ranges::all_of(map.pcp, is_priority) && is_priority(map.fallback),
          "priority map", "priorities are 0 to 7");
}

}  // namespace weir
