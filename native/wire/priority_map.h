// From what a frame carries to its priority 0..7: DSCP or PCP, by a table ("trust" in the words of mlnx_qos and SONiC).
#pragma once

#include <array>
#include <cstdint>

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

}  // namespace weir
