// What a switch is told: its ports, and how it shares, marks, pauses, schedules and learns.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "congestion/qcn_congestion_point.h"
#include "congestion/red_marker.h"
#include "link/scheduler.h"
#include "switching/congestion_notification.h"
#include "switching/shared_buffer.h"
#include "switching/storm_control.h"
#include "wire/packet.h"
#include "wire/priority_map.h"

namespace weir {

struct SwitchParameters {
  struct Port {
    Rate rate = 0;                                    // of the link, both directions; 0 = unlimited
    uint32_t mtu = 1500;                              // largest IP packet; a frame may be 14 (18 tagged) bytes longer
    uint64_t mac = 0;                                 // source address of the PFC frames sent here
    bool offloads = false;                            // the interface takes partial checksums and super-frames (Packet::offload)
    std::array<Rate, kPriorities> priority_rates{};   // most that each egress queue may send; 0 = no limit
    std::array<int64_t, kPriorities> queue_limits{};  // most bytes that each egress queue may hold; 0 = no limit
    std::array<CnDefence, kPriorities> cn_defence = kInterior;  // of CNPVs
    std::array<uint8_t, kPriorities> cn_alternate_priority{};   // of CNPVs at edge: no CNPVs
    uint32_t max_learned_addresses = 0;                         // that the forwarding table may have of it; 0 = no limit
    StormRates storm_rates{};                                   // most that is flooded of what comes in
  };
  std::vector<Port> ports;
  BufferParameters buffer;
  uint8_t pfc_priorities = 1 << 3;  // mask; 0 switches PFC off
  uint8_t ecn_priorities = 1 << 3;  // mask; 0 switches marking off
  bool mark_on_dequeue = false;     // the paper marks the arriving packet; HPCC's switch marks the leaving one
  RedParameters red;
  uint8_t cn_priorities = 0;          // mask of congestion notification priority values (CNPVs), at most 7; 0 switches QCN off
  uint8_t cnm_priority = 6;           // of CNMs, those made here and those that pass; no CNPV, and one that is served strictly
  uint32_t cp_min_header_octets = 0;  // 0..64: how much of the sampled frame a CNM has
  QcnCongestionParameters qcn;
  SchedulerParameters scheduler;
  PriorityMap priority_map;
  bool learning = false;
  Time ageing = 300 * kSecond;  // IEEE 802.1Q clause 8.8.3
  uint32_t fdb_capacity = 16'384;
  uint64_t seed = 1;       // of marking
  uint64_t hash_seed = 1;  // of the choice among next hops
  uint64_t component = 0;  // which switch this is: keys its random streams and its next-hop hash
};

// Throws NativeError INVALID_CONFIG for a parameter that a switch cannot run with.
void check(const SwitchParameters& parameters);

}  // namespace weir
