// Priority-based flow control (IEEE 802.1Qbb, frames of IEEE 802.3 annex 31D), both directions, for switch and NIC. PAUSE frames
// (IEEE 802.3x, annex 31B) may take its place, which stop a whole link: then they say XOFF while any priority is meant to be
// stopped.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"
#include "wire/mac_control.h"
#include "wire/packet.h"

namespace weir {

inline constexpr uint16_t kMaxPauseQuanta = 65'535;
// An unlimited link's peer may be this fast, so that a pause sent there is refreshed in time.
inline constexpr Rate kFastestLink = 400'000'000'000;

// Returns how long `quanta` pause quanta of 512 bit times last on a link of `rate`, in ns, rounded down. 0 for an unlimited link.
constexpr Time pause_time(uint16_t quanta, Rate rate) {
  return rate > 0 ? static_cast<Time>(static_cast<uint64_t>(quanta) * 512 * 1'000'000'000 / static_cast<uint64_t>(rate)) : 0;
}

// Frames of flow control that devices make have no bytes until they leave.
constexpr bool is_flow_control(FrameKind kind) { return kind == FrameKind::pfc || kind == FrameKind::pause; }
// Reads such a frame: XOFF, or XON.
inline PfcFrame pfc_frame(const Packet& packet) {
  PfcFrame frame;
  frame.enable = packet.pfc_enable;
  for (size_t p = 0; p < kPriorities; ++p) frame.quanta[p] = (packet.pfc_xoff >> p & 1) != 0 ? packet.pfc_quanta : 0;
  return frame;
}
inline uint16_t pause_quanta(const Packet& packet) { return packet.pfc_xoff != 0 ? packet.pfc_quanta : uint16_t{0}; }
// Its bytes, to `out`; returns their length.
inline uint32_t build_flow_control(uint8_t* out, const Packet& packet) {
  return packet.meta.kind == FrameKind::pause ? build_pause(out, packet.meta.source_mac, pause_quanta(packet))
                                              : build_pfc(out, packet.meta.source_mac, pfc_frame(packet));
}

// The sending side of one port: which priorities are stopped, and when a PFC frame is owed. A stop is refreshed when half
// of its time has run, so that it never expires while it is meant.
class PfcSender {
 public:
  PfcSender() { refresh_at_.fill(kNever); }
  // `rate`: of the link, to know how long a pause of `quanta` lasts there; 0 counts as kFastestLink. `link`: by PAUSE frames.
  void configure(Rate rate, bool link = false, uint16_t quanta = kMaxPauseQuanta) {
    lifetime_ = pause_time(quanta, rate > 0 ? rate : kFastestLink);
    quanta_ = quanta;
    link_ = link;
  }

  bool stopped(int priority) const { return (stopped_ >> priority & 1) != 0; }
  uint8_t stopped_mask() const { return stopped_; }
  void stop(int priority, Time now);
  void resume(int priority, Time now);
  // Nothing is stopped any more, and no frame owed: the peer has lost what it was told.
  void clear(Time now);
  // Time that a priority has been stopped so far, up to `now`.
  Time stopped_for(int priority, Time now) const {
    const size_t p = static_cast<size_t>(priority);
    return total_[p] + (stopped(priority) ? now - since_[p] : 0);
  }

  // Priorities that the next frame speaks of; 0 = none owed.
  uint8_t owed() const { return owed_; }
  // Takes the frame that is owed: its priorities, and in `xoff` those that stay stopped. Starts their refresh time.
  uint8_t take(Time now, uint8_t& xoff);
  // The same as a packet from `source_mac`.
  void make(Time now, uint64_t source_mac, Packet& packet);
  // Earliest refresh, or kNever.
  Time next_deadline() const { return next_refresh_; }
  // Makes refreshes that are due owed.
  void advance(Time now) {
    if (now >= next_refresh_) refresh(now);
  }

 private:
  void refresh(Time now);
  void find_next();

  uint8_t stopped_ = 0;
  uint8_t owed_ = 0;
  bool link_ = false;
  uint16_t quanta_ = kMaxPauseQuanta;
  Time lifetime_ = pause_time(kMaxPauseQuanta, kFastestLink);
  Time next_refresh_ = kNever;
  std::array<Time, kPriorities> refresh_at_;
  std::array<Time, kPriorities> since_{};
  std::array<Time, kPriorities> total_{};
};

// The obeying side of one port: until when each priority may not start a frame.
class PauseState {
 public:
  // A pause of `quanta` for `priority` that arrived at `now`; 0 resumes.
  void apply(int priority, uint16_t quanta, Time now, Rate rate);
  // Lets pauses that have run out by `now` end.
  void advance(Time now) {
    if (paused_ != 0) end(now);
  }
  uint8_t paused_mask() const { return paused_; }
  // When the next of `priorities` (a mask) that is paused may send again; kNever if none of them is paused.
  Time next_resume(uint8_t priorities) const;
  // Pauses that have ended, as far as anybody has looked.
  uint64_t ended(int priority) const { return ended_[static_cast<size_t>(priority)]; }
  // Time spent paused so far, ended pauses and the running one up to `now`.
  Time paused_for(int priority, Time now) const;

 private:
  void end(Time now);

  std::array<Time, kPriorities> since_{};
  std::array<Time, kPriorities> until_{};
  std::array<Time, kPriorities> total_{};
  std::array<uint32_t, kPriorities> ended_{};
  uint8_t paused_ = 0;
};

}  // namespace weir
