// Pauses (PFC, or PAUSE frames in its place): what a switch is told by its peers, and tells them. link/pfc.h has the state of a
// port, pfc_watchdog.h finds peers that pause without end.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"
#include "switching/switch_state.h"
#include "wire/packet.h"

namespace weir {

class TrafficManager;

class Pauses {
 public:
  // Both must outlive it.
  Pauses(SwitchState& state, TrafficManager& traffic) : state_(state), traffic_(traffic) {}

  // The parameters have changed.
  void configure(SwitchPort& port);
  // A peer that was stopped at a priority that is lossy now would never be resumed: it is now.
  void resume_lossy(SwitchPort& port);

  // Priorities that are not under PFC here do not obey.
  void receive_pfc(Time now, uint16_t port, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta);
  void receive_pause(Time now, uint16_t port, uint16_t quanta);
  // The link at `port` has failed: what its two ends have asked of each other by PFC is over.
  void end(Time now, uint16_t port);

  uint8_t paused_mask(uint16_t port) const { return state_.ports[port].egress.pause.paused_mask(); }
  uint8_t pausing_mask(uint16_t port) const { return state_.ports[port].egress.pfc.stopped_mask(); }
  // Whether the peer at `port` is paused by us at `priority`.
  bool stopped(uint16_t port, int priority) const { return state_.ports[port].egress.pfc.stopped(priority); }
  // Egress queues that the watchdog has found to be paused without end.
  uint8_t storm_mask(uint16_t port) const {
    const SwitchPort& of = state_.ports[port];
    return of.watchdog ? of.watchdog->storms() : uint8_t{0};
  }

  // A frame that came in at `in` joins a queue, or one has left the buffer: peers are stopped, or resumed.
  void check_xoff(SwitchPort& in, int priority) {
    if ((state_.parameters.pfc_priorities >> priority & 1) != 0 && state_.buffer.above_xoff(in.number(), priority))
      stop_peer(in, priority);
  }
  void check_xon() {
    if (state_.stopped != 0) resume_peers();
  }
  void stop_for_want_of_headroom(SwitchPort& in, int priority);
  // The frame that is owed to the port's peer, or kNoPacket where there is no descriptor.
  PacketId make_frame(SwitchPort& out);
  // Looks at the port's watchdog if its time has come.
  void advance_watchdog(SwitchPort& port) {
    if (port.watchdog && state_.now >= port.watchdog->next()) run_watchdog(port);
  }

 private:
  void obey(Time now, SwitchPort& port, uint8_t enable, uint8_t obeyed, const std::array<uint16_t, kPriorities>& quanta);
  void run_watchdog(SwitchPort& port);
  void begin_storm(SwitchPort& port, int priority);
  void stop_peer(SwitchPort& in, int priority);
  void resume_peers();
  void resume(SwitchPort& port, int priority);

  SwitchState& state_;
  TrafficManager& traffic_;
};

}  // namespace weir
