// Packet sequence numbers: 24 bits that wrap, compared by their distance (IBTA volume 1, 9.7.1).
#pragma once

#include <cstdint>

namespace weir {

inline constexpr uint32_t kPsnMask = 0xff'ffff;
// The most PSNs that one request may take up: the PSN behind it has to be ahead of its first.
inline constexpr uint32_t kMostPsns = (1u << 23) - 1;

constexpr uint32_t psn_add(uint32_t psn, uint32_t count) { return (psn + count) & kPsnMask; }
// a - b, from -2^23 to 2^23 - 1: negative when a is before b.
constexpr int32_t psn_distance(uint32_t a, uint32_t b) { return static_cast<int32_t>((a - b) << 8) >> 8; }
// PSNs that so many bytes take up: nothing is a packet too.
constexpr uint32_t packets_of(uint32_t bytes, uint32_t path_mtu) { return bytes == 0 ? 1 : (bytes - 1) / path_mtu + 1; }

// The receiver's view of a stream of PSNs without retransmission: what came in order, what is missing, what is old.
class SequenceCheck {
 public:
  struct Verdict {
    bool duplicate;    // older than expected: seen before, or given up as lost
    uint32_t missing;  // packets skipped just before this one
  };

  explicit SequenceCheck(uint32_t first_psn) : expected_(first_psn & kPsnMask) {}

  // Up to 2^23 ahead is a gap, the rest is the past.
  Verdict observe(uint32_t psn) {
    const int32_t ahead = psn_distance(psn, expected_);
    if (ahead < 0) return {true, 0};
    expected_ = psn_add(psn, 1);
    return {false, static_cast<uint32_t>(ahead)};
  }
  uint32_t expected() const { return expected_; }

 private:
  uint32_t expected_;
};

}  // namespace weir
