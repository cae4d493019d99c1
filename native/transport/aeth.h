// The AETH's syndrome: acknowledgement with credits, RNR NAK with a timer, NAK with a reason (IBTA volume 1, 9.7.5.2).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/types.h"

namespace weir {

inline constexpr uint8_t kSyndromeKind = 0x60;  // mask: which of the three; 0x40 is reserved
inline constexpr uint8_t kSyndromeAck = 0x00;
inline constexpr uint8_t kSyndromeRnrNak = 0x20;
inline constexpr uint8_t kSyndromeNak = 0x60;
inline constexpr uint8_t kNoCredits = 0x1f;  // in an ACK: the responder does not count its receives

inline constexpr uint8_t kNakSequence = 0x60;
inline constexpr uint8_t kNakInvalidRequest = 0x61;
inline constexpr uint8_t kNakRemoteAccess = 0x62;
inline constexpr uint8_t kNakRemoteOperation = 0x63;
// NAK with a code that the standard reserves, between ends that have agreed on it (QueueAttributes::trim_naks). A bitmap follows,
// as in a selective sequence error: bit i is the packet at PSN + i, of which a switch has left the headers.
inline constexpr uint8_t kNakTrimmed = 0x7f;

// Value of a code, for credits (table 44: receive work requests) and RNR timers (table 45): 0, 1, 2, 3, 4, 6, 8, 12 ... 49152.
constexpr uint32_t stepped(uint8_t code) { return code < 2 ? code : (2u + (code & 1)) << (code / 2 - 1); }

// The largest credit code, of 0..30, that promises no more than `receives` work requests (table 44).
constexpr uint8_t credit_code(uint32_t receives) {
  if (receives < 2) return static_cast<uint8_t>(receives);
  const int halvings = std::bit_width(receives) - 1;
  return static_cast<uint8_t>(std::min<uint32_t>(30, 2u * halvings + (receives >> (halvings - 1) & 1)));
}

// Time that an RNR NAK asks to wait (table 45): codes 0..31, in hundredths of ms; 0 is the longest.
constexpr Time rnr_delay(uint8_t code) { return Time{(code & 31) == 0 ? 65'536 : stepped(code & 31)} * 10 * kMicrosecond; }

// The local ACK timeout of code 1..31 (9.7.6.1.3); code 0 is no timeout.
constexpr Time ack_timeout(uint8_t code) { return code == 0 ? kNever : Time{4096} << (code & 31); }

// The time by a clock that is slower by `scale`.
constexpr Time stretched(Time time, double scale) {
  return time == kNever || scale == 1 ? time : static_cast<Time>(static_cast<double>(time) * scale);
}

}  // namespace weir
