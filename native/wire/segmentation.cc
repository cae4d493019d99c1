#include "wire/segmentation.h"

#include <cstring>

#include "wire/checksum.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace weir {
namespace {

constexpr uint16_t kEthertypeServiceVlan = 0x88a8;
constexpr uint16_t kSctpChecksum = 8;  // no other protocol has its checksum there
constexpr uint8_t kTcpFin = 0x01;
constexpr uint8_t kTcpPush = 0x08;
constexpr uint8_t kTcpCwr = 0x80;

// 0 means "none" in UDP, and 0xffff is the same number elsewhere.
void store_checksum(uint8_t* field, uint32_t sum) {
  const uint16_t checksum = static_cast<uint16_t>(~checksum_fold(sum));
  store_be16(field, checksum == 0 ? 0xffff : checksum);
}

}  // namespace

uint32_t network_offset(const uint8_t* frame, uint32_t length) {
  uint32_t offset = kEthernetHeader;
  for (int tags = 0; tags < 2 && offset + kVlanTag <= length; ++tags) {
    const uint16_t ethertype = load_be16(frame + offset - 2);
    if (ethertype != kEthertypeVlan && ethertype != kEthertypeServiceVlan) break;
    offset += kVlanTag;
  }
  if (offset <= length && load_be16(frame + offset - 2) == kEthertypeCnTag) offset += kCnTag;
  return std::min(offset, length);
}

uint32_t write_segment(const uint8_t* frame, uint32_t length, const Offload& offload, uint32_t index, uint8_t* out) {
  const uint32_t header = offload.header_length;
  const uint32_t before = index * offload.segment_size;
  const uint32_t payload = std::min<uint32_t>(offload.segment_size, length - header - before);
  const uint32_t size = header + payload;
  std::memcpy(out, frame, header);
  std::memcpy(out + header, frame + header + before, payload);

  const uint32_t l3 = network_offset(frame, length);
  uint8_t* ip = out + l3;
  if (ip[0] >> 4 == 4) store_be16(ip + 4, static_cast<uint16_t>(load_be16(ip + 4) + index));
  ip_set_length(ip, static_cast<uint16_t>(size - l3));

  uint8_t* transport = out + offload.checksum_start;
  const uint32_t transport_length = size - offload.checksum_start;
  if (offload.gso == Gso::udp) {
    store_be16(transport + 4, static_cast<uint16_t>(transport_length));
    if (load_be16(transport + 2) == kRocePort) {  // as its senders have it
      store_be16(transport + kUdpChecksum, 0);
      return size;
    }
  } else {
    store_be32(transport + 4, load_be32(transport + 4) + before);
    uint8_t& flags = transport[13];
    if (header + before + payload < length) flags = static_cast<uint8_t>(flags & ~(kTcpFin | kTcpPush));
    if (index > 0) flags = static_cast<uint8_t>(flags & ~kTcpCwr);
  }
  // The field holds the sum of the pseudo header with the length of the whole: that length is taken back.
  uint8_t* field = transport + offload.checksum_offset;
  const uint32_t seed = load_be16(field) + (0xffff - (length - offload.checksum_start)) + transport_length;
  store_be16(field, 0);
  store_checksum(field, checksum_add(seed, transport, transport_length));
  return size;
}

bool complete_checksum(uint8_t* frame, uint32_t length, const Offload& offload) {
  if (offload.checksum_offset == kSctpChecksum) return false;
  uint8_t* start = frame + offload.checksum_start;
  store_checksum(start + offload.checksum_offset, checksum_add(0, start, length - offload.checksum_start));
  return true;
}

}  // namespace weir
