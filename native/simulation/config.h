// What TypeScript hands to a simulation: plain numbers in virtual nanoseconds and bits per second, already validated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "endpoint/soft_nic.h"
#include "link/impairment.h"
#include "switching/soft_switch.h"
#include "transport/queue_attributes.h"

namespace weir {

struct SimulatedSwitch {
  SwitchParameters parameters;
  std::vector<std::vector<uint16_t>> groups;  // next hops
  std::vector<uint16_t> group_of_host;        // position in groups, or Forwarding::kNoGroup
  struct Pin {
    uint32_t from;
    uint32_t to;
    uint16_t port;
  };
  std::vector<Pin> pins;
};

// Their addresses are in a row, in the order of the hosts.
struct SimulatedNic {
  NicParameters parameters;
  uint8_t ip[4] = {};
};

// A device's place on a link; devices are numbered switches first.
struct LinkEnd {
  uint32_t device = 0;
  uint16_t port = 0;
};

struct SimulatedLink {
  LinkEnd ends[2];
  Time delay = 0;
  bool impaired = false;
  ImpairmentParameters impairment;  // on top of `delay`
};

struct SimulatedFlow {
  uint32_t from = 0;  // host numbers
  uint32_t to = 0;
  uint8_t priority = 3;
  uint8_t dscp = 26;
  uint16_t udp_source_port = 0;
  Time start = 0;
  Time stop = kNever;
  MessageStreamParameters stream;
  uint32_t sizes_first = 0;  // in Config::sizes
  uint32_t sizes_count = 0;  // 0: messages as `stream` says
  Rate rate_cap = 0;
  bool reliable = false;
  uint16_t outstanding = 2;
  uint64_t source_mac = 0;   // of what its sender sends; 0: its NIC's
  uint32_t application = 0;  // at its sender
};

struct SampledQueue {
  uint32_t device = 0;
  uint16_t port = 0;
  uint8_t priority = 3;
};

struct SimulationConfig {
  uint64_t seed = 1;
  Time sample_interval = 0;  // 0: no samples
  Time reset_after = 0;      // when distributions start afresh
  std::vector<SimulatedSwitch> switches;
  std::vector<SimulatedNic> nics;
  std::vector<SimulatedLink> links;
  std::vector<SimulatedFlow> flows;
  std::vector<uint32_t> sizes;  // of messages
  QueueAttributes transport;    // recovery, timeout, retry_count and window of reliable flows
  std::vector<uint32_t> sampled_flows;
  std::vector<SampledQueue> sampled_queues;
  bool all_distributions = false;  // also of queues that are not sampled
  std::vector<LinkEnd> taps;       // frames that leave there are traced
};

}  // namespace weir
