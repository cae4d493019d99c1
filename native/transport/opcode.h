// Opcodes of the reliable connection: what a request packet is, and which opcode a packet of a message has (IBTA volume 1,
// tables 38 and 39).
#pragma once

#include <cstdint>

#include "transport/work.h"
#include "wire/bth.h"

namespace weir {

enum class RequestKind : uint8_t { none, send, write, read, atomic };

struct RequestOpcode {
  RequestKind kind = RequestKind::none;  // none: not a request of the reliable connection
  bool first = false;                    // begins a message
  bool last = false;                     // ends it
};

constexpr RequestOpcode request_opcode(uint8_t opcode) {
  switch (opcode) {
    case kOpcodeRcSendFirst:
      return {RequestKind::send, true, false};
    case kOpcodeRcSendMiddle:
      return {RequestKind::send, false, false};
    case kOpcodeRcSendLast:
    case kOpcodeRcSendLastImmediate:
    case kOpcodeRcSendLastInvalidate:
      return {RequestKind::send, false, true};
    case kOpcodeRcSendOnly:
    case kOpcodeRcSendOnlyImmediate:
    case kOpcodeRcSendOnlyInvalidate:
      return {RequestKind::send, true, true};
    case kOpcodeRcWriteFirst:
      return {RequestKind::write, true, false};
    case kOpcodeRcWriteMiddle:
      return {RequestKind::write, false, false};
    case kOpcodeRcWriteLast:
    case kOpcodeRcWriteLastImmediate:
      return {RequestKind::write, false, true};
    case kOpcodeRcWriteOnly:
    case kOpcodeRcWriteOnlyImmediate:
      return {RequestKind::write, true, true};
    case kOpcodeRcReadRequest:
      return {RequestKind::read, true, true};
    case kOpcodeRcCompareSwap:
    case kOpcodeRcFetchAdd:
      return {RequestKind::atomic, true, true};
    default:
      return {};
  }
}

constexpr bool with_immediate(uint8_t opcode) {
  return opcode == kOpcodeRcSendLastImmediate || opcode == kOpcodeRcSendOnlyImmediate || opcode == kOpcodeRcWriteLastImmediate ||
         opcode == kOpcodeRcWriteOnlyImmediate;
}
constexpr bool with_invalidate(uint8_t opcode) {
  return opcode == kOpcodeRcSendLastInvalidate || opcode == kOpcodeRcSendOnlyInvalidate;
}
constexpr bool is_response(uint8_t opcode) {
  return opcode >= kOpcodeRcReadResponseFirst && opcode <= kOpcodeRcAtomicAcknowledge;
}

// Whether the responder answers with data of its own: an ACK does not acknowledge these.
constexpr bool has_response(WorkOpcode opcode) { return opcode >= WorkOpcode::read; }
// Whether it takes up a receive work request at the peer.
constexpr bool needs_receive(WorkOpcode opcode) {
  return opcode <= WorkOpcode::send_invalidate || opcode == WorkOpcode::write_immediate;
}

// The opcode of one packet of a message.
constexpr uint8_t packet_opcode(WorkOpcode work, bool first, bool last) {
  switch (work) {
    case WorkOpcode::read:
      return kOpcodeRcReadRequest;
    case WorkOpcode::compare_swap:
      return kOpcodeRcCompareSwap;
    case WorkOpcode::fetch_add:
      return kOpcodeRcFetchAdd;
    case WorkOpcode::write:
    case WorkOpcode::write_immediate: {
      const bool immediate = work == WorkOpcode::write_immediate;
      if (!last) return first ? kOpcodeRcWriteFirst : kOpcodeRcWriteMiddle;
      if (first) return immediate ? kOpcodeRcWriteOnlyImmediate : kOpcodeRcWriteOnly;
      return immediate ? kOpcodeRcWriteLastImmediate : kOpcodeRcWriteLast;
    }
    default:
      if (!last) return first ? kOpcodeRcSendFirst : kOpcodeRcSendMiddle;
      if (work == WorkOpcode::send_immediate) return first ? kOpcodeRcSendOnlyImmediate : kOpcodeRcSendLastImmediate;
      if (work == WorkOpcode::send_invalidate) return first ? kOpcodeRcSendOnlyInvalidate : kOpcodeRcSendLastInvalidate;
      return first ? kOpcodeRcSendOnly : kOpcodeRcSendLast;
  }
}

}  // namespace weir
