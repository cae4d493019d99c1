// The NIC that frames of fuzz targets come to, and its only peer.
#pragma once

#include <cstdint>

#include "endpoint/nic_parameters.h"
#include "wire/roce_builder.h"

namespace weir::fuzz {

constexpr uint64_t kNicMac = 0x020000000001;
constexpr uint64_t kPeerMac = 0x020000000002;
constexpr uint32_t kPeerQpn = 0x90;
constexpr uint8_t kTrimmedDscp = 40;

inline RocePath path(uint64_t from, uint64_t to) {
  RocePath p;
  p.source_mac = from;
  p.destination_mac = to;
  p.source_ip[0] = p.destination_ip[0] = 10;
  p.source_ip[3] = static_cast<uint8_t>(from);
  p.destination_ip[3] = static_cast<uint8_t>(to);
  p.ecn = 2;
  return p;
}

// Parameters of a NIC with queue pairs of verbs.
inline NicParameters verbs_nic() {
  NicParameters p;
  p.rate = 100'000'000'000;
  p.mac = kNicMac;
  p.trimmed_dscp = kTrimmedDscp;
  p.verbs_queue_pairs = 8;
  p.memory_regions = 16;
  p.addresses.push_back({4, {10, 0, 0, static_cast<uint8_t>(kNicMac)}});
  return p;
}

}  // namespace weir::fuzz
