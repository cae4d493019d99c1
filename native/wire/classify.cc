#include "wire/classify.h"

#include <utility>

#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/mac_control.h"
#include "wire/qcn.h"
#include "wire/udp.h"

namespace weir {
namespace {

// The finalizer of MurmurHash3: every input bit reaches every output bit.
constexpr uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccd;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53;
  return z ^ (z >> 33);
}

uint32_t hash_ethernet(const PacketMeta& meta) {
  const uint64_t pair = mix(meta.destination_mac) ^ (meta.source_mac << 16 | meta.ethertype);
  return static_cast<uint32_t>(mix(pair) >> 32);
}

// A hash without addresses.
constexpr uint64_t begun(uint8_t protocol, uint32_t ports) { return mix(static_cast<uint64_t>(protocol) << 32 | ports); }

uint32_t hash_ip(const uint8_t* ip, uint8_t protocol, uint32_t ports) {
  uint64_t hash = begun(protocol, ports);
  if (ip[0] >> 4 == 4) {
    hash = mix(hash ^ load_be64(ip + 12));
  } else {
    for (uint32_t offset = 8; offset < kIpv6Header; offset += 8) hash = mix(hash ^ load_be64(ip + offset));
  }
  return static_cast<uint32_t>(hash >> 32);
}

bool has_ports(uint8_t protocol) { return protocol == kProtocolUdp || protocol == kProtocolTcp || protocol == kProtocolSctp; }

Refusal check_ipv4(const uint8_t* ip, uint32_t available) {
  if (available < kIpv4Header) return Refusal::truncated_ip;
  const uint32_t header = ip_header_length(ip);
  const uint32_t total = load_be16(ip + 2);
  if (ip[0] >> 4 != 4 || header < kIpv4Header || total < header) return Refusal::bad_ip_header;
  if (total > available) return Refusal::truncated_ip;
  return internet_checksum(ip, header) == 0 ? Refusal::none : Refusal::bad_ip_checksum;
}

Refusal check_ipv6(const uint8_t* ip, uint32_t available) {
  if (available < kIpv6Header) return Refusal::truncated_ip;
  if (ip[0] >> 4 != 6) return Refusal::bad_ip_header;
  return ip_total_length(ip) > available ? Refusal::truncated_ip : Refusal::none;
}

// `bth` points to `length` bytes of UDP payload.
Refusal classify_roce(const uint8_t* bth, uint32_t length, PacketMeta& meta) {
  if (length < kBthHeader + kIcrc) return Refusal::truncated_bth;
  const Bth header = load_bth(bth);
  if (header.transport_version != 0) return Refusal::bad_transport_version;
  const bool cnp = header.opcode == kOpcodeCnp;
  if (cnp && length < kBthHeader + kCnpReserved + kIcrc) return Refusal::truncated_bth;
  const uint32_t around = kBthHeader + extension_length(header.opcode) + header.pad_count + kIcrc;
  if (length < around) return Refusal::bad_transport_length;

  meta.kind = cnp ? FrameKind::cnp : FrameKind::roce;
  meta.opcode = header.opcode;
  meta.pad_count = header.pad_count;
  meta.destination_qp = header.destination_qp;
  meta.psn = header.psn;
  meta.ack_request = header.ack_request;
  meta.becn = header.becn;
  meta.payload_length = cnp ? uint16_t{0} : static_cast<uint16_t>(length - around);
  return Refusal::none;
}

Refusal classify_ip(const uint8_t* data, uint32_t length, uint32_t l3, PacketMeta& meta) {
  const uint8_t* ip = data + l3;
  const bool ipv4 = meta.ethertype == kEthertypeIpv4;
  const Refusal refusal = ipv4 ? check_ipv4(ip, length - l3) : check_ipv6(ip, length - l3);
  if (refusal != Refusal::none) {
    meta.flow_hash = hash_ethernet(meta);
    return refusal;
  }
  const uint8_t traffic_class = ipv4 ? ip[1] : static_cast<uint8_t>(load_be16(ip) >> 4);
  const uint8_t protocol = ipv4 ? ip[9] : ip[6];
  const bool fragment = ipv4 && (load_be16(ip + 6) & 0x3fff) != 0;  // MF or an offset
  meta.l3_offset = static_cast<uint16_t>(l3);
  meta.ip_version = ipv4 ? 4 : 6;
  meta.dscp = traffic_class >> 2;
  meta.ecn = traffic_class & 3;

  const uint32_t header = ip_header_length(ip);
  const uint8_t* l4 = ip + header;
  const uint32_t l4_length = ip_total_length(ip) - header;
  meta.flow_hash = hash_ip(ip, protocol, has_ports(protocol) && !fragment && l4_length >= 4 ? load_be32(l4) : 0);

  if (protocol != kProtocolUdp) return Refusal::none;
  if (fragment) return Refusal::ip_fragment;
  if (l4_length < kUdpHeader) return Refusal::truncated_udp;
  const uint32_t udp_length = load_be16(l4 + 4);
  const bool roce = load_be16(l4 + 2) == kRocePort;
  if (udp_length < kUdpHeader || udp_length > l4_length || (roce && udp_length != l4_length)) return Refusal::bad_udp_length;
  meta.udp_source_port = load_be16(l4);
  if (!roce) {
    if (is_cnm_datagram(l4, udp_length)) meta.kind = FrameKind::cnm;
    return Refusal::none;
  }
  const Refusal transport = classify_roce(l4 + kUdpHeader, udp_length - kUdpHeader, meta);
  if (transport == Refusal::none) meta.bth_offset = static_cast<uint16_t>(l3 + header + kUdpHeader);
  return transport;
}

Refusal classify_cnm(const uint8_t* pdu, uint32_t length, PacketMeta& meta) {
  CongestionNotification cnm;
  const Refusal refusal = parse_cnm_pdu(pdu, length, cnm);
  meta.flow_hash = hash_ethernet(meta);
  if (refusal == Refusal::none) meta.kind = FrameKind::cnm;
  return refusal;
}

Refusal classify_mac_control(const uint8_t* data, uint32_t length, PacketMeta& meta) {
  meta.kind = FrameKind::mac_control;
  meta.flow_hash = hash_ethernet(meta);
  if (meta.tagged || meta.cn_tagged) return Refusal::none;
  if (length < kEthernetHeader + 2) return Refusal::truncated_mac_control;
  const uint16_t opcode = load_be16(data + kEthernetHeader);
  const bool pause = opcode == kMacControlPause;
  if (!pause && opcode != kMacControlPfc) return Refusal::none;
  if (length < (pause ? kPauseLength : kPfcLength)) return Refusal::truncated_mac_control;
  meta.kind = pause ? FrameKind::pause : FrameKind::pfc;
  return Refusal::none;
}

// `l3` is where the payload starts, two bytes behind its ethertype, which `data` holds. The MAC addresses and tags are known.
Refusal classify_payload(const uint8_t* data, uint32_t length, uint32_t l3, PacketMeta& meta) {
  meta.ethertype = load_be16(data + l3 - 2);
  switch (meta.ethertype) {
    case kEthertypeIpv4:
    case kEthertypeIpv6:
      return classify_ip(data, length, l3, meta);
    case kEthertypeMacControl:
      return classify_mac_control(data, length, meta);
    case kEthertypeCnm:
      return classify_cnm(data + l3, length - l3, meta);
    default:
      meta.flow_hash = hash_ethernet(meta);
      return Refusal::none;
  }
}

// `offset` is behind the MAC addresses and any 802.1Q tag; `data` holds two bytes more.
Refusal classify_behind_vlan(const uint8_t* data, uint32_t length, uint32_t offset, PacketMeta& meta) {
  meta.destination_mac = load_be48(data);
  meta.source_mac = load_be48(data + 6);
  if (load_be16(data + offset) != kEthertypeCnTag) return classify_payload(data, length, offset + 2, meta);
  if (length < offset + kCnTag + 2) {
    classify_payload(data, length, offset + 2, meta);
    return Refusal::truncated_cn_tag;
  }
  meta.cn_tagged = true;
  meta.cn_flow = load_be16(data + offset + 2);
  return classify_payload(data, length, offset + kCnTag + 2, meta);
}

}  // namespace

Refusal classify(const uint8_t* data, uint32_t length, PacketMeta& meta) {
  meta = {};
  if (length < kEthernetHeader) return Refusal::runt;
  if (load_be16(data + 12) != kEthertypeVlan) return classify_behind_vlan(data, length, 12, meta);
  if (length < kEthernetHeader + kVlanTag) {
    classify_behind_vlan(data, length, 12, meta);
    return Refusal::truncated_vlan;
  }
  meta.tagged = true;
  meta.vlan_tci = load_be16(data + 14);
  return classify_behind_vlan(data, length, 12 + kVlanTag, meta);
}

Refusal classify(const uint8_t* data, uint32_t length, PacketMeta& meta, uint16_t vlan_tci) {
  meta = {};
  if (length < kEthernetHeader) return Refusal::runt;
  meta.tagged = true;
  meta.vlan_tci = vlan_tci;
  return classify_behind_vlan(data, length, 12, meta);
}

Refusal classify_next_slice(const uint8_t* data, uint32_t length, PacketMeta& meta) {
  const uint16_t bth_offset = std::exchange(meta.bth_offset, uint16_t{0});
  meta.kind = FrameKind::other;
  meta.opcode = meta.pad_count = 0;
  meta.destination_qp = meta.psn = 0;
  meta.ack_request = meta.becn = false;
  meta.payload_length = 0;
  const Refusal refusal = classify_roce(data + bth_offset, length - bth_offset, meta);
  if (refusal == Refusal::none) meta.bth_offset = bth_offset;
  return refusal;
}

void take_source_port(const uint8_t* data, PacketMeta& meta) {
  const uint8_t* const udp = data + meta.bth_offset - kUdpHeader;
  meta.udp_source_port = load_be16(udp);
  meta.flow_hash = hash_ip(data + meta.l3_offset, kProtocolUdp, load_be32(udp));
}

SampledFlow sampled_flow(std::span<const uint8_t> msdu, uint64_t destination_mac, uint64_t source_mac) {
  using Kind = SampledFlow::Kind;
  if (msdu.size() < 2) return {};
  PacketMeta meta{.destination_mac = destination_mac, .source_mac = source_mac, .ethertype = load_be16(msdu.data())};
  const bool ipv4 = meta.ethertype == kEthertypeIpv4;
  if (!ipv4 && meta.ethertype != kEthertypeIpv6) return {Kind::other, hash_ethernet(meta)};
  const uint8_t* ip = msdu.data() + 2;
  const size_t length = msdu.size() - 2;
  if (length < (ipv4 ? kIpv4Header : kIpv6Header)) return {};
  const uint32_t header = ip_header_length(ip);
  if (ip[0] >> 4 != (ipv4 ? 4 : 6) || header < kIpv4Header) return {Kind::other, hash_ethernet(meta)};
  const uint8_t protocol = ip[ipv4 ? 9 : 6];
  const bool fragment = ipv4 && (load_be16(ip + 6) & 0x3fff) != 0;
  if (!has_ports(protocol) || fragment || ip_total_length(ip) < header + 4) return {Kind::other, hash_ip(ip, protocol, 0)};
  if (length < header + 4) return {};
  if (protocol == kProtocolUdp && load_be16(ip + header + 2) == kRocePort) return {Kind::roce};
  return {Kind::other, hash_ip(ip, protocol, load_be32(ip + header))};
}

uint32_t roce_flow_hash(const uint8_t* addresses, uint16_t source_port) {
  return static_cast<uint32_t>(mix(begun(kProtocolUdp, uint32_t{source_port} << 16 | kRocePort) ^ load_be64(addresses)) >> 32);
}

}  // namespace weir
