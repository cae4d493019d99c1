// Map from a frame's DSCP or PCP to its priority 0..7, by a table ("trust" in the words of mlnx_qos and SONiC).
#pragma once

#include <array>
#include <cstdint>

#include "base/describe.h"
#include "base/types.h"
#include "wire/packet.h"

namespace weir {

struct PriorityMap {
  enum class Trust : uint8_t { dscp, pcp, port };
  Trust trust = Trust::dscp;
  std::array<uint8_t, 64> dscp{};
  std::array<uint8_t, 8> pcp{0, 1, 2, 3, 4, 5, 6, 7};
  uint8_t fallback = 0;

  uint8_t priority(const PacketMeta& meta) const {
    if (trust == Trust::dscp && meta.ip_version != 0) return dscp[meta.dscp & 63];
    if (trust != Trust::port && meta.tagged) return pcp[meta.pcp()];
    return fallback;
  }
};
constexpr auto words_of(PriorityMap::Trust) { return std::array{"dscp", "pcp", "port"}; }
void describe(auto& v, Of<PriorityMap> auto& map) {
  v.type("NativePriorityMap", "From what a frame carries to its priority.");
  v("trust", map.trust, field::any("What of a frame says its priority."));
  v("dscp", map.dscp, field::priority("By DSCP."));
  v("pcp", map.pcp, field::priority("By PCP."));
  v("fallback", map.fallback, field::priority("Of frames without what is trusted."));
}

}  // namespace weir
