#include "wire/partial_checksum.h"

#include "wire/checksum.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/segmentation.h"
#include "wire/udp.h"

namespace weir {

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
