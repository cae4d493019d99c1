#include "wire/offload.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "wire/checksum.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/segmentation.h"
#include "wire/udp.h"

namespace weir {
namespace {

// struct virtio_net_hdr in the byte order of the host; <linux/virtio_net.h> is not C++.
struct VirtioHeader {
  uint8_t flags = 0;
  uint8_t gso_type = 0;
  uint16_t header_length = 0;
  uint16_t segment_size = 0;
  uint16_t checksum_start = 0;
  uint16_t checksum_offset = 0;
};
static_assert(sizeof(VirtioHeader) == kOffloadHeader);
constexpr uint8_t kNeedsChecksum = 1;
constexpr uint8_t kGsoTypes[] = {0, 1, 4, 5};  // in the order of Gso
constexpr uint8_t kGsoEcn = 0x80;
static_assert(std::size(kGsoTypes) == static_cast<size_t>(Gso::unsupported));

constexpr uint16_t kLeastTcpSegment = 8;      // Linux: TCP_MIN_SND_MSS less the room for options
constexpr uint32_t kFarthestTransport = 512;  // more link, IPv6 and extension headers than anyone sends

// Whether an IP header at `l3` announces a datagram that fills the frame, with `protocol` at `l4`.
bool check_ip(const uint8_t* frame, uint32_t length, uint32_t l3, uint32_t l4, uint8_t protocol) {
  if (l4 < l3 + kIpv4Header || l4 >= length) return false;
  const uint8_t* ip = frame + l3;
  if (ip[0] >> 4 == 4) {
    const bool fragment = (load_be16(ip + 6) & 0x3fff) != 0;
    return l3 + ip_header_length(ip) == l4 && ip[9] == protocol && !fragment && l3 + load_be16(ip + 2) == length;
  }
  if (ip[0] >> 4 != 6 || l4 < l3 + kIpv6Header || l3 + kIpv6Header + load_be16(ip + 4) != length) return false;
  return l4 > l3 + kIpv6Header || ip[6] == protocol;
}

}  // namespace

Offload load_offload(const uint8_t* header) {
  VirtioHeader h;
  std::memcpy(&h, header, sizeof h);
  Offload offload;
  if ((h.flags & kNeedsChecksum) != 0) {
    offload.needs_checksum = true;
    offload.checksum_start = h.checksum_start;
    offload.checksum_offset = h.checksum_offset;
  }
  const auto* type = std::find(std::begin(kGsoTypes), std::end(kGsoTypes), h.gso_type & ~kGsoEcn);
  offload.gso = static_cast<Gso>(type - std::begin(kGsoTypes));
  if (offload.gso == Gso::none) return offload;
  offload.ecn = (h.gso_type & kGsoEcn) != 0;
  offload.segment_size = h.segment_size;
  return offload;
}

void store_offload(uint8_t* header, const Offload& offload) {
  VirtioHeader h;
  if (offload.needs_checksum) {
    h.flags = kNeedsChecksum;
    h.checksum_start = offload.checksum_start;
    h.checksum_offset = offload.checksum_offset;
  }
  if (offload.gso != Gso::none && offload.gso != Gso::unsupported) {
    h.gso_type = static_cast<uint8_t>(kGsoTypes[static_cast<size_t>(offload.gso)] | (offload.ecn ? kGsoEcn : 0));
    h.segment_size = offload.segment_size;
    h.header_length = offload.header_length;
  }
  std::memcpy(header, &h, sizeof h);
}

bool check_offload(const uint8_t* frame, uint32_t length, Offload& offload) {
  offload.header_length = 0;
  const uint32_t l4 = offload.checksum_start;
  if (offload.needs_checksum && (l4 < kEthernetHeader || l4 + offload.checksum_offset + 2 > length)) return false;
  if (offload.gso == Gso::none) return true;
  if (offload.gso == Gso::unsupported || !offload.needs_checksum || offload.segment_size == 0 || l4 > kFarthestTransport) {
    return false;
  }
  const bool udp = offload.gso == Gso::udp;
  const uint32_t l3 = network_offset(frame, length);
  if (!check_ip(frame, length, l3, l4, udp ? kProtocolUdp : kProtocolTcp)) return false;
  if (!udp && frame[l3] >> 4 != (offload.gso == Gso::tcp4 ? 4 : 6)) return false;
  uint32_t header = l4 + (udp ? kUdpHeader : kTcpHeader);
  if (header >= length || offload.checksum_offset != (udp ? kUdpChecksum : kTcpChecksum)) return false;
  if (!udp) {
    const uint32_t tcp = (frame[l4 + 12] >> 4) * 4u;
    header = l4 + tcp;
    if (tcp < kTcpHeader || header >= length || offload.segment_size < kLeastTcpSegment) return false;
  }
  offload.header_length = static_cast<uint16_t>(header);
  return true;
}

bool infer_partial_checksum(const uint8_t* frame, uint32_t length, Offload& offload) {
  uint32_t l3 = kEthernetHeader;
  if (l3 + kIpv4Header + kUdpHeader > length) return false;
  uint16_t ethertype = load_be16(frame + l3 - 2);
  if (ethertype != kEthertypeIpv4 && ethertype != kEthertypeIpv6) {
    l3 = network_offset(frame, length);
    if (l3 + kIpv4Header + kUdpHeader > length) return false;
    ethertype = load_be16(frame + l3 - 2);
    if (ethertype != kEthertypeIpv4 && ethertype != kEthertypeIpv6) return false;
  }
  const uint8_t* ip = frame + l3;
  const bool ipv4 = ethertype == kEthertypeIpv4;
  if (ip[0] >> 4 != (ipv4 ? 4 : 6)) return false;
  const uint8_t protocol = ip[ipv4 ? 9 : 6];
  if (protocol != kProtocolTcp && protocol != kProtocolUdp) return false;
  const uint32_t header = ip_header_length(ip);
  const uint32_t l4 = l3 + header;
  const uint16_t offset = protocol == kProtocolTcp ? kTcpChecksum : kUdpChecksum;
  const uint32_t least = protocol == kProtocolTcp ? kTcpHeader : kUdpHeader;
  if (header < kIpv4Header || l4 + least > length) return false;
  const uint16_t field = load_be16(frame + l4 + offset);
  if (field == 0) return false;  // for TCP, too: the sum of a pseudo header is never 0
  if (l3 + ip_total_length(ip) != length) return false;
  if (ipv4 && (load_be16(ip + 6) & 0x3fff) != 0) return false;
  const uint32_t sum = checksum_add(length - l4 + protocol, ip + (ipv4 ? 12 : 8), ipv4 ? 8 : 32);
  if (checksum_fold(sum) != field) return false;
  offload.needs_checksum = true;
  offload.checksum_start = static_cast<uint16_t>(l4);
  offload.checksum_offset = offset;
  return true;
}

}  // namespace weir
