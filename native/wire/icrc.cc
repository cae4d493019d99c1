#include "wire/icrc.h"

#include <cstring>

#include "wire/bth.h"
#include "wire/ip.h"
#include "wire/telemetry.h"
#include "wire/udp.h"

namespace weir {
namespace {

// The ICRC has eight bytes of ones in place of the LRH: the first four cancel the initial value of the CRC; the others lie over
// the last four bytes of the Ethernet header.
constexpr uint32_t kOnes = 4;

// `fields`: bytes of the IP header that count as ones; its length is `header`.
constexpr CrcMask make_mask(uint32_t header, std::initializer_list<uint32_t> fields) {
  CrcMask mask;
  for (uint32_t i = 0; i < kOnes; ++i) mask.bits[i] = 0xff;
  for (const uint32_t field : fields) mask.bits[kOnes + field] = 0xff;
  mask.bits[kOnes + header + 6] = mask.bits[kOnes + header + 7] = 0xff;  // UDP checksum
  mask.bits[kOnes + header + kUdpHeader + 4] = 0xff;                     // FECN, BECN
  return mask;
}
constexpr CrcMask kIpv4Mask = make_mask(kIpv4Header, {1, 8, 10, 11});
constexpr CrcMask kIpv6Mask = [] {
  CrcMask mask = make_mask(kIpv6Header, {1, 2, 3, 7});
  mask.bits[kOnes] = 0x0f;  // the version stays
  return mask;
}();

// IPv4 with options, and packets with telemetry, which changes on the way.
uint32_t compute_slowly(const uint8_t* frame, uint32_t l3_offset, uint32_t icrc_offset) {
  constexpr uint32_t kLrh = 8;
  uint8_t masked[kLrh + kIpv4MaximumHeader + kUdpHeader + kBthHeader];
  std::memset(masked, 0xff, kLrh);
  uint8_t* ip = masked + kLrh;
  const uint32_t header = ip_header_length(frame + l3_offset);
  const uint32_t headers = header + kUdpHeader + kBthHeader;
  std::memcpy(ip, frame + l3_offset, headers);
  if (ip[0] >> 4 == 4) {
    for (const uint32_t field : {1u, 8u, 10u, 11u}) ip[field] = 0xff;
  } else {
    ip[0] |= 0x0f;
    for (const uint32_t field : {1u, 2u, 3u, 7u}) ip[field] = 0xff;
  }
  for (const uint32_t field : {header + 6, header + 7, header + kUdpHeader + 4}) ip[field] = 0xff;
  uint32_t rest = l3_offset + headers;
  uint32_t crc = crc32(masked, kLrh + headers, 0);
  const uint8_t opcode = frame[rest - kBthHeader];
  if (has_telemetry(opcode)) {
    uint8_t ones[kTelemetryHeader];
    std::memset(ones, 0xff, sizeof ones);
    const uint32_t at = rest - kBthHeader + telemetry_offset(opcode);
    crc = crc32(ones, sizeof ones, crc32(frame + rest, at - rest, crc));
    rest = at + kTelemetryHeader;
  }
  return crc32(frame + rest, icrc_offset - rest, crc);
}

}  // namespace

uint32_t compute_icrc(const uint8_t* frame, uint32_t l3_offset, uint32_t icrc_offset) {
  const uint8_t first = frame[l3_offset];
  const bool plain = first == 0x45 || first >> 4 == 6;
  const uint32_t header = first == 0x45 ? kIpv4Header : kIpv6Header;
  if (!plain || frame[l3_offset + header + kUdpHeader] >= kOpcodeTelemetry) return compute_slowly(frame, l3_offset, icrc_offset);
  const uint32_t start = l3_offset - kOnes;
  return ~crc32_remainder(frame + start, icrc_offset - start, first == 0x45 ? kIpv4Mask : kIpv6Mask);
}

bool icrc_ok(const uint8_t* frame, const PacketMeta& meta) {
  const uint32_t icrc_offset = meta.l3_offset + ip_total_length(frame + meta.l3_offset) - kIcrc;
  return load_be32(frame + icrc_offset) == __builtin_bswap32(compute_icrc(frame, meta.l3_offset, icrc_offset));
}

void write_icrc(uint8_t* frame, uint32_t l3_offset, uint32_t icrc_offset) {
  store_be32(frame + icrc_offset, __builtin_bswap32(compute_icrc(frame, l3_offset, icrc_offset)));
}

}  // namespace weir
