// A port of the switch: its egress, and what is counted and limited of frames that come in and leave there.
#pragma once

#include <cstdint>
#include <memory>

#include "base/types.h"
#include "switching/congestion_domain.h"
#include "switching/counters.h"
#include "switching/egress_port.h"
#include "switching/pfc_watchdog.h"
#include "switching/shared_buffer.h"
#include "switching/storm_control.h"
#include "wire/packet.h"

namespace weir {

struct SwitchPort {
  EgressPort egress;
  alignas(64) CongestionDomain::Port domain;
  bool remote = false;  // another shard's
  bool routed = false;  // the router's alone: nothing is bridged here
  SwitchPortCounters counters;
  StormControl storms;
  std::unique_ptr<PfcWatchdog> watchdog;

  uint16_t number() const { return egress.number(); }

  // Returns the counter of a frame that would be flooded if that is beyond what the port may.
  uint64_t* exceeded_storm_counter(Time now, const Packet& packet);

  // Counts frames that came in here, and have joined a queue or were not let in.
  void count_admitted(int priority, uint32_t frames) {
    if (frames > 1) ++counters.gso_passed;
    egress.queue(priority).counters.pg_packets += frames;
  }
  void count_refused(int priority, Admission why, uint32_t frames);
  // Counts a frame that a queue of this port has not taken.
  void count_discarded(int priority, Admission why) {
    SwitchPriorityCounters& queue = egress.queue(priority).counters;
    if (why == Admission::pfc_storm) {
      ++queue.pfc_wd_tx_drop;
    } else if (domain.has_point(priority)) {
      ++queue.cn_cp_discarded_frames;
    }
  }
  // Counts a frame of the switch's own that has left here.
  void count_own(const Packet& packet);
};

}  // namespace weir
