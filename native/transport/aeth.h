// The AETH's syndrome: acknowledgement with credits, RNR NAK with a timer, NAK with a reason (IBTA volume 1, 9.7.5.2).
#pragma once

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

// Receive work requests by credit code (table 44).
inline constexpr uint16_t kCredits[31] = {0,    1,    2,    3,    4,    6,     8,     12,    16,   24,   32,
                                          48,   64,   96,   128,  192,  256,   384,   512,   768,  1024, 1536,
                                          2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

// The largest code that promises no more than `receives`.
constexpr uint8_t credit_code(uint32_t receives) {
  uint8_t code = 0;
  while (code < 30 && kCredits[code + 1] <= receives) ++code;
  return code;
}

// How long an RNR NAK asks to wait (table 45): codes 0..31; 0 is the longest.
constexpr Time rnr_delay(uint8_t code) {
  constexpr uint32_t kHundredthsOfMs[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                            48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                            2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return static_cast<Time>(kHundredthsOfMs[code & 31]) * 10 * kMicrosecond;
}

// The local ACK timeout of code 1..31 (9.7.6.1.3); code 0 is no timeout.
constexpr Time ack_timeout(uint8_t code) { return code == 0 ? kNever : Time{4096} << (code & 31); }

}  // namespace weir
