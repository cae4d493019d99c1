// Parameters of a switch: its ports, and how it shares, marks, pauses, schedules and learns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "congestion/qcn_congestion_point.h"
#include "congestion/red_marker.h"
#include "link/scheduler.h"
#include "switching/congestion_notification.h"
#include "switching/load_balancing.h"
#include "switching/pfc_watchdog.h"
#include "switching/router_parameters.h"
#include "switching/shared_buffer.h"
#include "switching/storm_control.h"
#include "switching/vlan_table.h"
#include "wire/packet.h"
#include "wire/priority_map.h"
#include "wire/qcn.h"
#include "wire/trim.h"

namespace weir {

// Packet trimming, as in SONiC ("SONiC Packet Trimming", HLD): frames of lossy classes that find no room go on without most of
// their payload (wire/trim.h), in another queue.
struct TrimmingParameters {
  uint8_t priorities = 0;
  uint32_t size = kLeastTrimSize;
  uint8_t dscp = 0;
  uint8_t queue = 0;
  int64_t buffer = 0;
};
void describe(auto& v, Of<TrimmingParameters> auto& p) {
  v.type("NativeTrimming", "What is left of frames that find no room.");
  v("priorities", p.priorities, field::any("Mask of those whose frames are trimmed; lossy ones."));
  v("size", p.size, field::bytes("What is left of them, from the Ethernet header on.", kLeastTrimSize, kMostTrimSize));
  v("dscp", p.dscp, field::within(0, 63, "Of what is left."));
  v("queue", p.queue, field::priority("By which it goes on: a lossy one, and none of those trimmed."));
  v("buffer", p.buffer,
    field::optional(field::bytes("Most that this queue holds at a port; 0: what any lossy one may.", 0, 0x1p40)));
}

struct SwitchParameters {
  struct Port {
    Rate rate = 0;
    uint32_t mtu = 1500;
    uint64_t mac = 0;
    bool offloads = false;  // the interface takes partial checksums and super-frames (Packet::offload)
    std::array<Rate, kPriorities> priority_rates{};
    std::array<int64_t, kPriorities> queue_limits{};
    std::array<CnDefence, kPriorities> cn_defence = kInterior;
    std::array<uint8_t, kPriorities> cn_alternate_priority{};
    uint32_t max_learned_addresses = 0;
    StormRates storm_rates{};
    std::optional<PortVlans> vlans;
    bool floods = false;
    std::optional<RedParameters> red;
    std::optional<PortBuffer> buffer;
    std::optional<QcnCongestionParameters> qcn;
  };
  std::vector<Port> ports;
  BufferParameters buffer;
  uint8_t pfc_priorities = 1 << 3;
  bool link_pause = false;
  PfcWatchdogParameters pfc_watchdog;
  TrimmingParameters trimming;
  uint8_t ecn_priorities = 1 << 3;
  bool mark_on_dequeue = false;
  bool telemetry = false;
  RedParameters red;
  uint8_t cn_priorities = 0;
  uint8_t cnm_priority = 6;
  uint32_t cp_min_header_octets = 0;
  bool cnms_by_ip = false;
  QcnCongestionParameters qcn;
  SchedulerParameters scheduler;
  PriorityMap priority_map;
  bool learning = false;
  Time ageing = 300 * kSecond;  // IEEE 802.1Q clause 8.8.3
  uint32_t fdb_capacity = 16'384;
  LoadBalancing load_balancing = LoadBalancing::ecmp;
  Time flowlet_gap = 0;
  uint64_t seed = 1;
  uint64_t hash_seed = 1;
  uint64_t component = 0;
  RouterParameters router;
};
inline const RedParameters& red_of(const SwitchParameters& p, size_t port) {
  return p.ports[port].red ? *p.ports[port].red : p.red;
}
inline std::vector<std::optional<PortBuffer>> port_buffers(const SwitchParameters& p) {
  std::vector<std::optional<PortBuffer>> own;
  for (const SwitchParameters::Port& port : p.ports) own.push_back(port.buffer);
  return own;
}
inline FixedQueue fixed_queue(const TrimmingParameters& p) {
  return p.priorities == 0 || p.buffer == 0 ? FixedQueue{} : FixedQueue{.priority = p.queue, .bytes = p.buffer};
}
// Whether the router's interfaces are at ports that there are, and only one of each VLAN at a port.
inline bool interfaces_have_ports(const SwitchParameters& p) {
  for (size_t i = 0; i < p.router.interfaces.size(); ++i) {
    const auto& own = p.router.interfaces[i];
    if (own.port != kAnyPort && own.port >= p.ports.size()) return false;
    for (size_t j = 0; j < i; ++j) {
      if (p.router.interfaces[j].port == own.port && p.router.interfaces[j].vlan == own.vlan) return false;
    }
  }
  return std::ranges::all_of(p.router.neighbours, [&](const auto& each) { return each.port < p.ports.size(); });
}
// Whether the router's interfaces at the ports that bridge are in VLANs, where those are.
inline bool interfaces_have_vlans(const SwitchParameters& p) {
  if (std::ranges::none_of(p.ports, [](const auto& port) { return port.vlans.has_value(); })) return true;
  return std::ranges::all_of(p.router.interfaces, [](const auto& own) { return own.port != kAnyPort || own.vlan != 0; });
}
// Whether frames that meet an edge of a CNPV have a priority to go on with.
inline bool alternates_are_free(const SwitchParameters& p) {
  return std::ranges::all_of(p.ports, [&](const SwitchParameters::Port& port) {
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      if ((p.cn_priorities >> priority & 1) == 0 || port.cn_defence[priority] != CnDefence::edge) continue;
      const uint8_t alternate = port.cn_alternate_priority[priority];
      if (alternate >= kPriorities || (p.cn_priorities >> alternate & 1) != 0) return false;
    }
    return true;
  });
}
void describe(auto& v, Of<SwitchParameters::Port> auto& p) {
  v.type("NativeSwitchPort", "What a switch knows of a port.");
  v("rate", p.rate, field::bps("Of the link, both directions; 0: unlimited."));
  v("mtu", p.mtu, field::bytes("Largest IP packet; a frame may be 14 (18 tagged) bytes longer.", 0, 1 << 20));
  v("mac", p.mac, field::any("Source address of the PFC frames sent there."));
  v("priority_rates", p.priority_rates, field::optional(field::bps("Most that each egress queue may send; 0: no limit.")));
  v("queue_limits", p.queue_limits, field::optional(field::bytes("Most that each egress queue may hold; 0: no limit.")));
  v("cn_defence", p.cn_defence, field::optional(field::any("By CNPV.")));
  v("cn_alternate_priority", p.cn_alternate_priority, field::optional(field::any("Of CNPVs at edge: no CNPVs.")));
  v("max_learned_addresses", p.max_learned_addresses, field::optional(field::any("0: no limit.")));
  v("storm_rates", p.storm_rates,
    field::optional(field::bps("Most that is flooded: broadcast, unknown unicast, multicast; 0: no limit.")));
  v("vlans", p.vlans, field::optional(field::any("Those that it is in; where no port is in any, tags pass as they come.")));
  v("floods", p.floods,
    field::optional(field::any("Where addresses are not learned: frames to groups come and go here. Such ports make a tree.")));
  v("red", p.red, field::optional(field::any("Marking here, in place of the switch's.")));
  v("buffer", p.buffer, field::optional(field::any("Thresholds and headroom here, in place of the switch's.")));
  v("qcn", p.qcn, field::optional(field::any("Congestion points here, in place of the switch's.")));
}
void describe(auto& v, Of<SwitchParameters> auto& p) {
  v.type("NativeSwitchParameters", "How a switch behaves.");
  v("ports", p.ports, field::any("Fewer than 2^15."));
  v("buffer", p.buffer, field::any("Shared by all ports."));
  v("pfc_priorities", p.pfc_priorities, field::any("Mask; 0: no PFC."));
  v("link_pause", p.link_pause,
    field::optional(
        field::any("Peers are stopped by 802.3x PAUSE frames, at all priorities; with all of them in pfc_priorities.")));
  v("pfc_watchdog", p.pfc_watchdog, field::optional(field::any("Of egress queues under PFC.")));
  v("trimming", p.trimming, field::optional(field::any("Of frames that find no room.")));
  v("ecn_priorities", p.ecn_priorities, field::any("Mask; 0: no marking."));
  v("mark_on_dequeue", p.mark_on_dequeue, field::any("The paper marks the arriving packet; HPCC's switch the leaving one."));
  v("telemetry", p.telemetry,
    field::optional(field::any("Ports with a rate write INT into packets that have room for it (wire/telemetry.h).")));
  v("red", p.red, field::any("Marking."));
  v("cn_priorities", p.cn_priorities,
    field::optional(field::any("Mask of congestion notification priority values (CNPVs), at most 7; 0: no QCN.")));
  v("cnm_priority", p.cnm_priority,
    field::optional(field::priority("Of CNMs, made here or passing: no CNPV, and one that is served strictly.")));
  v("cp_min_header_octets", p.cp_min_header_octets,
    field::optional(field::bytes("How much of the sampled frame a CNM has.", 0, kCnmMaxMsdu)));
  v("cnms_by_ip", p.cnms_by_ip, field::optional(field::any("CNMs are datagrams, as those of a switch that routes have to be.")));
  v("qcn", p.qcn, field::optional(field::any("Congestion points.")));
  v("scheduler", p.scheduler, field::any("Of every egress."));
  v("priority_map", p.priority_map, field::any("Of what comes in."));
  v("learning", p.learning, field::any("Addresses are learned, unknown ones flooded."));
  v("ageing", p.ageing, field::above(field::ns("Of learned addresses.")));
  v("fdb_capacity", p.fdb_capacity, field::optional(field::within(0, 1 << 24, "Entries of the forwarding table.")));
  v("load_balancing", p.load_balancing, field::optional(field::any("How one of several next hops is chosen.")));
  v("flowlet_gap", p.flowlet_gap, field::optional(field::ns("Without a frame, after which a flowlet is over.")));
  v("seed", p.seed, field::any("Of marking."));
  v("hash_seed", p.hash_seed, field::any("Of the choice among next hops."));
  v("component", p.component, field::any("Which switch this is: keys its random streams and its next-hop hash."));
  v("router", p.router, field::optional(field::any("Frames to its MAC address are routed.")));
  v.rule(p.ports.size() < 1u << 15, "it has fewer than 2^15 ports");
  v.rule(!p.link_pause || p.pfc_priorities == 0xff, "all priorities are lossless where PAUSE frames stop them");
  v.rule((p.trimming.priorities & p.pfc_priorities) == 0, "frames of lossless priorities are not trimmed");
  v.rule(p.trimming.priorities == 0 || ((p.trimming.priorities | p.pfc_priorities) >> p.trimming.queue & 1) == 0,
         "what is left of trimmed frames has a lossy priority of its own");
  v.rule(p.cn_priorities != 0xff, "at most 7 priorities are CNPVs");
  v.rule(interfaces_have_ports(p), "the router's interfaces and neighbours are at ports that it has, one of each VLAN at a port");
  v.rule(p.cn_priorities == 0 || p.cnms_by_ip == p.router.routes_at_all(),
         "CNMs of a switch that routes are datagrams, and those of others are not");
  v.rule(interfaces_have_vlans(p), "where ports are in VLANs, so are the router's interfaces without a port");
  v.rule(alternates_are_free(p), "alternate priorities are 0 to 7, and no CNPVs");
}

}  // namespace weir
