// A RoCEv2 NIC as a state machine: many queue pairs paced on one link, congestion control at both ends, PFC obeyed and sent. No
// I/O, no clock.
//
//   receive(now, frame)    a frame arrived whole at `now`; the bytes stay the caller's
//   receive_pfc / _pause   a MAC control frame arrived
//   send_for_stack(packet) the host's own stack sends a frame
//   wake(what, at)         the driver comes at a time that it was asked for
//   left(packet)           a frame that the driver was given has gone: it counts as sent
//   hold(whether)          nothing is sent while the host behind the link does not take it
// The driver (link/driver.h) is given each frame as soon as it is picked, and asked for all times. It comes for those up to `now`
// before anything arrives at `now`.
//
// It is made of parts over one state (endpoint/nic_state.h), each of which holds the one before, and knows nothing of those
// behind: flows (endpoint/flows.h) <- sender (endpoint/sender.h) <- events (endpoint/nic_events.h) <- receiver
// (endpoint/receiver.h).
//
// The way of a packet that arrives: its queue pair (endpoint/queue_pair_table.h), its transport (transport/), then congestion
// control hears of it: the flow of the queue pair (endpoint/flow.h) of acknowledgements, CNPs and CNMs, the notification point
// (endpoint/notification_points.h) of marks. The way of one that is sent: the transport has it, the flow lets the queue pair go
// when its pace allows, be it for a request or a READ response, and the egress (endpoint/nic_egress.h) picks it when the link
// falls free. Frames of the host's own stack wait in queues (endpoint/stack_queues.h) that share flows and egress with queue
// pairs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "endpoint/application_pairs.h"
#include "endpoint/nic_observation.h"
#include "endpoint/nic_state.h"
#include "endpoint/receiver.h"
#include "link/driver.h"
#include "wire/classify.h"
#include "wire/packet_pool.h"

namespace weir {

class SoftNic {
 public:
  using Disposition = Receiver::Disposition;
  // Packet::ingress_port of what send_for_stack() sends.
  static constexpr uint16_t kFromStack = 1;
  static constexpr uint32_t kNone = NicState::kNone;

  // `pool` must outlive the NIC, belong to the same worker and have room for a frame in each of its buffers; or, in simulation,
  // kHeaderStride bytes: then packets have their headers and their meta, and no payload or ICRC. `driver` must outlive it too,
  // and so must `completions`; null when there are no queue pairs of applications. Throws NativeError INVALID_CONFIG for
  // parameters that do not pass check().
  SoftNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool, Driver& driver,
          CompletionSink* completions = nullptr);
  SoftNic(const SoftNic&) = delete;
  SoftNic& operator=(const SoftNic&) = delete;

  // The wakes that it asks its driver for are below.
  static uint32_t wakes(const NicParameters& parameters, size_t queue_pairs) {
    const uint32_t pairs = static_cast<uint32_t>(queue_pairs) + parameters.verbs_queue_pairs;
    return 3 * pairs + 2 * StackQueues::count(parameters.stack_queue) + 1;
  }

  // New parameters between two events. Rate, MAC address and queue pairs stay as they are; the pairs' rate caps and the MAC
  // addresses that they send to are taken over. One that had none begins, if its time has come. If congestion control or groups
  // are others, all rates are forgotten. Throws as the constructor does, and has changed nothing then.
  void reconfigure(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs);

  // `punt`: the slow path should see this frame.
  Disposition receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
                      InSuperFrame place = {}) {
    return receiver_.receive(now, data, length, meta, refusal, place);
  }
  void receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta);
  void receive_pause(Time now, uint16_t quanta);
  // The host's own stack sends a frame, which is the NIC's from now on: with its meta as classify() has it, an offload that
  // check_offload() accepted, and of a super-frame segments that fit a short packet of the pool.
  void send_for_stack(Time now, PacketId id);
  // The link has failed: what its two ends have asked of each other by PFC is over.
  void end_pauses(Time now);
  // Times that are no longer wanted are ignored.
  void wake(uint32_t what, Time at);
  // A message for the peer of a stream on demand, with a word that comes with it (MessageListener::posted_message()).
  void post(Time now, uint32_t index, uint32_t word, uint64_t bytes);
  // Closes a stream: it is of no more use, its peer has said so.
  void close(Time now, uint32_t index);
  // Lets time pass; the driver has come for all that was due by `now`.
  void advance(Time now) { events().advance(now); }
  // While the host falls behind, an application's queue pairs answer data as if it had been marked: senders slow down before
  // frames are lost. The paper, which has no slow hosts, does not have this; NICs have it as marking by receive buffer.
  void set_crowded(bool crowded) { nic().crowded = crowded; }
  // The host takes what comes from now on at that pace; 0: at its own.
  void slow(Rate drain) { nic().receive_buffer.slow(drain); }
  // Whether frames from the link are held back by PFC, as programs have no room for more; and that they have.
  bool waits_for_programs() const { return state().awaited != 0; }
  void programs_have_room();
  // Each queue pair's IPv4 datagrams have identifications that count up, so that they may be joined (wire/super_frame.h); else 0.
  void number_datagrams(bool whether) { nic().numbers_datagrams = whether; }
  // Counts latencies there, by its clock; must outlive the NIC. Null: they are not counted.
  void measure(CongestionLatencies* latencies) { nic().latencies = latencies; }
  // Moves time on without sending what was due meanwhile: a NIC that was late does not make up for it.
  void skip_to(Time floor) { nic().now = floor > nic().now ? floor : nic().now; }
  // A packet that the driver was given counts as sent from now on.
  void left(PacketId id) { sender().count_left(id); }
  void hold(bool held);
  // Finishes the ICRC, which every frame that the driver was given then has; in a simulation none has.
  void seal() { sender().seal(); }
  Time now() const { return state().now; }

  // Parts to be used between two events, as all of this.
  ApplicationPairs applications() { return ApplicationPairs(events()); }
  NicObservation observation() { return NicObservation(flows()); }
  const NicState& state() const { return receiver_.events().sender().flows().nic(); }

  // Both are for applications: the memory that peers may reach, and ...
  MemoryTable& memory() { return nic().pairs.memory(); }
  // ... whether a queue pair here has joined the group that a packet is for.
  bool joined(const uint8_t* frame, const PacketMeta& meta) const { return state().members(frame, meta) != nullptr; }

  NicCounters& counters() { return nic().counters; }
  const NicCounters& counters() const { return state().counters; }
  TransportCounters& transport_counters() { return nic().pairs.counters(); }
  NicPriorityCounters& counters(int priority) { return nic().by_priority(priority); }
  // Queue pairs that stream come first, then the places for those of applications.
  std::vector<QueuePair>& queue_pairs() { return nic().pairs.all(); }
  uint32_t streams() const { return state().pairs.streams(); }
  Rate line_rate() const { return state().parameters.rate; }
  // The rate a queue pair may send at now: its flow's, its cap and the line's smallest. 0 while it does not send.
  Rate allowed_rate(const QueuePair& qp) const { return receiver_.events().sender().flows().allowed_rate(qp); }

 private:
  NicEvents& events() { return receiver_.events(); }
  Sender& sender() { return events().sender(); }
  Flows& flows() { return sender().flows(); }
  NicState& nic() { return flows().nic(); }
  void apply_parameters();

  Receiver receiver_;
};

}  // namespace weir
