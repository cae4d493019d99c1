#include "wire/mac_control.h"

#include <cstring>

#include "base/types.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"

namespace weir {
namespace {

constexpr uint32_t kOpcodeOffset = kEthernetHeader;
constexpr uint32_t kParameterOffset = kEthernetHeader + 2;

bool has_opcode(const uint8_t* data, uint16_t opcode) {
  return load_be16(data + 12) == kEthertypeMacControl && load_be16(data + kOpcodeOffset) == opcode;
}

void store_control(uint8_t* out, uint64_t source_mac, uint16_t opcode) {
  std::memset(out, 0, kMinimumFrame);
  store_ethernet(out, {.destination_mac = kMacControlAddress, .source_mac = source_mac}, kEthertypeMacControl);
  store_be16(out + kOpcodeOffset, opcode);
}

}  // namespace

bool parse_pfc(const uint8_t* data, uint32_t length, PfcFrame& frame) {
  if (length < kPfcLength || !has_opcode(data, kMacControlPfc)) return false;
  frame.enable = data[kParameterOffset + 1];
  for (uint32_t i = 0; i < 8; ++i) frame.quanta[i] = load_be16(data + kParameterOffset + 2 + 2 * i);
  return true;
}

bool parse_pause(const uint8_t* data, uint32_t length, uint16_t& quanta) {
  if (length < kPauseLength || !has_opcode(data, kMacControlPause)) return false;
  quanta = load_be16(data + kParameterOffset);
  return true;
}

uint32_t build_pause(uint8_t* out, uint64_t source_mac, uint16_t quanta) {
  store_control(out, source_mac, kMacControlPause);
  store_be16(out + kParameterOffset, quanta);
  return kMinimumFrame;
}

uint32_t build_pfc(uint8_t* out, uint64_t source_mac, const PfcFrame& frame) {
  store_control(out, source_mac, kMacControlPfc);
  out[kParameterOffset + 1] = frame.enable;
  for (uint32_t i = 0; i < 8; ++i) store_be16(out + kParameterOffset + 2 + 2 * i, frame.quanta[i]);
  return kMinimumFrame;
}

}  // namespace weir
