// A RoCEv2 NIC as a state machine: many QPs paced on one link, DCQCN at both ends, PFC obeyed and sent. No I/O, no clock.
//
//   receive(now, frame)    a frame arrived whole at `now`; the bytes stay the caller's
//   receive_pfc / _pause   a MAC control frame arrived
//   advance(now)           let time pass: packets are released, windows end, timers fire
//   transmit()             take the frames whose last bit has left by the time reached
//   left(packet)           one of those has gone: it counts as sent
//   hold(whether)          nothing is sent while the host behind the link does not take it
//   next_deadline()        when to call advance() next if nothing arrives
// A simulator gives it a driver instead of calling transmit(): that is handed every frame as soon as it is picked, and calls
// wake() when told to. next_deadline() then speaks of all else.
//
// The link carries one frame at a time. When it falls free the order is: PFC frames, CNPs, acknowledgements, then data by the
// scheduler among priorities with a ready QP; within a priority ready QPs take turns. A QP becomes ready when its pacer
// releases its next packet, be it a request or a READ response. DCQCN (Zhu et al., SIGCOMM 2015): a reaction point per QP, a
// notification point per incoming flow. QCN: a reaction point per flow, and QPs take turns at it (endpoint/reaction_points.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/types.h"
#include "endpoint/congestion_latencies.h"
#include "endpoint/counters.h"
#include "endpoint/message_listener.h"
#include "endpoint/nic_parameters.h"
#include "endpoint/notification_points.h"
#include "endpoint/queue_pair.h"
#include "endpoint/reaction_points.h"
#include "endpoint/receive_buffer.h"
#include "link/driver.h"
#include "link/pfc.h"
#include "link/scheduler.h"
#include "link/serializer.h"
#include "link/timing_wheel.h"
#include "transport/transport.h"
#include "wire/classify.h"
#include "wire/packet.h"
#include "wire/priority_map.h"

namespace weir {

// Queue pair of connection management (IBTA volume 1, 3.9.5); 0 and 1 are nobody else's.
inline constexpr uint32_t kGsiQpn = 1;

// A queue pair as an application makes it.
struct VerbsQueuePairParameters {
  bool datagram = false;  // UD; else RC
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
};
void describe(auto& v, Of<VerbsQueuePairParameters> auto& p) {
  v.type("NativeQueuePairOptions", "What an application's queue pair is made with.");
  v("datagram", p.datagram, field::any("UD; else RC."));
  v("send_depth", p.send_depth, field::any("Most work requests at a time."));
  v("receive_depth", p.receive_depth, field::any("Most work requests at a time."));
}

class SoftNic {
 public:
  enum class Disposition : uint8_t { consumed, punt };

  // `pool` must outlive the NIC, belong to the same worker and have room for a frame in each of its buffers; or, in simulation,
  // kHeaderStride bytes: then packets have their headers and their meta, and no payload or ICRC.
  // `completions` must outlive it too; null when there are no queue pairs of applications. Throws NativeError INVALID_CONFIG for
  // parameters that do not pass check().
  SoftNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool,
          CompletionSink* completions = nullptr, Driver* driver = nullptr);
  SoftNic(const SoftNic&) = delete;
  SoftNic& operator=(const SoftNic&) = delete;

  // New parameters between two events. Rate, own addresses and queue pairs stay as they are; the pairs' rate caps and the MAC
  // addresses that they send to are taken over. One that had none begins, if its time has come.
  // Throws as the constructor does, and has changed nothing then.
  void reconfigure(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs);

  // `punt`: the slow path should see this frame.
  Disposition receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal);
  void receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta);
  void receive_pause(Time now, uint16_t quanta);
  void advance(Time now);
  // What the driver was asked for has come. Times that are no longer wanted are ignored.
  void wake(uint32_t what, Time at);
  // While the host falls behind, an application's queue pairs answer data as if it had been marked: senders slow down before
  // frames are lost. Not in the paper, which has no slow hosts; NICs have it as marking by receive buffer.
  void set_crowded(bool crowded) { crowded_ = crowded; }
  // Where to count latencies, and by what clock; must outlive the NIC. Null: not at all.
  void measure(CongestionLatencies* latencies) { latencies_ = latencies; }
  // Moves time on without sending what was due meanwhile: a NIC that was late does not make up for it.
  void skip_to(Time floor) { now_ = floor > now_ ? floor : now_; }
  PacketId transmit() {
    const bool gone = !departing_.empty() && pool_[departing_.front()].departs <= now_;
    return gone ? departing_.pop(pool_) : kNoPacket;
  }
  // What was taken, or handed to the driver, counts as sent from now on.
  void left(PacketId id);
  void hold(bool held) {
    const bool over = std::exchange(held_, held) && !held;
    if (over && !busy()) start_next();
  }
  Time next_deadline() const;
  Time now() const { return now_; }

  // For applications; between two events, as all of this.
  MemoryTable& memory() { return memory_; }
  // Its number; 0 when there is no place left.
  uint32_t create_queue_pair(const VerbsQueuePairParameters& parameters);
  // False when there is none of this number.
  bool destroy_queue_pair(uint32_t qpn);
  // `path` and `priority` of what is sent count from the transition to rtr on, `rate_cap` from any to rtr or rts. After reset
  // nothing is left of the queue pair's congestion control. Throws NativeError INVALID_STATE, INVALID_QPN, INVALID_ATTRIBUTE,
  // INVALID_CONFIG.
  void modify_queue_pair(uint32_t qpn, QueuePairState to, const QueueAttributes& attributes, const RocePath& path,
                         uint8_t priority, Rate rate_cap);
  // How to reach a receiver of datagrams. AddressTable::kNone when there is no room for more.
  uint32_t create_address_handle(const RocePath& path) { return address_handles_.add(path); }
  // What is posted to it and not sent yet fails. False when there is no such handle.
  bool destroy_address_handle(uint32_t handle) { return address_handles_.remove(handle); }
  // Work for a queue pair that is no more is ignored: its application knows.
  void post_send(uint32_t qpn, const SendWork& work);
  void post_receive(uint32_t qpn, const ReceiveWork& work);

  NicCounters& counters() { return counters_; }
  TransportCounters& transport_counters() { return transport_counters_; }
  NicPriorityCounters& counters(int priority) { return priorities_[static_cast<size_t>(priority)]; }
  // Those that stream first, then the places for those of applications.
  std::vector<QueuePair>& queue_pairs() { return queue_pairs_; }
  uint32_t streams() const { return streams_; }
  uint32_t first_qpn() const { return parameters_.first_qpn; }
  Rate line_rate() const { return parameters_.rate; }
  // The rate a QP may send at now: its reaction point's, its cap and the line's smallest. 0 while it does not send.
  Rate allowed_rate(const QueuePair& qp) const;
  // For samples: what the reaction point of a sending QP, or of its flow, holds at `at`. Unlimited: both rates are the allowed
  // one, alpha is 0 unless it decays there. Under QCN alpha is 0. Under DCTCP, which has no rate, both rates are the window,
  // packets.
  struct SenderSample {
    double rate;         // bit/s
    double target_rate;  // bit/s
    double alpha;
  };
  SenderSample sender_sample(uint32_t index, Time at);
  // Under QCN: the reaction point of a QP's flow, caught up to `at`; null for a QP that has none.
  const ReactionPoint* flow_at(uint32_t index, Time at);
  // Brings gauges and duration counters up to now().
  void settle_counters();

 private:
  struct ReadyList {
    uint32_t head = UINT32_MAX;
    uint32_t tail = UINT32_MAX;
  };

  bool busy() const { return busy_until_ > now_; }
  bool waits() const { return (backlogged_ | answering_ | pfc_.owed()) != 0 || notifications_.owed(); }
  Time next_event() const;
  void step(Time at);
  void ring(Time at);
  void fetch_ahead();
  void start_next();
  PacketId make_pfc();
  PacketId make_cnp();
  PacketId make_answer();
  PacketId make_data();
  void write(PacketId id, QueuePair& qp, OutgoingPacket& out, uint8_t priority);
  void describe(Packet& packet, uint8_t* headers, const QueuePair& qp, const OutgoingPacket& out) const;
  static uint32_t next_wire_bytes(const QueuePair& qp);
  void due(uint32_t index);
  bool begin(QueuePair& qp);
  void redirect(uint32_t index, uint64_t mac);
  void finish(QueuePair& qp);
  void count_limited(QueuePair& qp);
  void wait(uint32_t index);
  void push_ready(uint32_t index);
  void repace(uint32_t index);
  void schedule(uint32_t index, Time at);
  void schedule_timer(uint32_t index, Time at);
  void expire_windows(Time at);
  void obey(int priority, uint16_t quanta);
  void attend(uint32_t index);
  void serve(uint32_t index);
  void receive_cnp(uint32_t index, Time arrived);
  void receive_packet(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta);
  void notify(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta);
  bool addresses_fit(const QueuePair& qp, const uint8_t* frame, const PacketMeta& meta);
  void check_receive_buffer();
  uint32_t find_qp(uint32_t qpn) const;
  uint32_t index_of(const QueuePair& qp) const { return static_cast<uint32_t>(&qp - queue_pairs_.data()); }
  bool ours(uint64_t mac) const { return mac == parameters_.mac || (!own_macs_.empty() && own_macs_.contains(mac)); }

  std::unique_ptr<Transport> make_stream(QueuePair& qp);
  void forget(uint32_t index);
  void take_shape(QueuePair& qp);
  bool dcqcn() const { return parameters_.congestion_control == CongestionControl::dcqcn; }

  // QCN: endpoint/soft_nic_qcn.cc.
  bool governed(uint32_t index) const { return flows_ != nullptr && flows_->of(index) != ReactionPoints::kNone; }
  uint32_t flow_of(const QueuePair& qp) const { return flows_ == nullptr ? ReactionPoints::kNone : flows_->of(index_of(qp)); }
  void make_flows();
  void bind(uint32_t index);
  void unbind(uint32_t index);
  void tag(PacketId id, const QueuePair& qp);
  void receive_cnm(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal);
  void on_cnm(uint32_t flow, const CongestionNotification& cnm);
  void start_flow(uint32_t flow, Rate rate);
  void take_turn(uint32_t index);
  bool line_up(uint32_t index);
  void turn_taken(uint32_t index, uint32_t wire_bytes);
  void pass_turn(uint32_t index);
  void serve_flow(uint32_t flow);
  void schedule_flow(uint32_t flow, Time at);
  void wake_flow(uint32_t flow, Time at);
  void count_flow(uint32_t flow);
  static Rate paced_rate(const ReactionPoint& point);
  void settle_flows();

  static constexpr Time kTick = 1'024;  // of the timing wheel; order within a tick is exact
  // In wake(): not a QP's pacing, but its transport, or a flow.
  static constexpr uint32_t kTimer = 1u << 28;
  static constexpr uint32_t kFlow = 1u << 27;

  // In the order of use, for the caches: a simulated fabric has thousands of NICs.
  Time now_ = 0;
  Serializer link_;
  Time busy_until_ = 0;     // end of the frame on the link
  Time retry_at_ = kNever;  // when the pool was empty
  Driver* driver_;
  PacketPool& pool_;
  std::vector<QueuePair> queue_pairs_;
  std::unique_ptr<ReactionPoints> flows_;  // under QCN
  uint32_t streams_;
  uint32_t active_ = 0;
  bool sending_ = false;  // step() has not come to busy_until_ yet
  bool held_ = false;
  uint8_t backlogged_ = 0;
  uint8_t answering_ = 0;
  bool crowded_ = false;
  std::array<ReadyList, kPriorities> ready_{};
  std::array<ReadyList, kPriorities> answers_{};  // QPs with control packets to send
  NotificationPoints notifications_;
  PauseState pause_;
  PfcSender pfc_;
  ReceiveBuffer receive_buffer_;
  NicCounters counters_;
  NicParameters parameters_;
  PacketQueue departing_;
  Scheduler scheduler_;
  std::array<NicPriorityCounters, kPriorities> priorities_;
  TransportCounters transport_counters_;
  TimingWheel wheel_;                  // releases and rate changes
  TimingWheel timers_;                 // of transports
  uint64_t fetched_ = 0;               // what fetch_ahead() has seen of the wheel: queue pairs ...
  uint64_t fetched_transports_ = 0;    // ... and their transports
  std::vector<uint32_t> generations_;  // of the places for queue pairs of applications
  MemoryTable memory_;
  ReliableStreamContext stream_context_;
  AddressTable address_handles_;
  CompletionSink* completions_;
  std::vector<uint8_t> payload_;
  std::unordered_set<uint64_t> own_macs_;          // of queue pairs, besides the NIC's
  std::array<Time, kPriorities> limited_times_{};  // not yet a whole centisecond of flows
  uint32_t next_caught_up_ = 0;                    // of the flows
  CongestionLatencies* latencies_ = nullptr;
};

}  // namespace weir
