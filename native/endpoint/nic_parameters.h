// Parameters of a soft NIC.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "congestion/controller.h"
#include "congestion/dcqcn_notification_point.h"
#include "endpoint/flow.h"
#include "endpoint/message_listener.h"
#include "endpoint/receive_buffer.h"
#include "link/pfc.h"
#include "link/scheduler.h"
#include "wire/ip.h"
#include "wire/priority_map.h"

namespace weir {

// Choice of the queue pairs that are one flow where congestion control is about several together (QCN).
enum class FlowSelection : uint8_t {
  queue_pair,
  application,      // QueuePairParameters::application
  destination_mac,  // that of the path
  five_tuple        // IP addresses and UDP ports of the path
};
constexpr auto words_of(FlowSelection) { return std::array{"qp", "application", "destination-mac", "five-tuple"}; }

// IEEE 802.1Q clause 31: endpoint/flow_table.h.
struct FlowGrouping {
  uint8_t priorities = 1 << 3;
  FlowSelection selection = FlowSelection::queue_pair;
  uint32_t most = 1;
  bool cn_tag = true;
  bool cnms_by_ip = false;
  Limiter limiter = Limiter::pacer;
  TokenBucketParameters token_bucket;
  std::array<std::optional<QcnParameters>, kPriorities> rpgs;  // parameters of CNPVs, in place of NicParameters::congestion

  // Whether flows may stay as they are.
  bool same_flows(const FlowGrouping& other) const {
    return priorities == other.priorities && selection == other.selection && most == other.most && cn_tag == other.cn_tag &&
           cnms_by_ip == other.cnms_by_ip && limiter == other.limiter;
  }
};
void describe(auto& v, Of<FlowGrouping> auto& p) {
  v.type("NativeFlowGrouping", "Which queue pairs are one flow, where congestion control hears CNMs.");
  v("cn_priorities", p.priorities,
    field::optional(field::any("Mask of congestion notification priority values (CNPVs): queue pairs of these have groups.")));
  v("flows", p.selection, field::optional(field::any("What makes queue pairs one flow: one reaction point, one rate.")));
  v("reaction_points", p.most, field::optional(field::any("Most of a CNPV (rpppMaxRps); all together 65535 at most.")));
  v("cn_tag", p.cn_tag, field::optional(field::any("Data frames name their flow in a CN-TAG.")));
  v("cnms_by_ip", p.cnms_by_ip, field::optional(field::any("CNMs are datagrams, and no others are believed.")));
  v("limiter", p.limiter, field::optional(field::any("What holds a flow to its rate.")));
  v("token_bucket", p.token_bucket, field::optional(field::any("With the limiter of that name.")));
  v("rpgs", p.rpgs, field::optional(field::any("Of each CNPV: what its reaction point group (RPG) runs on, in place of `qcn`.")));
}

// A fault to try a fabric with: the NIC pauses its peer from `start` to `stop`, whatever its buffer holds.
struct PauseStorm {
  uint8_t priorities = 0;
  uint16_t quanta = kMaxPauseQuanta;
  Time start = 0;
  Time stop = kNever;

  uint8_t at(Time now) const { return now >= start && now < stop ? priorities : uint8_t{0}; }
  // When it begins or ends after `now`; kNever if it does not.
  Time next(Time now) const { return priorities == 0 ? kNever : now < start ? start : now < stop ? stop : kNever; }
};
void describe(auto& v, Of<PauseStorm> auto& p) {
  v.type("NativePauseStorm", "When a NIC pauses its peer, whatever its buffer holds.");
  v("priorities", p.priorities, field::any("Mask; 0: never."));
  v("quanta", p.quanta,
    field::optional(field::within(1, kMaxPauseQuanta, "Of 512 bit times, that each frame asks for; refreshed at half of them.")));
  v("start", p.start, field::ns("From the start."));
  v("stop", p.stop, field::optional(field::any("Likewise; without it, it goes on.", "ns")));
}

inline constexpr uint8_t kNoTrimmedDscp = 64;
inline constexpr uint8_t kPriorityOfData = kPriorities;

// Number of a NIC's first queue pair that streams, where nobody chooses another.
inline constexpr uint32_t kFirstStreamQpn = 0x11;

struct NicParameters {
  Rate rate = 0;
  uint64_t mac = 0;
  uint32_t first_qpn = kFirstStreamQpn;
  CongestionParameters congestion = DcqcnParameters{};
  FlowGrouping grouping;
  Time cnp_interval = 50 * kMicrosecond;
  Time cnp_nic_interval = 0;
  uint8_t cnp_dscp = 48;
  uint8_t cnp_priority = 6;
  uint8_t ack_dscp = 48;
  uint8_t ack_priority = kPriorityOfData;
  uint64_t seed = 1;
  uint64_t component = 0;
  // Section 3.1. A QP is active from its first packet to its end, also while it has nothing to send: it goes on at the rate it
  // has. initial_rate: "local QoS policies".
  bool line_rate_start = true;
  Rate initial_rate = 0;
  uint8_t pfc_priorities = 1 << 3;
  bool link_pause = false;
  SchedulerParameters scheduler;
  PriorityMap priority_map;
  uint8_t trimmed_dscp = kNoTrimmedDscp;
  ReceiveBufferParameters receive_buffer;
  PauseStorm pause_storm;
  uint32_t stack_queue = 0;
  uint32_t verbs_queue_pairs = 0;
  uint32_t memory_regions = 0;
  std::vector<IpAddress> addresses;
  uint16_t vlan = 0;                    // 802.1Q: frames of others are not for the NIC; 0: all are
  bool lldp = false;                    // LLDPDUs are for the slow path, whatever the VLAN
  uint64_t key_secret = 0;              // secret without which keys of memory regions cannot be guessed
  MessageListener* listener = nullptr;  // hears of what streams complete; outlives the NIC

  // Whether flows may stay as they are.
  bool same_flows(const NicParameters& other) const {
    return congestion.index() == other.congestion.index() && seed == other.seed && component == other.component &&
           ((hears(congestion) & kHearsCnms) == 0 || grouping.same_flows(other.grouping));
  }
};
void describe(auto& v, Of<NicParameters> auto& p) {
  v.type("NativeNicParameters", "How a NIC behaves.");
  v("rate", p.rate, field::above(field::bps("Of its link.")));
  v("mac", p.mac, field::any("Its address."));
  v("first_qpn", p.first_qpn, field::optional(field::any("Queue pairs get consecutive numbers from here.")));
  v("congestion_control", p.congestion, field::any("Which algorithm."));
  v.base(p.grouping);
  v("cnp_interval", p.cnp_interval, kMinTimeBetweenCnps);
  v("cnp_nic_interval", p.cnp_nic_interval,
    field::optional(field::ns("Between two CNPs of the NIC, whichever flows they are of; 0: no limit.")));
  v("cnp_dscp", p.cnp_dscp, field::within(0, 63, "Of CNPs."));
  v("cnp_priority", p.cnp_priority, field::priority("Of CNPs."));
  v("ack_dscp", p.ack_dscp, field::optional(field::within(0, 63, "Of acknowledgements and NAKs, where they have a priority.")));
  v("ack_priority", p.ack_priority,
    field::optional(field::within(0, kPriorityOfData, "Of acknowledgements and NAKs; 8: they are as their data.")));
  v("seed", p.seed, field::optional(field::any("Of what congestion control draws.")));
  v("component", p.component, field::optional(field::any("Which NIC this is: keys its random streams.")));
  v("line_rate_start", p.line_rate_start,
    field::any("At line rate if no other queue pair of the NIC is active, else at initial_rate."));
  v("initial_rate", p.initial_rate, field::bps("0: line rate."));
  v("pfc_priorities", p.pfc_priorities, field::any("Mask; obeyed and, with a slow receiver, sent."));
  v("link_pause", p.link_pause,
    field::optional(
        field::any("The peer is stopped by 802.3x PAUSE frames, at all priorities; with all of them in pfc_priorities.")));
  v("scheduler", p.scheduler, field::any("Of what is sent."));
  v("priority_map", p.priority_map, field::any("Of what is received."));
  v("trimmed_dscp", p.trimmed_dscp,
    field::optional(field::within(0, kNoTrimmedDscp, "Of RoCEv2 packets that switches have trimmed; 64: there are none.")));
  v("receive_buffer", p.receive_buffer, field::any("Of its host."));
  v("pause_storm", p.pause_storm, field::optional(field::any("A fault to try a fabric with.")));
  v("stack_queue", p.stack_queue,
    field::optional(
        field::any("What the host's own stack sends may take of memory, per priority; 0: it sends by no NIC.", "bytes")));
  v("verbs_queue_pairs", p.verbs_queue_pairs,
    field::optional(field::within(0, 1 << 15, "Places for queue pairs of applications.")));
  v("memory_regions", p.memory_regions, field::optional(field::within(0, (1 << 24) - 2, "Places for applications' memory.")));
  v("addresses", p.addresses, field::optional(field::any("Own ones: datagrams to others are not taken.")));
  v("vlan", p.vlan, field::optional(field::within(0, 4094, "802.1Q: frames of others are not for the NIC; 0: all are.")));
  v("lldp", p.lldp, field::optional(field::any("LLDPDUs are handed up, whatever the VLAN.")));
}

}  // namespace weir
