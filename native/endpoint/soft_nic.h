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
// The way of a packet that arrives: its queue pair (endpoint/queue_pair_table.h), its transport (transport/), then congestion
// control hears of it: the flow of the queue pair (endpoint/flow.h) of acknowledgements, CNPs and CNMs, the notification point
// (endpoint/notification_points.h) of marks. The way of one that is sent: the transport has it, the flow lets the queue pair go
// when its pace allows, be it for a request or a READ response, and the egress (endpoint/nic_egress.h) picks it when the link
// falls free. Frames of the host's own stack wait in queues (endpoint/stack_queues.h) that share flows and egress with queue
// pairs.
#pragma once

#include <array>
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
#include "wire/classify.h"
#include "wire/packet_pool.h"

namespace weir {

// Place of a packet that arrives among others.
struct InSuperFrame {
  bool follows = false;  // the headers up to the BTH are those of the packet before
  bool more = false;     // another arrives at the same time and comes next; what to send is looked at behind it
};

class SoftNic {
 public:
  // stack: for the host's own stack, where the NIC has one.
  enum class Disposition : uint8_t { consumed, punt, stack };
  // Packet::ingress_port of what that sends.
  static constexpr uint16_t kFromStack = 1;
  static constexpr uint32_t kNone = UINT32_MAX;  // no such place, group or queue pair

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

  // New parameters between two events. Rate, own addresses and queue pairs stay as they are; the pairs' rate caps and the MAC
  // addresses that they send to are taken over. One that had none begins, if its time has come. If congestion control or groups
  // are others, all rates are forgotten. Throws as the constructor does, and has changed nothing then.
  void reconfigure(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs);

  // `punt`: the slow path should see this frame.
  Disposition receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
                      InSuperFrame place = {});
  void receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta);
  void receive_pause(Time now, uint16_t quanta);
  // The host's own stack sends a frame, which is the NIC's from now on: with its meta as classify() has it, an offload that
  // check_offload() accepted, and of a super-frame segments that fit a short packet of the pool.
  void send_for_stack(Time now, PacketId id);
  // The link has failed: what its two ends have asked of each other by PFC is over.
  void end_pauses(Time now);
  // Times that are no longer wanted are ignored.
  void wake(uint32_t what, Time at);
  // Closes a stream: it is of no more use, its peer has said so.
  void close(Time now, uint32_t index);
  // Lets time pass; the driver has come for all that was due by `now`.
  void advance(Time now);
  // While the host falls behind, an application's queue pairs answer data as if it had been marked: senders slow down before
  // frames are lost. The paper, which has no slow hosts, does not have this; NICs have it as marking by receive buffer.
  void set_crowded(bool crowded) { crowded_ = crowded; }
  // Whether frames from the link are held back by PFC, as programs have no room for more; and that they have.
  bool waits_for_programs() const { return awaited_ != 0; }
  void programs_have_room();
  // Each queue pair's IPv4 datagrams have identifications that count up, so that they may be joined (wire/super_frame.h); else 0.
  void number_datagrams(bool whether) { numbers_ = whether; }
  // Counts latencies there, by its clock; must outlive the NIC. Null: they are not counted.
  void measure(CongestionLatencies* latencies) { latencies_ = latencies; }
  // Moves time on without sending what was due meanwhile: a NIC that was late does not make up for it.
  void skip_to(Time floor) { now_ = floor > now_ ? floor : now_; }
  // A packet that the driver was given counts as sent from now on.
  void left(PacketId id);
  void hold(bool held);
  // Finishes the ICRC, which every frame that the driver was given then has; in a simulation none has.
  void seal();
  Time now() const { return now_; }

  // These are for applications; they come between two events, as all of this.
  MemoryTable& memory() { return pairs_.memory(); }
  // Its number; 0 when there is no place left.
  uint32_t create_queue_pair(const VerbsQueuePairParameters& parameters);
  // Null when an application has none of this number.
  const QueuePair* find_queue_pair(uint32_t qpn) const;
  // False when there is none of this number.
  bool destroy_queue_pair(uint32_t qpn);
  // Its program has ended without a word: it has no owner any more, and its peer is told so. False when there is none of this
  // number, or it has no peer: it is to be destroyed.
  bool abandon_queue_pair(uint32_t qpn);
  // `path` and `priority` of packets to be sent count from the transition to rtr on, `rate_cap` from any to rtr or rts. After
  // reset nothing is left of the queue pair's congestion control. Throws NativeError INVALID_STATE, INVALID_QPN,
  // INVALID_ATTRIBUTE, INVALID_CONFIG.
  void modify_queue_pair(uint32_t qpn, QueuePairState to, const QueueAttributes& attributes, const RocePath& path,
                         uint8_t priority, Rate rate_cap);
  // Adds the path to a receiver of datagrams. AddressTable::kNone when there is no room for more.
  uint32_t create_address_handle(const RocePath& path) { return pairs_.address_handles().add(path); }
  // Sends that are posted to it and not sent yet fail. False when there is no such handle.
  bool destroy_address_handle(uint32_t handle) { return pairs_.address_handles().remove(handle); }
  // A queue pair of datagrams gets those to a group as well, until it leaves or is destroyed. `group` is a multicast address.
  // Throws NativeError INVALID_QPN, NO_RESOURCES.
  void attach_group(uint32_t qpn, const IpAddress& group);
  // False when it has not joined.
  bool detach_group(uint32_t qpn, const IpAddress& group) { return groups_.detach(group, qpn); }
  // Whether a queue pair here has joined the group that a packet is for.
  bool joined(const uint8_t* frame, const PacketMeta& meta) const { return members(frame, meta) != nullptr; }
  // Work for a queue pair that is no more is ignored: its application knows.
  void post_send(uint32_t qpn, const SendWork& work, uint32_t times = 1);
  void post_receive(uint32_t qpn, const ReceiveWork& work, uint32_t times = 1);
  // The program in which its transport runs has given it more to send.
  void attend_queue_pair(uint32_t qpn);

  NicCounters& counters() { return counters_; }
  const NicCounters& counters() const { return counters_; }
  TransportCounters& transport_counters() { return pairs_.counters(); }
  NicPriorityCounters& counters(int priority) { return priorities_[static_cast<size_t>(priority)]; }
  // Queue pairs that stream come first, then the places for those of applications.
  std::vector<QueuePair>& queue_pairs() { return pairs_.all(); }
  uint32_t streams() const { return pairs_.streams(); }
  uint32_t first_qpn() const { return parameters_.first_qpn; }
  bool hears_cnm_datagrams() const { return parameters_.grouping.cnms_by_ip && hears(kHearsCnms); }
  Rate line_rate() const { return parameters_.rate; }
  // The rate a queue pair may send at now: its flow's, its cap and the line's smallest. 0 while it does not send.
  Rate allowed_rate(const QueuePair& qp) const;
  // State that holds a queue pair that sends, at `at`, for samples. If it is not held below its allowed rate, both rates are
  // that, and alpha is 0 unless it runs there.
  struct SenderSample {
    double rate;         // bit/s
    double target_rate;  // bit/s
    double alpha;
    double window;  // packets; 0 while it does not send, and of an algorithm that has none
  };
  SenderSample sender_sample(uint32_t index, Time at);
  // Whether it is the end of its stream whose congestion control rules: who sends the data, or who READs.
  bool controls(const QueuePairParameters& p) const { return p.reads() && pulls() ? !p.serves() : p.sends_data(); }
  // The flow that congestion control holds a queue pair by, its group's or its own, caught up to `at`.
  const Flow& flow_at(uint32_t index, Time at);
  // Brings gauges and duration counters up to now().
  void settle_counters();

  // Hints for the caches: what a wake will need soon, and a little later what its transport will.
  void fetch(uint32_t what) const;
  void fetch_transport(uint32_t what) const;
  // The same in a simulation: of the NIC itself; and for a packet to a queue pair or a wake that is about one, if it is a stream,
  // in three stages.
  WEIR_FETCHES void fetch() const {
    fetch_bytes(&now_, 4 * 64);
    fetch_bytes(&pairs_, 2 * 64);
    fetch_bytes(&counters_, 2 * 64);
  }
  uint32_t stream_of(uint32_t qpn) const { return qpn - parameters_.first_qpn; }
  uint32_t stream_woken(uint32_t what) const { return what >= timer(0) ? what - timer(0) : what; }
  WEIR_FETCHES void fetch_stream(uint32_t index, size_t stage) const {
    if (index >= streams()) return;
    const QueuePair& qp = pairs_[index];
    if (stage == 0) {
      fetch_bytes(&(*flows_)[index], sizeof(Flow));
      fetch_bytes(&qp, sizeof qp);
      return;
    }
    if (qp.kind != QueuePair::Kind::reliable_stream) return;
    const auto& stream = static_cast<const ReliableStream&>(*qp.transport);
    if (stage == 1) fetch_bytes(&stream, sizeof stream);
    if (stage == 2) stream.fetch_connections();
  }

 private:
  // Time.
  Time next_event() const;
  void catch_up(Time now) {
    if (wakes_ <= now) go_through(now);
    now_ = now > now_ ? now : now_;
    egress_.look(now_);
  }
  Time go_through(Time now);
  void step(Time at);
  void go_on();
  void want(Time next);
  void apply_parameters();
  void resume_link();
  void wait_for_programs(int priority);
  void storm();

  // Receiving: soft_nic_receive.cc.
  Disposition consume(Time arrived, const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal);
  Disposition consume_next(Time arrived, const uint8_t* frame, uint32_t length, const PacketMeta& meta);
  bool take_in(int priority, uint32_t length);
  void receive_trimmed(Time arrived, const uint8_t* frame, const PacketMeta& meta);
  void receive_cnp(uint32_t index, Time arrived);
  void receive_cnm(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal);
  void receive_cnm_datagram(const uint8_t* frame, const PacketMeta& meta);
  uint64_t NicCounters::*refuse_cnm(Refusal refusal) const;
  void on_cnm(uint32_t group, const CongestionNotification& cnm);
  void receive_packet(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta);
  void notify(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta);
  // Members of the group that a packet is for; null: none here.
  const std::vector<uint32_t>* members(const uint8_t* frame, const PacketMeta& meta) const;
  void receive_group(Time arrived, const uint8_t* frame, const PacketMeta& meta);
  bool addresses_fit(const QueuePair& qp, const uint8_t* frame, const PacketMeta& meta);
  void end_receiving();
  void obey(int priority, uint16_t quanta);
  void expire_windows(Time at);
  void hear(uint32_t index, Time arrived);

  // Sending: soft_nic_send.cc.
  void start_next();
  PacketId make_pfc();
  PacketId make_cnp();
  PacketId make_answer();
  void depart(PacketId id);
  void send_data();
  PacketId make_packet(uint32_t index, uint8_t priority);
  void account(uint32_t index, const OutgoingPacket& out, uint32_t wire_bytes);
  bool keeps_up(const Flow& flow) const;
  bool ahead(const Flow& flow, Time at) const;
  bool may_run(uint32_t index) const;
  void run(PacketId id, uint32_t index, uint8_t priority);
  void write(PacketId id, QueuePair& qp, uint32_t index, const OutgoingPacket& out, uint8_t priority);
  void describe(Packet& packet, uint8_t* headers, const QueuePair& qp, const OutgoingPacket& out) const;

  // Frames of the host's own stack: soft_nic_stack.cc.
  void line_up_stack(uint32_t queue);
  void line_up_stacks();
  PacketId make_stack_frame(uint32_t index);

  // Queue pairs and their flows: soft_nic_flows.cc.
  bool hears(uint8_t what) const { return (weir::hears(parameters_.congestion) & what) != 0; }
  // Congestion control hears acknowledgements alone. Then who READs controls what comes of it: nobody else hears.
  bool pulls() const { return weir::controls_reads(parameters_.congestion); }
  bool responds_freely(const QueuePair& qp, const Flow& flow) const;
  void ask(uint32_t index, uint32_t bytes);
  void limit(uint32_t index, uint32_t window, Time round_trip);
  void make_flows();
  void bind(uint32_t index);
  void unbind(uint32_t index);
  void redirect(uint32_t index, uint64_t mac);
  void forget(uint32_t index);
  bool begin(uint32_t index);
  void start_flow(uint32_t flow, Rate rate);
  void finish(uint32_t index);
  void stop_sending(uint32_t index);
  Rate limit_of(uint32_t index) const;
  void attend(uint32_t index);
  void line_up(uint32_t index);
  void wait(uint32_t index);
  void serve(uint32_t group);
  void let_go(uint32_t index);
  void pass_turn(uint32_t index);
  void sent(uint32_t index, uint32_t wire_bytes);
  void sent_of_group(uint32_t group, uint32_t index, uint32_t wire_bytes);
  void repace(uint32_t index);
  bool count(uint32_t flow) { return flows_->count(flow, now_); }
  void settle_flows();
  void schedule(uint32_t flow, Time at);
  void schedule_timer(uint32_t index, Time at);
  uint32_t timer(uint32_t index) const { return first_timer_ + index; }
  uint32_t itself() const { return itself_; }

  // Fields are in the order of use, for the caches: a simulated fabric has thousands of NICs.
  Time now_ = 0;
  Time wakes_ = kNever;     // time of its own next event
  Time retry_at_ = kNever;  // when the pool was empty
  Time storm_at_ = kNever;  // when one begins or ends
  Driver& driver_;
  PacketPool& pool_;
  std::unique_ptr<FlowTable> flows_;
  bool crowded_ = false;
  uint8_t awaited_ = 0;  // priorities that are stopped until programs have room
  bool numbers_ = false;
  uint16_t unsealed_l3_ = 0;
  PacketId unsealed_ = kNoPacket;  // the last that was written: its ICRC comes before the next is
  uint32_t active_ = 0;
  // Packets that come together share this.
  struct Receiving {
    uint32_t index = UINT32_MAX;  // the queue pair of the last; UINT32_MAX: none
    uint32_t qpn = UINT32_MAX;    // number that the next may be for without being looked at anew; UINT32_MAX: none
    int priority = 0;             // valid with index or qpn
    bool looped = false;          // valid with index: it comes from this NIC itself, which no PFC stops
    uint16_t bth_offset = 0;
    Received before;
  };
  Receiving receiving_;
  uint32_t first_timer_;
  uint32_t itself_;
  NicEgress egress_;
  NicParameters parameters_;
  QueuePairTable pairs_;
  StackQueues stack_;
  NotificationPoints notifications_;
  MulticastGroups groups_;
  ReceiveBuffer receive_buffer_;
  NicCounters counters_;
  std::array<NicPriorityCounters, kPriorities> priorities_;
  std::array<Time, kPriorities> held_times_{};  // flows' time that is not yet a whole centisecond
  uint32_t next_caught_up_ = 0;                 // place among the groups
  CongestionLatencies* latencies_ = nullptr;
};

}  // namespace weir
