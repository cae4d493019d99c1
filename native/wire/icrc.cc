#include "wire/icrc.h"

#include <cstring>

#include "wire/bth.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace weir {

uint32_t compute_icrc(const uint8_t* frame, uint32_t l3_offset, uint32_t icrc_offset) {
  constexpr uint32_t kLrh = 8;
  uint8_t masked[kLrh + kIpv4MaximumHeader + kUdpHeader + kBthHeader];
  std::memset(masked, 0xff, kLrh);
  uint8_t* ip = masked + kLrh;
  const uint32_t header = ip_header_length(frame + l3_offset);
  const uint32_t headers = header + kUdpHeader + kBthHeader;
  std::memcpy(ip, frame + l3_offset, headers);
  if (ip[0] >> 4 == 6) {
    ip[0] |= 0x0f;
    std::memset(ip + 1, 0xff, 3);
    ip[7] = 0xff;
  } else {
    ip[1] = 0xff;
    ip[8] = 0xff;
    std::memset(ip + 10, 0xff, 2);
  }
  std::memset(ip + header + 6, 0xff, 2);
  ip[header + kUdpHeader + 4] = 0xff;

  const uint32_t rest = l3_offset + headers;
  return crc32(frame + rest, icrc_offset - rest, crc32(masked, kLrh + headers, 0));
}

bool icrc_ok(const uint8_t* frame, const PacketMeta& meta) {
  const uint32_t icrc_offset = meta.l3_offset + ip_total_length(frame + meta.l3_offset) - kIcrc;
  return load_be32(frame + icrc_offset) == __builtin_bswap32(compute_icrc(frame, meta.l3_offset, icrc_offset));
}

void write_icrc(uint8_t* frame, uint32_t l3_offset, uint32_t icrc_offset) {
  store_be32(frame + icrc_offset, __builtin_bswap32(compute_icrc(frame, l3_offset, icrc_offset)));
}

}  // namespace weir
