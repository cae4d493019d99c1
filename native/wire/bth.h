// The InfiniBand base transport header (BTH) as RoCEv2 carries it, and opcodes with the extension headers that they have (IBTA
// volume 1 chapter 9). extension_headers.h has those.
//
// load_* and store_* take a place with enough bytes (k...Header); classify() has checked them for received frames.
#pragma once

#include <array>
#include <cstdint>

#include "wire/bytes.h"

namespace weir {

inline constexpr uint32_t kBthHeader = 12;
inline constexpr uint32_t kRethHeader = 16;
inline constexpr uint32_t kAethHeader = 4;
inline constexpr uint32_t kDethHeader = 8;
inline constexpr uint32_t kImmediateHeader = 4;  // also the IETH of SEND with invalidate
inline constexpr uint32_t kAtomicHeader = 28;
inline constexpr uint32_t kAtomicAckHeader = 8;
inline constexpr uint32_t kTelemetryHeader = 64;  // wire/telemetry.h
inline constexpr uint32_t kCnpReserved = 16;
inline constexpr uint32_t kIcrc = 4;

inline constexpr uint16_t kDefaultPartitionKey = 0xffff;

// Blocks of queue pairs that a NIC can lend to a program, with a path of its own to the wire: the four bits of a queue pair's
// number above its last eight say of which it is.
inline constexpr uint32_t kLentBlockShift = 8;
inline constexpr uint32_t kLentBlocks = 16;
constexpr uint32_t lent_block_of(uint32_t qpn) { return (qpn >> kLentBlockShift) % kLentBlocks; }

// Reliable connection. The same operations with 0x20 added are unreliable connection (SEND and WRITE only).
inline constexpr uint8_t kOpcodeUnreliable = 0x20;
inline constexpr uint8_t kOpcodeOperation = 0x1f;  // mask: all but the type of connection
inline constexpr uint8_t kOpcodeRcSendFirst = 0x00;
inline constexpr uint8_t kOpcodeRcSendMiddle = 0x01;
inline constexpr uint8_t kOpcodeRcSendLast = 0x02;
inline constexpr uint8_t kOpcodeRcSendLastImmediate = 0x03;
inline constexpr uint8_t kOpcodeRcSendOnly = 0x04;
inline constexpr uint8_t kOpcodeRcSendOnlyImmediate = 0x05;
inline constexpr uint8_t kOpcodeRcWriteFirst = 0x06;
inline constexpr uint8_t kOpcodeRcWriteMiddle = 0x07;
inline constexpr uint8_t kOpcodeRcWriteLast = 0x08;
inline constexpr uint8_t kOpcodeRcWriteLastImmediate = 0x09;
inline constexpr uint8_t kOpcodeRcWriteOnly = 0x0a;
inline constexpr uint8_t kOpcodeRcWriteOnlyImmediate = 0x0b;
inline constexpr uint8_t kOpcodeRcReadRequest = 0x0c;
inline constexpr uint8_t kOpcodeRcReadResponseFirst = 0x0d;
inline constexpr uint8_t kOpcodeRcReadResponseMiddle = 0x0e;
inline constexpr uint8_t kOpcodeRcReadResponseLast = 0x0f;
inline constexpr uint8_t kOpcodeRcReadResponseOnly = 0x10;
inline constexpr uint8_t kOpcodeRcAcknowledge = 0x11;
inline constexpr uint8_t kOpcodeRcAtomicAcknowledge = 0x12;
inline constexpr uint8_t kOpcodeRcCompareSwap = 0x13;
inline constexpr uint8_t kOpcodeRcFetchAdd = 0x14;
inline constexpr uint8_t kOpcodeRcSendLastInvalidate = 0x16;
inline constexpr uint8_t kOpcodeRcSendOnlyInvalidate = 0x17;
// Added to that of a SEND, a WRITE, a READ response or an acknowledgement: the packet has a header for telemetry
// (wire/telemetry.h).
inline constexpr uint8_t kOpcodeTelemetry = 0xc0;
inline constexpr uint8_t kOpcodeUdSendOnly = 0x64;
inline constexpr uint8_t kOpcodeUdSendOnlyImmediate = 0x65;
// RoCEv2 congestion notification packet (annex A17.9.3). Linux's IB_OPCODE_CNP, 0x80, is the class only.
inline constexpr uint8_t kOpcodeCnp = 0x81;

// Extension headers, in the order in which they follow the BTH.
inline constexpr uint8_t kHasDeth = 1 << 0;
inline constexpr uint8_t kHasReth = 1 << 1;
inline constexpr uint8_t kHasAeth = 1 << 2;
inline constexpr uint8_t kHasAtomic = 1 << 3;
inline constexpr uint8_t kHasAtomicAck = 1 << 4;
inline constexpr uint8_t kHasImmediate = 1 << 5;  // or IETH
inline constexpr uint8_t kHasTelemetry = 1 << 6;

// Kind of a packet of the reliable connection, by its opcode (IBTA volume 1, tables 38 and 39).
enum class RequestKind : uint8_t { none, send, write, read, atomic };
struct OpcodeShape {
  RequestKind kind = RequestKind::none;  // none: not a request
  bool first = false;                    // begins a message
  bool last = false;                     // ends it
  uint8_t extensions = 0;                // kHas..., 0 for opcodes that we do not know
};
inline constexpr auto kReliableOpcodes = [] {
  using enum RequestKind;
  return std::to_array<OpcodeShape>({
      {send, true, false},                            // SEND first
      {send},                                         // middle
      {send, false, true},                            // last
      {send, false, true, kHasImmediate},             // last with immediate
      {send, true, true},                             // only
      {send, true, true, kHasImmediate},              // only with immediate
      {write, true, false, kHasReth},                 // RDMA WRITE first
      {write},                                        // middle
      {write, false, true},                           // last
      {write, false, true, kHasImmediate},            // last with immediate
      {write, true, true, kHasReth},                  // only
      {write, true, true, kHasReth | kHasImmediate},  // only with immediate
      {read, true, true, kHasReth},                   // RDMA READ request
      {none, false, false, kHasAeth},                 // RDMA READ response first
      {},                                             // middle
      {none, false, false, kHasAeth},                 // last
      {none, false, false, kHasAeth},                 // only
      {none, false, false, kHasAeth},                 // acknowledge
      {none, false, false, kHasAeth | kHasAtomicAck},
      {atomic, true, true, kHasAtomic},  // compare & swap
      {atomic, true, true, kHasAtomic},  // fetch & add
      {},
      {send, false, true, kHasImmediate},  // SEND last with invalidate
      {send, true, true, kHasImmediate},   // only with invalidate
  });
}();

constexpr bool has_telemetry(uint8_t opcode) {
  if ((opcode & ~kOpcodeOperation) != kOpcodeTelemetry) return false;
  const uint8_t operation = opcode & kOpcodeOperation;
  if (operation >= kReliableOpcodes.size()) return false;
  const RequestKind kind = kReliableOpcodes[operation].kind;
  const bool response = operation >= kOpcodeRcReadResponseFirst && operation <= kOpcodeRcAcknowledge;
  return kind == RequestKind::send || kind == RequestKind::write || response;
}
// Returns the opcode of the same packet without telemetry.
constexpr uint8_t plain_opcode(uint8_t opcode) {
  return has_telemetry(opcode) ? static_cast<uint8_t>(opcode & kOpcodeOperation) : opcode;
}
// The opcode must be one without telemetry.
constexpr OpcodeShape opcode_shape(uint8_t opcode) {
  return opcode < kReliableOpcodes.size() ? kReliableOpcodes[opcode] : OpcodeShape{};
}
// True for an opcode of an unreliable connection.
constexpr bool is_unreliable(uint8_t opcode) {
  return (opcode & ~kOpcodeOperation) == kOpcodeUnreliable && (opcode & kOpcodeOperation) <= kOpcodeRcWriteOnlyImmediate;
}
struct OpcodeExtensions {
  uint8_t has = 0;     // kHas...
  uint8_t length = 0;  // bytes of them
};
inline constexpr auto kOpcodeExtensions = [] {
  std::array<OpcodeExtensions, 256> all{};
  for (unsigned i = 0; i < all.size(); ++i) {
    const auto opcode = static_cast<uint8_t>(i);
    const auto shape = opcode_shape(is_unreliable(opcode) ? opcode & kOpcodeOperation : plain_opcode(opcode));
    const uint8_t has = opcode == kOpcodeUdSendOnly            ? kHasDeth
                        : opcode == kOpcodeUdSendOnlyImmediate ? kHasDeth | kHasImmediate
                        : has_telemetry(opcode)                ? shape.extensions | kHasTelemetry
                                                               : shape.extensions;
    const uint32_t length = (has & kHasDeth ? kDethHeader : 0) + (has & kHasReth ? kRethHeader : 0) +
                            (has & kHasAeth ? kAethHeader : 0) + (has & kHasAtomic ? kAtomicHeader : 0) +
                            (has & kHasAtomicAck ? kAtomicAckHeader : 0) + (has & kHasImmediate ? kImmediateHeader : 0) +
                            (has & kHasTelemetry ? kTelemetryHeader : 0);
    all[i] = {has, static_cast<uint8_t>(length)};
  }
  return all;
}();
// Returns the extension headers that an opcode has. None for opcodes that we do not know (RD, XRC, reserved), so that all behind
// the BTH counts as payload.
constexpr uint8_t extensions(uint8_t opcode) { return kOpcodeExtensions[opcode].has; }
// Bytes of them.
constexpr uint32_t extension_length(uint8_t opcode) { return kOpcodeExtensions[opcode].length; }
// Returns the bytes from the BTH to the ICRC, with both.
constexpr uint32_t packet_length(uint8_t opcode, uint32_t payload) {
  return kBthHeader + extension_length(opcode) + ((payload + 3) & ~3u) + kIcrc;
}

inline constexpr uint32_t kMostExtensions = [] {
  uint32_t most = 0;
  for (const OpcodeExtensions& each : kOpcodeExtensions) most = each.length > most ? each.length : most;
  return most;
}();

struct Bth {
  uint8_t opcode = 0;
  uint8_t pad_count = 0;          // 0..3
  uint8_t transport_version = 0;  // 0 is the only one defined
  bool solicited = false;
  bool migration = false;
  bool fecn = false;
  bool becn = false;
  bool ack_request = false;
  uint16_t partition_key = kDefaultPartitionKey;
  uint32_t destination_qp = 0;  // 24 bits
  uint32_t psn = 0;             // 24 bits
};

inline Bth load_bth(const uint8_t* p) {
  return {.opcode = p[0],
          .pad_count = static_cast<uint8_t>(p[1] >> 4 & 3),
          .transport_version = static_cast<uint8_t>(p[1] & 0x0f),
          .solicited = (p[1] & 0x80) != 0,
          .migration = (p[1] & 0x40) != 0,
          .fecn = (p[4] & 0x80) != 0,
          .becn = (p[4] & 0x40) != 0,
          .ack_request = (p[8] & 0x80) != 0,
          .partition_key = load_be16(p + 2),
          .destination_qp = load_be32(p + 4) & 0xffffff,
          .psn = load_be32(p + 8) & 0xffffff};
}
inline void store_bth(uint8_t* p, const Bth& bth) {
  p[0] = bth.opcode;
  p[1] =
      static_cast<uint8_t>(bth.solicited << 7 | bth.migration << 6 | (bth.pad_count & 3) << 4 | (bth.transport_version & 0x0f));
  store_be16(p + 2, bth.partition_key);
  store_be32(p + 4,
             static_cast<uint32_t>(bth.fecn) << 31 | static_cast<uint32_t>(bth.becn) << 30 | (bth.destination_qp & 0xffffff));
  store_be32(p + 8, static_cast<uint32_t>(bth.ack_request) << 31 | (bth.psn & 0xffffff));
}

}  // namespace weir
