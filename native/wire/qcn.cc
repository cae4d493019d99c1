#include "wire/qcn.h"

#include <algorithm>
#include <cstring>

#include "base/types.h"
#include "wire/bytes.h"
#include "wire/tags.h"

namespace weir {
namespace {

int64_t load_quantity(const uint8_t* field) { return kCnmUnit * static_cast<int16_t>(load_be16(field)); }
void store_quantity(uint8_t* field, int64_t octets) {
  store_be16(field, static_cast<uint16_t>(std::clamp<int64_t>(octets / kCnmUnit, INT16_MIN, INT16_MAX)));
}

// Offset of the ethertype behind the tags; `length` or more if it is not there.
uint32_t ethertype_offset(const uint8_t* frame, uint32_t length) {
  uint32_t offset = kTagsOffset;
  if (offset + 2 <= length && load_be16(frame + offset) == kEthertypeVlan) offset += kVlanTag;
  if (offset + 2 <= length && load_be16(frame + offset) == kEthertypeCnTag) offset += kCnTag;
  return offset + 2 <= length ? offset : length;
}

uint32_t cn_tag_offset(const PacketMeta& meta) { return kTagsOffset + (meta.tagged ? kVlanTag : 0); }

}  // namespace

Refusal parse_cnm_pdu(const uint8_t* pdu, uint32_t length, CongestionNotification& cnm) {
  if (length < kCnmPdu) return Refusal::truncated_cnm;
  if (pdu[0] >> 4 != 0) return Refusal::bad_cnm_version;
  const uint32_t msdu = load_be16(pdu + 22);
  if (msdu > kCnmMaxMsdu || msdu > length - kCnmPdu) return Refusal::bad_cnm_length;
  cnm.quantized_feedback = pdu[1] & kCnmMaxQuantizedFeedback;
  cnm.priority = pdu[14] >> 5;
  cnm.congestion_point = load_be64(pdu + 2);
  cnm.queue_offset = load_quantity(pdu + 10);
  cnm.queue_delta = load_quantity(pdu + 12);
  cnm.destination_mac = load_be48(pdu + 16);
  cnm.msdu = {pdu + kCnmPdu, msdu};
  return Refusal::none;
}

bool parse_cnm(const uint8_t* frame, uint32_t length, CongestionNotification& cnm) {
  const uint32_t offset = ethertype_offset(frame, length);
  if (offset == length || load_be16(frame + offset) != kEthertypeCnm) return false;
  return parse_cnm_pdu(frame + offset + 2, length - offset - 2, cnm) == Refusal::none;
}

uint32_t build_cnm(uint8_t* out, const LinkHeader& header, const CongestionNotification& cnm) {
  const uint32_t offset = store_ethernet(out, header, kEthertypeCnm);
  uint8_t* pdu = out + offset;
  const auto msdu = static_cast<uint16_t>(std::min<size_t>(cnm.msdu.size(), kCnmMaxMsdu));
  store_be16(pdu, std::min(cnm.quantized_feedback, kCnmMaxQuantizedFeedback));
  store_be64(pdu + 2, cnm.congestion_point);
  store_quantity(pdu + 10, cnm.queue_offset);
  store_quantity(pdu + 12, cnm.queue_delta);
  store_be16(pdu + 14, static_cast<uint16_t>((cnm.priority & 7) << 13));
  store_be48(pdu + 16, cnm.destination_mac);
  store_be16(pdu + 22, msdu);
  if (msdu > 0) std::memcpy(pdu + kCnmPdu, cnm.msdu.data(), msdu);
  const uint32_t length = offset + kCnmPdu + msdu;
  if (length >= kMinimumFrame) return length;
  std::memset(out + length, 0, kMinimumFrame - length);
  return kMinimumFrame;
}

bool is_cnm_datagram(const uint8_t* udp, uint32_t length) {
  if (length < kUdpHeader + kCnmPdu || load_be16(udp + 2) != kCnmUdpPort) return false;
  const uint32_t stated = load_be16(udp + 4);
  CongestionNotification cnm;
  return stated >= kUdpHeader && stated <= length && parse_cnm_pdu(udp + kUdpHeader, stated - kUdpHeader, cnm) == Refusal::none;
}

bool is_to_cnm_port(const uint8_t* frame, const PacketMeta& meta) {
  if (meta.ip_version == 0 || meta.l3_offset == 0) return false;
  const uint8_t* const ip = frame + meta.l3_offset;
  const bool ipv4 = meta.ip_version == 4;
  if (ip[ipv4 ? 9 : 6] != kProtocolUdp || (ipv4 && (load_be16(ip + 6) & 0x3fff) != 0)) return false;
  const uint32_t header = ip_header_length(ip);
  return ip_total_length(ip) >= header + kUdpHeader && load_be16(ip + header + 2) == kCnmUdpPort;
}

Refusal parse_cnm_datagram(const uint8_t* frame, const PacketMeta& meta, CongestionNotification& cnm) {
  const uint8_t* const ip = frame + meta.l3_offset;
  const uint32_t header = ip_header_length(ip);
  const uint8_t* const udp = ip + header;
  const uint32_t length = load_be16(udp + 4);
  if (length < kUdpHeader || length > ip_total_length(ip) - header) return Refusal::bad_udp_length;
  if (load_be16(udp + 6) != 0 && transport_checksum(ip, kProtocolUdp, udp, length) != 0) return Refusal::bad_cnm_length;
  return parse_cnm_pdu(udp + kUdpHeader, length - kUdpHeader, cnm);
}

std::optional<IpAddress> sampled_source(std::span<const uint8_t> msdu) {
  if (msdu.size() < 2 + kIpv4Header) return std::nullopt;
  const uint16_t ethertype = load_be16(msdu.data());
  const uint8_t* const ip = msdu.data() + 2;
  IpAddress source;
  if (ethertype == kEthertypeIpv6 && msdu.size() >= 2 + kIpv6Header && ip[0] >> 4 == 6) {
    source.version = 6;
  } else if (ethertype != kEthertypeIpv4 || ip[0] >> 4 != 4) {
    return std::nullopt;
  }
  std::memcpy(source.bytes, ip + ip_source_offset(source.version), ip_address_length(source.version));
  return source;
}

bool wrap_cnm(PacketPool& pool, PacketId id, const IpAddress& own, uint8_t dscp, uint8_t ttl) {
  Packet& packet = pool[id];
  uint8_t* const frame = pool.data(id);
  const uint32_t ethertype = ethertype_offset(frame, packet.length);
  CongestionNotification cnm;
  if (!parse_cnm(frame, packet.length, cnm)) return false;
  const std::optional<IpAddress> source = sampled_source(cnm.msdu);
  const bool ipv6 = own.version == 6;
  const uint32_t headers = kEthernetHeader + (ipv6 ? kIpv6Header : kIpv4Header);
  const auto pdu = static_cast<uint32_t>(kCnmPdu + cnm.msdu.size());
  const uint32_t whole = headers + kUdpHeader + pdu;
  if (!source || source->version != own.version || whole + kVlanTag > pool.room(id)) return false;
  std::memmove(frame + headers + kUdpHeader, frame + ethertype + 2, pdu);
  store_be16(frame + kTagsOffset, ipv6 ? kEthertypeIpv6 : kEthertypeIpv4);
  uint8_t* const ip = frame + kEthernetHeader;
  uint8_t* const udp = frame + headers;
  (ipv6 ? store_ipv6 : store_ipv4)(ip, kProtocolUdp, static_cast<uint8_t>(dscp << 2), ttl, own.bytes, source->bytes);
  ip_set_length(ip, static_cast<uint16_t>(whole - kEthernetHeader));
  store_udp(udp, kCnmUdpPort, kCnmUdpPort);
  store_be16(udp + 4, static_cast<uint16_t>(kUdpHeader + pdu));
  const uint16_t sum = transport_checksum(ip, kProtocolUdp, udp, kUdpHeader + pdu);
  store_be16(udp + 6, sum != 0 ? sum : uint16_t{0xffff});
  packet.length = whole;
  classify(frame, whole, packet.meta);
  return true;
}

std::span<const uint8_t> msdu_of(const PacketPool& pool, PacketId id, uint32_t most) {
  const PacketMeta& meta = pool[id].meta;
  const uint32_t present = pool.present(id);
  const uint32_t start = std::min(present, cn_tag_offset(meta) + (meta.cn_tagged ? kCnTag : 0));
  return {pool.data(id) + start, std::min(most, present - start)};
}

bool insert_cn_tag(PacketPool& pool, PacketId id, uint16_t flow) {
  Packet& packet = pool[id];
  if (packet.meta.cn_tagged || (pool.has_payload() && packet.length + kCnTag > pool.room(id))) return false;
  const uint32_t offset = cn_tag_offset(packet.meta);
  shift_bytes(pool, id, offset, kCnTag);
  if (offset + kCnTag <= pool.room(id)) {
    store_be16(pool.data(id) + offset, kEthertypeCnTag);
    store_be16(pool.data(id) + offset + 2, flow);
  }
  packet.meta.cn_tagged = true;
  packet.meta.cn_flow = flow;
  return true;
}

void remove_cn_tag(PacketPool& pool, PacketId id) {
  Packet& packet = pool[id];
  if (!packet.meta.cn_tagged) return;
  const uint32_t offset = cn_tag_offset(packet.meta);
  shift_bytes(pool, id, offset, -static_cast<int32_t>(kCnTag));
  packet.meta.cn_tagged = false;
  packet.meta.cn_flow = 0;
}

}  // namespace weir
