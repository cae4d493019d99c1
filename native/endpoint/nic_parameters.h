// What a soft NIC is configured with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "congestion/controller.h"
#include "endpoint/flow.h"
#include "endpoint/message_listener.h"
#include "endpoint/receive_buffer.h"
#include "link/scheduler.h"
#include "wire/ip.h"
#include "wire/priority_map.h"

namespace weir {

// What makes queue pairs one flow where congestion control is about several together (QCN).
enum class FlowSelection : uint8_t {
  queue_pair,
  application,      // QueuePairParameters::application
  destination_mac,  // of the path
  five_tuple        // IP addresses and UDP ports of the path
};

// IEEE 802.1Q clause 31: endpoint/flow_table.h.
struct FlowGrouping {
  uint8_t priorities = 1 << 3;  // congestion notification priority values (CNPVs): queue pairs of these have groups
  FlowSelection selection = FlowSelection::queue_pair;
  uint32_t most = 1;   // reaction points of a CNPV (rpppMaxRps); all together 65535 at most
  bool cn_tag = true;  // data frames name their flow in a CN-TAG
  Limiter limiter = Limiter::pacer;
  TokenBucketParameters token_bucket;

  // Whether flows may stay as they are.
  bool same_flows(const FlowGrouping& other) const {
    return priorities == other.priorities && selection == other.selection && most == other.most && cn_tag == other.cn_tag &&
           limiter == other.limiter;
  }
};

struct NicParameters {
  Rate rate = 0;  // of the link; must be > 0
  uint64_t mac = 0;
  uint32_t first_qpn = 0x11;  // QPs get consecutive numbers from here
  CongestionParameters congestion = DcqcnParameters{};
  FlowGrouping grouping;                  // where congestion control hears CNMs
  Time cnp_interval = 50 * kMicrosecond;  // N, where it hears CNPs
  uint8_t cnp_dscp = 48;
  uint8_t cnp_priority = 6;
  uint64_t seed = 1;       // of what congestion control draws ...
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

  // Whether flows may stay as they are.
  bool same_flows(const NicParameters& other) const {
    return congestion.index() == other.congestion.index() && seed == other.seed && component == other.component &&
           ((hears(congestion) & kHearsCnms) == 0 || grouping.same_flows(other.grouping));
  }
};

// Throws NativeError INVALID_CONFIG for a parameter that a NIC cannot run with.
void check(const NicParameters& parameters);

}  // namespace weir
