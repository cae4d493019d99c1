// All that a NIC holds, which its parts share: flows.h, sender.h, nic_pauses.h, nic_events.h, receiver.h and soft_nic.h, each of
// which knows those before it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fetch.h"
#include "base/types.h"
#include "endpoint/congestion_latencies.h"
#include "endpoint/counters.h"
#include "endpoint/flow_table.h"
#include "endpoint/multicast_groups.h"
#include "endpoint/nic_egress.h"
#include "endpoint/nic_parameters.h"
#include "endpoint/notification_points.h"
#include "endpoint/queue_pair_table.h"
#include "endpoint/receive_buffer.h"
#include "endpoint/stack_queues.h"
#include "link/driver.h"
#include "wire/packet.h"

namespace weir {

// A NIC is made of these; see SoftNic.
struct NicSetup {
  const NicParameters& parameters;
  const std::vector<QueuePairParameters>& queue_pairs;
  PacketPool& pool;
  Driver& driver;
  CompletionSink* completions;
};

// Throws NativeError INVALID_CONFIG for parameters that do not pass check().
void check(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, const PacketPool& pool);

struct NicState {
  static constexpr uint32_t kNone = UINT32_MAX;  // no such place, group or queue pair

  explicit NicState(const NicSetup& setup);
  NicState(const NicState&) = delete;
  NicState& operator=(const NicState&) = delete;

  Flow& flow(uint32_t number) { return (*flow_table)[number]; }
  const Flow& flow(uint32_t number) const { return (*flow_table)[number]; }
  NicPriorityCounters& by_priority(int priority) { return priorities[static_cast<size_t>(priority)]; }
  bool hears(uint8_t what) const { return (weir::hears(parameters.congestion) & what) != 0; }
  bool hears_cnm_datagrams() const { return parameters.grouping.cnms_by_ip && hears(kHearsCnms); }
  // Congestion control hears acknowledgements alone. Then who READs controls what comes of it: nobody else hears.
  bool pulls() const { return controls_reads(parameters.congestion); }
  // Members of the group that a packet is for; null: none here.
  const std::vector<uint32_t>* members(const uint8_t* frame, const PacketMeta& meta) const;

  // When something is due that no flow and no transport has asked for.
  Time next_event() const;
  // The driver's number of a wake for a queue pair's transport; those for flows are the flows'.
  uint32_t timer(uint32_t index) const { return first_timer + index; }
  // Replaces the time for which the flow was scheduled before; kNever: not at all.
  void schedule_flow(uint32_t number, Time at);
  // The same for a queue pair's flow that may send at `at`, which is within the frame on the link. Until that is over it could do
  // no more than join a list: nobody comes for it, and NicEvents has it join in time.
  void schedule_behind_frame(uint32_t index, Time at);
  // A timer that ends earlier than it must is looked at again then: most are put off before they end.
  void schedule_timer(uint32_t index, Time at);
  // Must be called whenever a flow may have begun or ceased to be held. True if it has begun.
  bool count_held(uint32_t number) { return flow_table->count(number, now); }

  // Hints for the caches: what a wake will need soon, and a little later what its transport will.
  void fetch_flow(uint32_t what) const;
  void fetch_transport(uint32_t what) const;
  // A simulation fetches the NIC itself; and for a packet to a queue pair or a wake that is about one, if it is a stream, that in
  // three stages.
  WEIR_FETCHES void fetch() const {
    fetch_bytes(&now, 4 * 64);
    fetch_bytes(&pairs, 2 * 64);
    fetch_bytes(&counters, 2 * 64);
  }
  uint32_t stream_of(uint32_t qpn) const { return qpn - parameters.first_qpn; }
  uint32_t stream_woken(uint32_t what) const { return what >= timer(0) ? what - timer(0) : what; }
  WEIR_FETCHES void fetch_stream(uint32_t index, size_t stage) const {
    if (index >= pairs.streams()) return;
    const QueuePair& qp = pairs[index];
    if (stage == 0) {
      fetch_bytes(&flow(index), sizeof(Flow));
      fetch_bytes(&qp, sizeof qp);
      return;
    }
    if (qp.kind != QueuePair::Kind::reliable_stream) return;
    const auto& stream = static_cast<const ReliableStream&>(*qp.transport);
    if (stage == 1) fetch_bytes(&stream, sizeof stream);
    if (stage == 2) stream.fetch_connections();
  }

  // Fields are in the order of use, for the caches: a simulated fabric has thousands of NICs.
  Time now = 0;
  Time wakes = kNever;     // time of its own next event
  Time retry_at = kNever;  // when the pool was empty
  Time storm_at = kNever;  // when one begins or ends
  Driver& driver;
  PacketPool& pool;
  std::unique_ptr<FlowTable> flow_table;
  bool crowded = false;
  uint8_t awaited = 0;  // priorities that are stopped until programs have room
  bool numbers_datagrams = false;
  uint16_t unsealed_l3 = 0;
  PacketId unsealed = kNoPacket;  // the last that was written: its ICRC comes before the next is
  uint32_t active = 0;            // queue pairs that have begun to send, and not ended
  // Queue pairs whose flows have been scheduled behind the frame on the link, in the order of time and number; some may have been
  // scheduled anew since.
  struct Due {
    Time at;
    uint32_t index;
    auto operator<=>(const Due&) const = default;
  };
  std::vector<Due> due;
  // Packets that come together share this.
  struct Receiving {
    uint32_t index = kNone;  // the queue pair of the last; kNone: none
    uint32_t qpn = kNone;    // number that the next may be for without being looked at anew; kNone: none
    int priority = 0;        // valid with index or qpn
    bool looped = false;     // valid with index: it comes from this NIC itself, which no PFC stops
    uint16_t bth_offset = 0;
    Received before;
  };
  Receiving receiving;
  uint32_t first_timer;
  uint32_t itself;  // the driver's number of a wake for the NIC's own events, which is the last
  NicEgress egress;
  NicParameters parameters;
  QueuePairTable pairs;
  StackQueues stack;
  NotificationPoints notifications;
  MulticastGroups groups;
  ReceiveBuffer receive_buffer;
  NicCounters counters;
  std::array<NicPriorityCounters, kPriorities> priorities;
  std::array<Time, kPriorities> held_times{};  // flows' time that is not yet a whole centisecond
  uint32_t next_caught_up = 0;                 // place among the groups
  CongestionLatencies* latencies = nullptr;
};

}  // namespace weir
