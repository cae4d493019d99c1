#include "wire/nak.h"

#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace weir {
namespace {

constexpr uint8_t kPadCount = 0x30;  // bits of the BTH's second byte

}  // namespace

bool can_nak(const PacketMeta& meta, uint32_t length) {
  return meta.bth_offset != 0 && length >= meta.bth_offset + kBthHeader + kAethHeader + kIcrc &&
         (opcode_shape(meta.opcode).extensions & kHasAeth) != 0;
}

void make_nak(uint8_t* data, uint32_t& length, PacketMeta& meta, uint8_t syndrome) {
  uint8_t* const ip = data + meta.l3_offset;
  uint8_t* const bth = data + meta.bth_offset;
  const uint32_t icrc = meta.bth_offset + kBthHeader + kAethHeader;
  const uint32_t end = icrc + kIcrc;
  bth[0] = kOpcodeRcAcknowledge;
  bth[1] &= static_cast<uint8_t>(~kPadCount);
  bth[kBthHeader] = syndrome;
  uint8_t* const udp = bth - kUdpHeader;
  store_be16(udp + 4, static_cast<uint16_t>(data + end - udp));
  store_be16(udp + 6, 0);
  ip_set_length(ip, static_cast<uint16_t>(end - meta.l3_offset));
  write_icrc(data, meta.l3_offset, icrc);
  length = end;
  meta.opcode = kOpcodeRcAcknowledge;
  meta.pad_count = 0;
  meta.payload_length = 0;
}

}  // namespace weir
