// Times, rates and the one rule of arithmetic that everything above shares.
#pragma once

#include <cstdint>

namespace weir {

// Nanoseconds: CLOCK_MONOTONIC on the wire, virtual in simulation. Never read from a clock below `engine`.
using Time = int64_t;
// Bits per second on the wire. 0 means "no limit" wherever a link or a shaper takes one.
using Rate = int64_t;

inline constexpr Time kNever = INT64_MAX;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;

// Not std::min() of a list: GCC builds that list in memory.
template <class... Times>
constexpr Time earliest(Time time, Times... others) {
  ((time = others < time ? others : time), ...);
  return time;
}

// `part` / `whole` of an amount, rounded down.
constexpr uint64_t portion(uint64_t amount, uint64_t part, uint64_t whole) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(amount) * part / whole);
}

inline constexpr int kPriorities = 8;

// Bytes that a frame costs a link beyond those a packet socket sees: FCS 4, preamble and SFD 8, inter-packet gap 12 (IEEE 802.3
// clause 4.4.2). Every rate in Weir, pacing and shaping alike, is a rate of these wire bytes.
inline constexpr uint32_t kEthernetOverhead = 24;
// A frame shorter than this is padded by the MAC (64 octets with FCS).
inline constexpr uint32_t kMinimumFrame = 60;

// Bytes of link time that a frame of `length` (no FCS) takes.
constexpr uint32_t wire_bytes(uint32_t length) { return (length < kMinimumFrame ? kMinimumFrame : length) + kEthernetOverhead; }

}  // namespace weir
