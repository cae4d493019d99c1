// Opcodes of the reliable connection: which one a packet of a message has (IBTA volume 1, tables 38 and 39; wire/bth.h has what
// each of them says).
#pragma once

#include <cstdint>

#include "transport/work.h"
#include "wire/bth.h"

namespace weir {

constexpr bool with_invalidate(uint8_t opcode) {
  return opcode == kOpcodeRcSendLastInvalidate || opcode == kOpcodeRcSendOnlyInvalidate;
}
constexpr bool is_response(uint8_t opcode) {
  return opcode >= kOpcodeRcReadResponseFirst && opcode <= kOpcodeRcAtomicAcknowledge;
}
constexpr bool is_read_response(uint8_t opcode) {
  return opcode >= kOpcodeRcReadResponseFirst && opcode <= kOpcodeRcReadResponseOnly;
}

// Whether the responder answers with data of its own: an ACK does not acknowledge these.
constexpr bool has_response(WorkOpcode opcode) { return opcode >= WorkOpcode::read; }
// Whether it takes up a receive work request at the peer.
constexpr bool needs_receive(WorkOpcode opcode) {
  return opcode <= WorkOpcode::send_invalidate || opcode == WorkOpcode::write_immediate;
}

// The opcode of one packet of a message.
constexpr uint8_t packet_opcode(WorkOpcode work, bool first, bool last) {
  constexpr uint8_t kOpcodes[][4] = {
      // middle, first, last, only; by WorkOpcode
      {kOpcodeRcSendMiddle, kOpcodeRcSendFirst, kOpcodeRcSendLast, kOpcodeRcSendOnly},
      {kOpcodeRcSendMiddle, kOpcodeRcSendFirst, kOpcodeRcSendLastImmediate, kOpcodeRcSendOnlyImmediate},
      {kOpcodeRcSendMiddle, kOpcodeRcSendFirst, kOpcodeRcSendLastInvalidate, kOpcodeRcSendOnlyInvalidate},
      {kOpcodeRcWriteMiddle, kOpcodeRcWriteFirst, kOpcodeRcWriteLast, kOpcodeRcWriteOnly},
      {kOpcodeRcWriteMiddle, kOpcodeRcWriteFirst, kOpcodeRcWriteLastImmediate, kOpcodeRcWriteOnlyImmediate},
      {kOpcodeRcReadRequest, kOpcodeRcReadRequest, kOpcodeRcReadRequest, kOpcodeRcReadRequest},
      {kOpcodeRcCompareSwap, kOpcodeRcCompareSwap, kOpcodeRcCompareSwap, kOpcodeRcCompareSwap},
      {kOpcodeRcFetchAdd, kOpcodeRcFetchAdd, kOpcodeRcFetchAdd, kOpcodeRcFetchAdd}};
  return kOpcodes[static_cast<size_t>(work)][(first ? 1 : 0) + (last ? 2 : 0)];
}

}  // namespace weir
