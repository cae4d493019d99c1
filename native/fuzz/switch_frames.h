// Frames that the fuzzer of the switch sends: with some sense in them, CNMs of elsewhere, and work that senders leave undone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fuzz/input.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/neighbour.h"
#include "wire/offload.h"
#include "wire/packet_pool.h"
#include "wire/qcn.h"
#include "wire/udp.h"

namespace weir::fuzz {

inline constexpr uint16_t kPorts = 4;
inline constexpr uint64_t kStation = 0x020000000000;  // first of a row, one behind each port
inline constexpr uint64_t kPortMac = 0x025753000000;  // first of a row
inline constexpr uint64_t kRouterMac = kStation + 5;
inline constexpr uint16_t kRouterVlan = 7;

struct Frame {
  std::vector<uint8_t> bytes;
  bool is_ipv6 = false;
  uint8_t protocol = 0;  // 0: it has no transport
  uint16_t transport = 0;

  void put16(uint64_t value) {
    bytes.push_back(static_cast<uint8_t>(value >> 8));
    bytes.push_back(static_cast<uint8_t>(value));
  }
  void put48(uint64_t value) {
    for (int shift = 32; shift >= 0; shift -= 16) put16(value >> shift);
  }
};

// Address of a station, of the router, beyond it, or of no one: 10.0.LINK.HOST and others, fd00:LINK::HOST and others.
inline IpAddress address_of(uint8_t which, uint8_t version) {
  IpAddress address{.version = version};
  const auto link = static_cast<uint8_t>(which & 3);
  const auto host = static_cast<uint8_t>(1 + (which >> 2 & 15));
  const bool beyond = which & 64, odd = which & 128;
  uint8_t* const bytes = address.bytes;
  if (version == 4) {
    bytes[0] = odd ? static_cast<uint8_t>(which << 1) : 10;
    bytes[1] = beyond ? 9 : 0;
    bytes[2] = link;
    bytes[3] = host == 16 ? 255 : host;
  } else {
    bytes[0] = odd ? 0xff : 0xfd;
    bytes[1] = odd ? 2 : 0;
    bytes[2] = beyond ? 9 : 0;
    bytes[3] = link;
    bytes[15] = host;
  }
  return address;
}

inline uint64_t destination_of(Input& in) {
  const uint8_t to = in.byte();
  if (to == 0x7f) return 0x0180c2000000 | (in.byte() & 0xf);
  return to & 0x80 ? 0xffffffffffff : kStation + to % 6;
}

inline uint32_t length_of(Input& in, uint8_t kind) {
  switch (kind & 3) {
    case 0:
      return 60 + in.byte();
    case 1:
      return 60 + 6 * in.byte();
    case 2:
      return static_cast<uint32_t>(kEthernetHeader + in.number(2));
    default:
      return kEthernetHeader + in.byte() % 80;
  }
}

// Writes from `l3` to the end of the frame, if there is room for it.
inline void write_datagram(Input& in, Frame& frame, size_t l3) {
  const uint8_t style = in.byte();
  const uint8_t traffic_class = in.byte();
  const size_t header = frame.is_ipv6 ? kIpv6Header : kIpv4Header;
  if (frame.bytes.size() < l3 + header + kTcpHeader) return;
  const size_t length = frame.bytes.size() - l3;
  frame.protocol = style & 1 ? kProtocolTcp : kProtocolUdp;
  frame.transport = static_cast<uint16_t>(l3 + header);
  uint8_t* const ip = frame.bytes.data() + l3;
  uint8_t* const transport = ip + header;
  const uint8_t version = frame.is_ipv6 ? 6 : 4;
  uint8_t* const addresses = ip + ip_source_offset(version);
  std::memcpy(addresses, address_of(in.byte(), version).bytes, ip_address_length(version));
  std::memcpy(addresses + ip_address_length(version), address_of(in.byte(), version).bytes, ip_address_length(version));
  ip[frame.is_ipv6 ? 7 : 8] = static_cast<uint8_t>(style >> 2);  // time to live, 0 and 1 as well
  if (frame.is_ipv6) {
    ip[0] = static_cast<uint8_t>(0x60 | traffic_class >> 4);
    ip[1] = static_cast<uint8_t>(traffic_class << 4);
    store_be16(ip + 4, static_cast<uint16_t>(length - header));
    ip[6] = frame.protocol;
  } else {
    ip[0] = 0x45;
    ip[1] = traffic_class;
    store_be16(ip + 2, static_cast<uint16_t>(length));
    ip[9] = frame.protocol;
    store_be16(ip + 10, internet_checksum(ip, kIpv4Header));
  }
  if (frame.protocol == kProtocolTcp) {
    transport[12] = 0x50;  // offset of a header without options
  } else {
    store_be16(transport + 2, style & 2 ? kRocePort : 5);
    store_be16(transport + 4, static_cast<uint16_t>(length - header));
  }
}

inline void damage(Input& in, std::vector<uint8_t>& bytes) {
  for (int changes = in.byte() % 8; changes > 4; --changes) {
    uint8_t& byte = bytes[in.number(2) % bytes.size()];
    byte = static_cast<uint8_t>(byte ^ in.byte());
  }
}

// Frames have some sense in them: the addresses are ones that the switch may know, headers are mostly whole.
inline Frame make_frame(Input& in, uint16_t port) {
  const uint8_t shape = in.byte();
  const uint8_t type = in.byte() % 8;
  Frame frame;
  frame.is_ipv6 = type & 1;
  frame.put48(destination_of(in));
  frame.put48(kStation + (shape & 0x80 ? in.byte() % 40 : port));
  if (shape & 4) {
    frame.put16(kEthertypeVlan);
    const uint64_t tci = in.number(2);
    frame.put16(shape & 0x10 ? (tci & 0xe000) | (kRouterVlan + (tci & 1)) : tci);  // VLANs that ports are in
  }
  if (shape & 8) {
    frame.put16(kEthertypeCnTag);
    frame.put16(in.number(2));
  }
  frame.put16(type == 7 ? kEthertypeMacControl : type == 6 ? in.number(2) : frame.is_ipv6 ? kEthertypeIpv6 : kEthertypeIpv4);
  const size_t l3 = frame.bytes.size();
  frame.bytes.resize(length_of(in, shape));
  if (type < 6) write_datagram(in, frame, l3);
  if (type == 7 && l3 < frame.bytes.size()) {
    std::ranges::copy(in.take(std::min<size_t>(20, frame.bytes.size() - l3)), frame.bytes.begin() + static_cast<ptrdiff_t>(l3));
  }
  damage(in, frame.bytes);
  return frame;
}

// Asks for an address, or tells its own.
inline std::vector<uint8_t> make_neighbour_message(Input& in, uint16_t port) {
  const uint8_t style = in.byte();
  const uint8_t version = style & 1 ? 6 : 4;
  LinkHeader link{.source_mac = kStation + port};
  if (style & 2) {
    link.tagged = true;
    link.vlan_tci = style & 4 ? kRouterVlan : in.number(2);
  }
  const IpAddress own = address_of(in.byte(), version), other = address_of(in.byte(), version);
  if (style & 24) link.destination_mac = kRouterMac;
  std::vector<uint8_t> bytes(kNeighbourFrame);
  bytes.resize(style & 16 ? build_neighbour_answer(bytes.data(), link, own, other)
                          : build_neighbour_question(bytes.data(), link, own, other));
  damage(in, bytes);
  return bytes;
}

// Makes a CNM a datagram, if what it is about is an IP packet.
inline void wrap(Input& in, std::vector<uint8_t>& cnm) {
  PacketPool pool(1, kTelemetryStride);
  const PacketId id = pool.allocate();
  pool[id].reset();
  pool[id].length = static_cast<uint32_t>(cnm.size());
  std::ranges::copy(cnm, pool.data(id));
  const uint8_t version = in.byte() & 1 ? 6 : 4;
  if (!wrap_cnm(pool, id, address_of(in.byte(), version), in.byte() & 63, in.byte())) return;
  cnm.assign(pool.data(id), pool.data(id) + pool[id].length);
}

// Comes from a congestion point elsewhere, about a frame that came by here or not.
inline std::vector<uint8_t> make_cnm(Input& in) {
  const uint8_t style = in.byte();
  CongestionNotification notification;
  notification.quantized_feedback = in.byte() % 64;
  notification.priority = style % kPriorities;
  notification.destination_mac = kStation + in.byte() % kPorts;
  notification.msdu = in.take(style & 8 ? kCnmMaxMsdu : 0);
  LinkHeader envelope;
  envelope.destination_mac = destination_of(in);
  envelope.source_mac = kPortMac + kPorts;
  envelope.tagged = style & 16;
  envelope.vlan_tci = static_cast<uint16_t>(style & 16 ? in.number(2) : 0);
  if (style & 32) envelope.cn_flow = 1;
  std::vector<uint8_t> bytes(kCnmMaxLength);
  bytes.resize(build_cnm(bytes.data(), envelope, notification));
  if (style & 64) wrap(in, bytes);
  damage(in, bytes);
  return bytes;
}

// Names the work that a sender has left undone; it need not fit the frame.
inline Offload make_offload(Input& in, const Frame& frame) {
  constexpr uint8_t kGsoTypes[] = {0, 1, 4, 5, 3};
  const uint8_t style = in.byte();
  const bool udp = frame.protocol == kProtocolUdp;
  const uint8_t fitting = udp ? 5 : frame.is_ipv6 ? 4 : 1;
  uint8_t header[kOffloadHeader] = {};
  header[0] = style & 3 ? 1 : 0;
  header[1] = style & 4 ? fitting : kGsoTypes[(style >> 5) % 5];
  const uint16_t segment = style & 8 ? static_cast<uint16_t>(in.number(2)) : 200;
  const uint16_t start = (style & 0x30) == 0x30 ? static_cast<uint16_t>(in.number(2)) : frame.transport;
  const uint16_t offset = udp ? kUdpChecksum : kTcpChecksum;
  std::memcpy(header + 4, &segment, sizeof segment);
  std::memcpy(header + 6, &start, sizeof start);
  std::memcpy(header + 8, &offset, sizeof offset);
  return load_offload(header);
}

}  // namespace weir::fuzz
