// A NIC stops its peer by PFC for a full buffer, for programs and for a pause storm, and obeys the peer.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "endpoint/nic_state.h"

namespace weir {

class NicPauses {
 public:
  explicit NicPauses(NicState& nic) : nic_(nic) {}

  void stop_peer(int priority) {
    if (!nic_.egress.pfc.stopped(priority)) nic_.egress.pfc.stop(priority, nic_.now);
  }
  // Stops the peer until programs have room. If the priority is not lossless, a frame that finds no room is lost.
  void wait_for_programs(int priority) {
    const auto bit = static_cast<uint8_t>(1u << priority & nic_.parameters.pfc_priorities);
    if (bit == 0 || (nic_.awaited & bit) != 0) return;
    nic_.awaited |= bit;
    stop_peer(priority);
  }
  // A pause storm begins, or ends: then what it has stopped goes on, unless the host's buffer is full.
  void keep_to_storm() {
    const PauseStorm& storm = nic_.parameters.pause_storm;
    for (uint8_t left = storm.at(nic_.now); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      nic_.egress.pfc.stop(__builtin_ctz(left), nic_.now);
    }
    nic_.storm_at = storm.next(nic_.now);
  }
  // Resumes the priorities that nothing holds stopped any more.
  void resume_peer() {
    const uint8_t stays = nic_.parameters.pause_storm.at(nic_.now) | nic_.awaited;
    for (uint8_t left = nic_.egress.pfc.stopped_mask() & ~stays; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      const int priority = __builtin_ctz(left);
      if (nic_.receive_buffer.below_xon(priority)) nic_.egress.pfc.resume(priority, nic_.now);
    }
  }
  // The peer has asked for it.
  void obey(int priority, uint16_t quanta) {
    ++nic_.by_priority(priority).rx_prio_pause;
    nic_.egress.pause.apply(priority, quanta, nic_.now, nic_.parameters.rate);
  }
  // Both ends forget what they have asked of each other.
  void forget_all() {
    nic_.egress.pfc.clear(nic_.now);
    for (int priority = 0; priority < kPriorities; ++priority) {
      nic_.egress.pause.apply(priority, 0, nic_.now, nic_.parameters.rate);
    }
  }

 private:
  NicState& nic_;
};

}  // namespace weir
