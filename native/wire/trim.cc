#include "wire/trim.h"

#include <algorithm>

#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace weir {

bool can_trim(const PacketMeta& meta, uint32_t length, uint32_t size) {
  return length > size && meta.l3_offset != 0 && !is_group(meta.destination_mac);
}

void trim(uint8_t* data, Packet& packet, uint32_t size, uint8_t dscp) {
  PacketMeta& meta = packet.meta;
  uint8_t* const ip = data + meta.l3_offset;
  const auto datagram = static_cast<uint16_t>(size - meta.l3_offset);
  // There may have been padding behind it.
  if (datagram < ip_total_length(ip)) {
    const uint32_t header = ip_header_length(ip);
    const uint8_t protocol = meta.ip_version == 4 ? ip[9] : ip[6];
    // classify() does not look at the ports of a fragment.
    if (protocol == kProtocolUdp && (meta.udp_source_port != 0 || meta.bth_offset != 0)) {
      uint8_t* const udp_length = ip + header + 4;
      store_be16(udp_length, std::min(load_be16(udp_length), static_cast<uint16_t>(datagram - header)));
    }
    if (meta.kind == FrameKind::roce) {
      const uint32_t cut = ip_total_length(ip) - datagram;
      meta.payload_length = static_cast<uint16_t>(std::max<int32_t>(0, int32_t{meta.payload_length} - static_cast<int32_t>(cut)));
    }
  }
  const uint8_t ecn = ip[0] >> 4 == 6 ? ip[1] >> 4 & 3 : ip[1] & 3;
  ip_set_traffic_class(ip, static_cast<uint8_t>(dscp << 2 | ecn));
  ip_set_length(ip, std::min<uint16_t>(datagram, static_cast<uint16_t>(ip_total_length(ip))));
  meta.dscp = dscp;
  packet.length = size;
}

}  // namespace weir
