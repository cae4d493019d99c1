// Samples of a switch (base/record.h).
#pragma once

#include <cstdint>

#include "base/record.h"
#include "switching/soft_switch.h"

namespace weir {

inline uint32_t place_of(uint16_t port, int priority) { return static_cast<uint32_t>(port * kPriorities + priority); }

// Samples an egress queue of switch number `device`, with its counters. Starts its peak afresh.
inline Record sample_queue(SoftSwitch& of, const SwitchPriorityCounters& counters, Time at, uint16_t device, uint16_t port,
                           int priority) {
  return {at,
          Record::Kind::queue,
          device,
          place_of(port, priority),
          {static_cast<double>(of.queue_bytes(port, priority)), static_cast<double>(of.statistics().take_peak(port, priority)),
           static_cast<double>(counters.wred_ecn_marked_packets), static_cast<double>(counters.cn_cp_transmitted_cnms)}};
}

// Samples how it pauses its peer at a port, with the counters of that.
inline Record sample_pause(SoftSwitch& of, const SwitchPriorityCounters& counters, Time at, uint16_t device, uint16_t port,
                           int priority) {
  return {at,
          Record::Kind::pause,
          device,
          place_of(port, priority),
          {static_cast<double>(counters.pfc_tx_packets), of.pauses().stopped(port, priority) ? 1.0 : 0.0,
           static_cast<double>(of.buffer().ingress_bytes(port, priority))}};
}

}  // namespace weir
