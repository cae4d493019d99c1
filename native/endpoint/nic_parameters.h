// What a soft NIC is configured with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "congestion/dcqcn_reaction_point.h"
#include "congestion/dctcp_sender.h"
#include "congestion/qcn_reaction_point.h"
#include "endpoint/message_listener.h"
#include "endpoint/receive_buffer.h"
#include "link/scheduler.h"
#include "link/token_bucket.h"
#include "wire/ip.h"
#include "wire/priority_map.h"

namespace weir {

// What makes queue pairs one flow under QCN: one reaction point, one rate.
enum class FlowSelection : uint8_t {
  queue_pair,
  application,      // QueuePairParameters::application
  destination_mac,  // of the path
  five_tuple        // IP addresses and UDP ports of the path
};
constexpr auto words_of(FlowSelection) { return std::array{"qp", "application", "destination-mac", "five-tuple"}; }

// What holds a flow to its rate under QCN.
enum class Limiter : uint8_t { pacer, token_bucket };
constexpr auto words_of(Limiter) { return std::array{"pacer", "token-bucket"}; }

enum class CongestionControl : uint8_t {
  none,   // no rate control, no CNPs
  dcqcn,  // a reaction point for each queue pair, a notification point for each incoming flow
  qcn,    // reaction points of IEEE 802.1Q clause 31: endpoint/reaction_points.h
  dctcp   // a window for each reliable stream: endpoint/reliable_stream.h; no rate control, no CNPs
};
constexpr auto words_of(CongestionControl) { return std::array{"none", "dcqcn", "qcn", "dctcp"}; }

struct NicParameters {
  Rate rate = 0;
  uint64_t mac = 0;
  uint32_t first_qpn = 0x11;
  CongestionControl congestion_control = CongestionControl::dcqcn;
  DcqcnParameters reaction_point;
  Time cnp_interval = 50 * kMicrosecond;
  uint8_t cnp_dscp = 48;
  uint8_t cnp_priority = 6;
  DctcpParameters dctcp;
  QcnParameters qcn;
  uint8_t cn_priorities = 1 << 3;
  FlowSelection flows = FlowSelection::queue_pair;
  uint32_t reaction_points = 1;
  bool cn_tag = true;
  Limiter limiter = Limiter::pacer;
  TokenBucketParameters token_bucket;
  uint64_t seed = 1;
  uint64_t component = 0;
  // Section 3.1. A QP is active from its first packet to its end, also while it has nothing to send: it goes on at the rate it
  // has. initial_rate: "local QoS policies".
  bool line_rate_start = true;
  Rate initial_rate = 0;
  uint8_t pfc_priorities = 1 << 3;
  SchedulerParameters scheduler;
  PriorityMap priority_map;
  ReceiveBufferParameters receive_buffer;
  uint32_t verbs_queue_pairs = 0;
  uint32_t memory_regions = 0;
  std::vector<IpAddress> addresses;
  uint64_t key_secret = 0;              // who does not know it cannot guess keys of memory regions
  MessageListener* listener = nullptr;  // hears of what streams complete; outlives the NIC

  // Whether queue pairs have the same reaction points, so that these may stay.
  bool same_flows(const NicParameters& other) const {
    if (congestion_control != other.congestion_control) return false;
    return congestion_control != CongestionControl::qcn ||
           (cn_priorities == other.cn_priorities && flows == other.flows && reaction_points == other.reaction_points &&
            cn_tag == other.cn_tag && limiter == other.limiter && seed == other.seed && component == other.component);
  }
};
void describe(auto& v, Of<NicParameters> auto& p) {
  v.type("NativeNicParameters", "How a NIC behaves.");
  v("rate", p.rate, field::above(field::bps("Of its link.")));
  v("mac", p.mac, field::any("Its address."));
  v("first_qpn", p.first_qpn, field::optional(field::any("Queue pairs get consecutive numbers from here.")));
  v("congestion_control", p.congestion_control, field::any("Which algorithm."));
  v("reaction_point", p.reaction_point, field::optional(field::any("With dcqcn.")));
  v("cnp_interval", p.cnp_interval, field::ns("N: between two CNPs of one flow."));
  v("cnp_dscp", p.cnp_dscp, field::within(0, 63, "Of CNPs."));
  v("cnp_priority", p.cnp_priority, field::priority("Of CNPs."));
  v("dctcp", p.dctcp, field::optional(field::any("With dctcp, which is of reliable flows of simulations.")));
  v("qcn", p.qcn, field::optional(field::any("With qcn, as all that follows up to component.")));
  v("cn_priorities", p.cn_priorities, field::optional(field::any("Mask of congestion notification priority values (CNPVs).")));
  v("flows", p.flows, field::optional(field::any("What makes queue pairs one flow: one reaction point, one rate.")));
  v("reaction_points", p.reaction_points, field::optional(field::any("Most of a CNPV; all together 65535 at most.")));
  v("cn_tag", p.cn_tag, field::optional(field::any("Data frames name their flow in a CN-TAG.")));
  v("limiter", p.limiter, field::optional(field::any("What holds a flow to its rate.")));
  v("token_bucket", p.token_bucket, field::optional(field::any("With the limiter of that name.")));
  v("seed", p.seed, field::optional(field::any("Of the jitter of reaction points.")));
  v("component", p.component, field::optional(field::any("Which NIC this is: keys its random streams.")));
  v("line_rate_start", p.line_rate_start,
    field::any("At line rate if no other queue pair of the NIC is active, else at initial_rate."));
  v("initial_rate", p.initial_rate, field::bps("0: line rate."));
  v("pfc_priorities", p.pfc_priorities, field::any("Mask; obeyed and, with a slow receiver, sent."));
  v("scheduler", p.scheduler, field::any("Of what is sent."));
  v("priority_map", p.priority_map, field::any("Of what is received."));
  v("receive_buffer", p.receive_buffer, field::any("Of its host."));
  v("verbs_queue_pairs", p.verbs_queue_pairs,
    field::optional(field::within(0, 1 << 15, "Places for queue pairs of applications.")));
  v("memory_regions", p.memory_regions, field::optional(field::within(0, (1 << 24) - 2, "Places for applications' memory.")));
  v("addresses", p.addresses, field::optional(field::any("Own ones: datagrams to others are not taken.")));
}

}  // namespace weir
