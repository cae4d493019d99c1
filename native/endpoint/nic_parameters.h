// What a soft NIC is configured with.
#pragma once

#include <cstdint>
#include <vector>

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

// What holds a flow to its rate under QCN.
enum class Limiter : uint8_t { pacer, token_bucket };

enum class CongestionControl : uint8_t {
  none,   // no rate control, no CNPs
  dcqcn,  // a reaction point for each queue pair, a notification point for each incoming flow
  qcn,    // reaction points of IEEE 802.1Q clause 31: endpoint/reaction_points.h
  dctcp   // a window for each reliable stream: endpoint/reliable_stream.h; no rate control, no CNPs
};

struct NicParameters {
  Rate rate = 0;  // of the link; must be > 0
  uint64_t mac = 0;
  uint32_t first_qpn = 0x11;  // QPs get consecutive numbers from here
  CongestionControl congestion_control = CongestionControl::dcqcn;
  DcqcnParameters reaction_point;
  Time cnp_interval = 50 * kMicrosecond;  // N
  uint8_t cnp_dscp = 48;
  uint8_t cnp_priority = 6;
  DctcpParameters dctcp;
  QcnParameters qcn;
  uint8_t cn_priorities = 1 << 3;  // congestion notification priority values (CNPVs): queue pairs of these are governed
  FlowSelection flows = FlowSelection::queue_pair;
  uint32_t reaction_points = 1;  // most of a CNPV (rpppMaxRps); all together 65535 at most
  bool cn_tag = true;            // data frames name their flow in a CN-TAG
  Limiter limiter = Limiter::pacer;
  TokenBucketParameters token_bucket;
  uint64_t seed = 1;       // of the jitter of reaction points ...
  uint64_t component = 0;  // ... and whose it is
  // Section 3.1. A QP is active from its first packet to its end, also while it has nothing to send: it goes on at the rate it
  // has.
  bool line_rate_start = true;      // full line rate if no other QP of this NIC is active ...
  Rate initial_rate = 0;            // ... else this ("local QoS policies"); 0 = line rate
  uint8_t pfc_priorities = 1 << 3;  // obeyed and, with a slow receiver, sent
  SchedulerParameters scheduler;
  PriorityMap priority_map;  // of what is received
  ReceiveBufferParameters receive_buffer;
  uint32_t verbs_queue_pairs = 0;       // places for queue pairs of applications, up to 2^15
  uint32_t memory_regions = 0;          // up to 2^24 - 2
  std::vector<IpAddress> addresses;     // own ones: to others no datagram is taken
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

// Throws NativeError INVALID_CONFIG for a parameter that a NIC cannot run with.
void check(const NicParameters& parameters);

}  // namespace weir
