#include "wire/udp.h"

#include "wire/checksum.h"
#include "wire/ip.h"

namespace weir {

bool udp_checksum_ok(const uint8_t* frame, const PacketMeta& meta) {
  const uint8_t* udp = frame + meta.bth_offset - kUdpHeader;
  if (load_be16(udp + 6) == 0) return true;
  const uint8_t* ip = frame + meta.l3_offset;
  const uint32_t length = load_be16(udp + 4);
  // The pseudo header: both addresses, which are adjacent, then length and protocol.
  uint32_t sum = meta.ip_version == 6 ? checksum_add(0, ip + 8, 32) : checksum_add(0, ip + 12, 8);
  sum = checksum_add(sum + length + kProtocolUdp, udp, length);
  return checksum_fold(sum) == 0xffff;
}

}  // namespace weir
