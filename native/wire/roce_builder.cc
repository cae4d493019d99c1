#include "wire/roce_builder.h"

#include <cstring>

#include "wire/checksum.h"
#include "wire/icrc.h"
#include "wire/telemetry.h"

namespace weir {

RoceTemplate::RoceTemplate(const RocePath& path) {
  const bool ipv6 = path.ip_version == 6;
  l3_offset_ = store_ethernet(headers_, path, ipv6 ? kEthertypeIpv6 : kEthertypeIpv4);
  const uint8_t traffic_class = static_cast<uint8_t>(path.dscp << 2 | (path.ecn & 3));
  (ipv6 ? store_ipv6 : store_ipv4)(headers_ + l3_offset_, kProtocolUdp, traffic_class, path.ttl, path.source_ip,
                                   path.destination_ip);
  const uint32_t udp_offset = l3_offset_ + (ipv6 ? kIpv6Header : kIpv4Header);
  if (!ipv6) ip_sum_ = checksum_add(0, headers_ + l3_offset_, kIpv4Header);
  store_udp(headers_ + udp_offset, path.udp_source_port, kRocePort);
  bth_offset_ = udp_offset + kUdpHeader;
}

// Writes all of them at a constant length, which is quicker; bytes that are too many are written again.
void RoceTemplate::write_headers(uint8_t* out) const { std::memcpy(out, headers_, sizeof headers_); }

uint32_t RoceTemplate::write_transport(uint8_t* out, const DataHeader& header, uint32_t pad) const {
  write_headers(out);
  if (header.entropy != 0) {
    uint8_t* const port = out + bth_offset_ - kUdpHeader;
    store_be16(port, sprayed_port(load_be16(port), header.entropy));
  }
  // Field by field: what is always 0 then costs nothing.
  store_bth(out + bth_offset_, {.opcode = header.opcode,
                                .pad_count = static_cast<uint8_t>(pad),
                                .solicited = header.solicited,
                                .becn = header.becn,
                                .ack_request = header.ack_request,
                                .partition_key = header.partition_key,
                                .destination_qp = header.destination_qp,
                                .psn = header.psn});
  uint32_t offset = bth_offset_ + kBthHeader;
  const uint8_t has = extensions(header.opcode);
  if (has == 0) return offset;
  if (has & kHasDeth) {
    store_deth(out + offset, header.deth);
    offset += kDethHeader;
  }
  if (has & kHasReth) {
    store_reth(out + offset, header.reth);
    offset += kRethHeader;
  }
  if (has & kHasAeth) {
    store_aeth(out + offset, header.aeth);
    offset += kAethHeader;
  }
  if (has & kHasAtomic) {
    store_atomic(out + offset, header.atomic);
    offset += kAtomicHeader;
  }
  if (has & kHasAtomicAck) {
    store_be64(out + offset, header.atomic_original);
    offset += kAtomicAckHeader;
  }
  if (has & kHasImmediate) {
    store_be32(out + offset, header.immediate);
    offset += kImmediateHeader;
  }
  if (has & kHasTelemetry) {
    if (header.telemetry != nullptr) {
      std::memcpy(out + offset, header.telemetry, kTelemetryHeader);
    } else {
      store_telemetry(out + offset);
    }
    offset += kTelemetryHeader;
  }
  return offset;
}

uint32_t RoceTemplate::build_data(uint8_t* out, const DataHeader& header, const uint8_t* payload, uint32_t payload_length,
                                  uint16_t identification) const {
  const uint32_t length = build_unsealed(out, header, payload, payload_length, identification);
  seal(out, l3_offset_, length);
  return length;
}

void RoceTemplate::seal(uint8_t* frame, uint32_t l3_offset, uint32_t length) { write_icrc(frame, l3_offset, length - kIcrc); }

uint32_t RoceTemplate::build_unsealed(uint8_t* out, const DataHeader& header, const uint8_t* payload, uint32_t payload_length,
                                      uint16_t identification) const {
  const uint32_t pad = -payload_length & 3;
  uint32_t offset = write_transport(out, header, pad);
  if (payload_length > 0) std::memcpy(out + offset, payload, payload_length);
  offset += payload_length;
  std::memset(out + offset, 0, pad);
  if (bth_offset_ - l3_offset_ == kIpv4Header + kUdpHeader) store_be16(out + l3_offset_ + 4, identification);
  const uint32_t length = offset + pad + kIcrc;
  set_length(out, length, ip_sum_ + identification);
  return length;
}

uint32_t RoceTemplate::build_headers(uint8_t* out, const DataHeader& header, uint32_t payload_length) const {
  const uint32_t pad = -payload_length & 3;
  const uint32_t length = write_transport(out, header, pad) + payload_length + pad + kIcrc;
  set_length(out, length, ip_sum_);
  return length;
}

uint32_t RoceTemplate::build_cnp(uint8_t* out, uint32_t destination_qp, uint8_t dscp, uint8_t pcp, uint16_t partition_key) const {
  write_headers(out);
  const bool tagged = load_be16(out + 12) == kEthertypeVlan;
  if (tagged) store_be16(out + 14, static_cast<uint16_t>((load_be16(out + 14) & 0x1fff) | pcp << 13));
  uint8_t* ip = out + l3_offset_;
  const uint8_t traffic_class = static_cast<uint8_t>(dscp << 2);
  const uint32_t ip_sum = ip_sum_ - ip[1] + traffic_class;  // used for IPv4 only
  ip_set_traffic_class(ip, traffic_class);
  store_bth(out + bth_offset_,
            {.opcode = kOpcodeCnp, .becn = true, .partition_key = partition_key, .destination_qp = destination_qp});
  std::memset(out + bth_offset_ + kBthHeader, 0, kCnpReserved);
  const uint32_t length = bth_offset_ + kBthHeader + kCnpReserved + kIcrc;
  set_length(out, length, ip_sum);
  seal(out, l3_offset_, length);
  return length;
}

void RoceTemplate::set_class(uint8_t* frame, uint8_t dscp, uint8_t pcp) const {
  if (load_be16(frame + 12) == kEthertypeVlan) {
    store_be16(frame + 14, static_cast<uint16_t>((load_be16(frame + 14) & 0x1fff) | pcp << 13));
  }
  uint8_t* const ip = frame + l3_offset_;
  const uint16_t before = load_be16(ip);
  const bool ipv6 = ip[0] >> 4 == 6;
  const int ecn = (ipv6 ? ip[1] >> 4 : ip[1]) & 3;
  ip_set_traffic_class(ip, static_cast<uint8_t>(dscp << 2 | ecn));
  if (!ipv6) store_be16(ip + 10, checksum_update(load_be16(ip + 10), before, load_be16(ip)));
}

void RoceTemplate::set_length(uint8_t* out, uint32_t length, uint32_t ip_sum) const {
  uint8_t* ip = out + l3_offset_;
  const uint32_t total = length - l3_offset_;
  if (bth_offset_ - l3_offset_ == kIpv4Header + kUdpHeader) {
    store_be16(ip + 2, static_cast<uint16_t>(total));
    store_be16(ip + 10, static_cast<uint16_t>(~checksum_fold(ip_sum + total)));
  } else {
    store_be16(ip + 4, static_cast<uint16_t>(total - kIpv6Header));
  }
  store_be16(out + bth_offset_ - 4, static_cast<uint16_t>(length - bth_offset_ + kUdpHeader));
}

}  // namespace weir
