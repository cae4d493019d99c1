// An event happens at a device of a simulation; it stands as an entry in the inbox of a window of time.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace weir {

struct Event {
  Time at = 0;
  uint32_t kind = 0;    // kind of event
  uint32_t packet = 0;  // or number of what a device is woken for
  uint32_t device = 0;  // device at which it happens
};

// A device is woken; of the NICs of one machine, which are one device, NIC i by kWake - i. Any other kind is the port at which a
// frame arrives.
inline constexpr uint32_t kWake = UINT32_MAX;
constexpr bool is_frame(const Event& event) { return event.kind < kWake / 2; }

// Entry of an event in its window; entries sort as events happen: time, counted from the start of the window, 10 bits; kind,
// 22; packet. Frames of one port at one time have an order of their own, whatever their packets.
inline constexpr int kEntryTimeShift = 54;
inline constexpr int kEntryKindShift = 32;
inline constexpr uint64_t kEntryKinds = uint64_t{1} << (kEntryTimeShift - kEntryKindShift);
// Wakes are the upper half of kinds.
inline constexpr uint64_t kEntryWakes = kEntryKinds / 2;
constexpr uint64_t entry_of(uint64_t when, uint32_t kind, uint32_t packet) {
  return when << kEntryTimeShift | (kind & (kEntryKinds - 1)) << kEntryKindShift | packet;
}
// `start`: of the window.
constexpr Event event_of(uint64_t entry, Time start, uint32_t device) {
  const auto kind = static_cast<uint32_t>(entry >> kEntryKindShift & (kEntryKinds - 1));
  const uint32_t whole = kind < kEntryWakes ? kind : kind | ~static_cast<uint32_t>(kEntryKinds - 1);
  return {start + static_cast<Time>(entry >> kEntryTimeShift), whole, static_cast<uint32_t>(entry), device};
}
constexpr bool before(uint64_t a, uint64_t b) {
  const uint64_t first = a >> kEntryKindShift, second = b >> kEntryKindShift;
  return first != second ? first < second : (first & kEntryWakes) != 0 && a < b;
}
// Frames that arrive at one time.
constexpr bool of_one_port(uint64_t a, uint64_t b) {
  return a >> kEntryKindShift == b >> kEntryKindShift && (a >> kEntryKindShift & kEntryWakes) == 0;
}

}  // namespace weir
