// Frames that a host's own stack sends and receives, for tests of NICs that carry it.
#pragma once

#include <cstdint>
#include <vector>

#include "test/reference_checksum.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/offload.h"
#include "wire/udp.h"

namespace weir::test {

struct TcpShape {
  uint64_t to = 0x025745000002;
  uint64_t from = 0x025745000001;
  uint16_t port = 40'000;  // port of the sender
  uint8_t dscp = 0;
  uint32_t payload = 1'000;
  uint32_t sequence = 0;
};

inline constexpr uint32_t kTcpAt = kEthernetHeader + kIpv4Header;

// A TCP segment whose checksum is left to the interface: the field holds the sum of the pseudo header.
inline std::vector<uint8_t> partial_tcp(const TcpShape& shape) {
  std::vector<uint8_t> frame(kTcpAt + kTcpHeader + shape.payload);
  store_ethernet(frame.data(), {.destination_mac = shape.to, .source_mac = shape.from}, kEthertypeIpv4);
  const uint8_t source[4] = {10, 0, 0, static_cast<uint8_t>(shape.from)};
  const uint8_t destination[4] = {10, 0, 0, static_cast<uint8_t>(shape.to)};
  uint8_t* ip = frame.data() + kEthernetHeader;
  store_ipv4(ip, kProtocolTcp, static_cast<uint8_t>(shape.dscp << 2), 64, source, destination);
  ip_set_length(ip, static_cast<uint16_t>(frame.size() - kEthernetHeader));
  uint8_t* tcp = frame.data() + kTcpAt;
  store_be16(tcp, shape.port);
  store_be16(tcp + 2, 5'201);
  store_be32(tcp + 4, shape.sequence);
  tcp[12] = 5 << 4;
  tcp[13] = 0x18;  // PSH, ACK
  for (uint32_t i = 0; i < shape.payload; ++i) tcp[kTcpHeader + i] = static_cast<uint8_t>((shape.sequence + i) * 7);
  store_be16(tcp + kTcpChecksum, reference_sum(pseudo_header(frame, kEthernetHeader, kTcpAt)));
  return frame;
}
inline Offload partial_offload(uint16_t segment = 0) {
  return {.checksum_start = kTcpAt,
          .checksum_offset = kTcpChecksum,
          .segment_size = segment,
          .gso = segment > 0 ? Gso::tcp4 : Gso::none,
          .needs_checksum = true};
}
// Whether the checksum of a TCP segment is finished, and right.
inline bool tcp_checksum_ok(const std::vector<uint8_t>& frame) {
  std::vector<uint8_t> all = pseudo_header(frame, kEthernetHeader, kTcpAt);
  all.insert(all.end(), frame.begin() + kTcpAt, frame.end());
  return reference_sum(all) == 0xffff;
}
inline std::vector<uint8_t> finished_tcp(const TcpShape& shape) {
  std::vector<uint8_t> frame = partial_tcp(shape);
  uint8_t* field = frame.data() + kTcpAt + kTcpChecksum;
  store_be16(field, 0);
  std::vector<uint8_t> all = pseudo_header(frame, kEthernetHeader, kTcpAt);
  all.insert(all.end(), frame.begin() + kTcpAt, frame.end());
  store_be16(field, static_cast<uint16_t>(~reference_sum(all)));
  return frame;
}

}  // namespace weir::test
