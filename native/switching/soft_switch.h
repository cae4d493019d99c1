// A lossless Ethernet switch as a state machine: no I/O, no clock, no threads. The wire loop and the simulator drive it.
//
//   receive(now, port, packet)   a frame arrived whole at `now`
//   receive_pfc / receive_pause  a MAC control frame arrived
//   advance(now)                 let time pass: frames leave, pauses end, refreshes fall due
//   transmit(port)               take the frames whose last bit has left by the time reached
//   left(port, packet)           one of those has gone: it counts as sent
//   set_unsent(port, bytes)      how much of what was taken has not
//   next_deadline()              when to call advance() next if nothing arrives
//
// Times never go backwards. Each egress port is a link of a given rate: at most one frame is being serialised, and it is
// picked when the link falls free, so that priorities, pauses and marks act at frame boundaries. A port without a rate
// (0) sends at once. A queue's length does not count the frame being serialised (as in ns-3).
//
// A link is as fast as the host behind it. While that has more than kMostUnsent to take of what was picked, nothing is picked
// there, a PFC frame neither: frames wait in their queues, where thresholds, limits, marks and pauses see them. Beyond that
// may be one frame; on a link with a rate, what it carries from one set_unsent() to the next; and on one without, frames that
// meet no queue meanwhile.
//
// A simulator gives it a driver instead: that is handed every frame as soon as it is picked, and calls wake() when told to.
// Then advance(), transmit(), set_unsent() and next_deadline() have nothing to do.
//
// A switch may be spread over several workers, as shards that speak to each other over a ShardLink (switching/shard.h): each
// knows all ports, is given the frames of its own, and is framed by begin_turn() and end_turn().
//
// Congestion notification (QCN) is in switching/congestion_notification.h.
//
// What it costs: a frame that meets a free link and no queue touches no queue, heap or distribution; an event is needed only
// where something waits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/describe.h"
#include "base/histogram.h"
#include "base/indexed_heap.h"
#include "base/random.h"
#include "base/types.h"
#include "congestion/qcn_congestion_point.h"
#include "congestion/red_marker.h"
#include "link/driver.h"
#include "link/pacer.h"
#include "link/pfc.h"
#include "link/scheduler.h"
#include "link/serializer.h"
#include "switching/congestion_notification.h"
#include "switching/counters.h"
#include "switching/forwarding.h"
#include "switching/shard.h"
#include "switching/shared_buffer.h"
#include "switching/storm_control.h"
#include "wire/packet.h"
#include "wire/priority_map.h"
#include "wire/qcn.h"

namespace weir {

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
  };
  std::vector<Port> ports;
  BufferParameters buffer;
  uint8_t pfc_priorities = 1 << 3;
  uint8_t ecn_priorities = 1 << 3;
  bool mark_on_dequeue = false;
  RedParameters red;
  uint8_t cn_priorities = 0;
  uint8_t cnm_priority = 6;
  uint32_t cp_min_header_octets = 0;
  QcnCongestionParameters qcn;
  SchedulerParameters scheduler;
  PriorityMap priority_map;
  bool learning = false;
  Time ageing = 300 * kSecond;  // IEEE 802.1Q clause 8.8.3
  uint32_t fdb_capacity = 16'384;
  uint64_t seed = 1;
  uint64_t hash_seed = 1;
  uint64_t component = 0;
};
// Whether frames that meet an edge of a CNPV have a priority to go on with.
bool alternates_are_free(const SwitchParameters& parameters);
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
}
void describe(auto& v, Of<SwitchParameters> auto& p) {
  v.type("NativeSwitchParameters", "How a switch behaves.");
  v("ports", p.ports, field::any("Fewer than 2^15."));
  v("buffer", p.buffer, field::any("Shared by all ports."));
  v("pfc_priorities", p.pfc_priorities, field::any("Mask; 0: no PFC."));
  v("ecn_priorities", p.ecn_priorities, field::any("Mask; 0: no marking."));
  v("mark_on_dequeue", p.mark_on_dequeue, field::any("The paper marks the arriving packet; HPCC's switch the leaving one."));
  v("red", p.red, field::any("Marking."));
  v("cn_priorities", p.cn_priorities,
    field::optional(field::any("Mask of congestion notification priority values (CNPVs), at most 7; 0: no QCN.")));
  v("cnm_priority", p.cnm_priority,
    field::optional(field::priority("Of CNMs, made here or passing: no CNPV, and one that is served strictly.")));
  v("cp_min_header_octets", p.cp_min_header_octets,
    field::optional(field::bytes("How much of the sampled frame a CNM has.", 0, kCnmMaxMsdu)));
  v("qcn", p.qcn, field::optional(field::any("Congestion points.")));
  v("scheduler", p.scheduler, field::any("Of every egress."));
  v("priority_map", p.priority_map, field::any("Of what comes in."));
  v("learning", p.learning, field::any("Addresses are learned, unknown ones flooded."));
  v("ageing", p.ageing, field::above(field::ns("Of learned addresses.")));
  v("fdb_capacity", p.fdb_capacity, field::optional(field::within(0, 1 << 24, "Entries of the forwarding table.")));
  v("seed", p.seed, field::any("Of marking."));
  v("hash_seed", p.hash_seed, field::any("Of the choice among next hops."));
  v("component", p.component, field::any("Which switch this is: keys its random streams and its next-hop hash."));
  v.rule(p.ports.size() < 1u << 15, "it has fewer than 2^15 ports");
  v.rule(p.cn_priorities != 0xff, "at most 7 priorities are CNPVs");
  v.rule(alternates_are_free(p), "alternate priorities are 0 to 7, and no CNPVs");
}

class SoftSwitch {
 public:
  // Throws NativeError INVALID_CONFIG for parameters that do not pass check(). `pool`, `driver` and `link` must outlive the
  // switch and belong to the same worker. With a link there is no driver, and the pool is slice number link->map().self of the
  // memory that all shards share.
  SoftSwitch(SwitchParameters parameters, PacketPool& pool, Driver* driver = nullptr, ShardLink* link = nullptr);
  SoftSwitch(const SoftSwitch&) = delete;
  SoftSwitch& operator=(const SoftSwitch&) = delete;

  // New parameters between two events: queues, learned addresses and random streams stay. The ports must be as many. A new limit
  // to a queue's rate holds at once, also for a frame that waits for it; a new rate of a link from the next frame on. Throws as
  // the constructor does, and has changed nothing then.
  void reconfigure(SwitchParameters parameters);
  const SwitchParameters& parameters() const { return parameters_; }

  Forwarding& forwarding() { return forwarding_; }
  const Forwarding& forwarding() const { return forwarding_; }

  // Takes ownership of `id`, whose meta and length are filled in.
  void receive(Time now, uint16_t port, PacketId id);
  // Priorities that are not under PFC here do not obey.
  void receive_pfc(Time now, uint16_t port, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta);
  void receive_pause(Time now, uint16_t port, uint16_t quanta);
  void advance(Time now) {
    if (next_message_ <= now || (!events_.empty() && events_.top_key() <= now)) catch_up(now);
    now_ = std::max(now_, now);
  }
  // The oldest frame that has left `port`, owned by the caller now, or kNoPacket. kind pfc: made here, without bytes.
  PacketId transmit(uint16_t port) {
    PacketQueue& departing = ports_[port].departing;
    const bool gone = !departing.empty() && pool_[departing.front()].departs <= now_;
    return gone ? departing.pop(pool_) : kNoPacket;
  }
  // What was taken, or handed to the driver, counts as sent from now on. Frames that never were the switch's do not count.
  void left(uint16_t port, PacketId id) {
    const Packet& packet = pool_[id];
    Port& out = ports_[port];
    if (packet.ingress_port == kNoIngress) return count_pfc(out, packet);
    SwitchPriorityCounters& counters = out.queues[packet.priority].counters;
    ++counters.queue_packets;
    counters.queue_bytes += packet.length;
    ++out.counters.tx_packets;
    out.counters.tx_bytes += packet.length;
    --held_;
  }
  // It was discarded instead, and is counted by whoever did so.
  void lost(PacketId id) {
    if (pool_[id].ingress_port != kNoIngress) --held_;
  }
  // Of what was taken, bytes that have not left by now. True if frames were picked because of that: to be taken as well.
  bool set_unsent(uint16_t port, uint32_t bytes) {
    Port& out = ports_[port];
    const bool waited = out.held_back != 0;
    out.unsent = bytes;
    out.held_back = bytes > kMostUnsent ? 1 : 0;
    return waited && out.held_back == 0 && go_on(out);
  }
  // What the driver was asked for has come: `at` is the time it was asked for. Times that the switch no longer wants are ignored.
  void wake(uint16_t port, Time at);
  Time next_deadline() const;
  Time now() const { return now_; }

  // A shard looks at what others sent it; advance() and receive() live through that as through everything else.
  void begin_turn();
  // A shard lets others see what it did, and sends home what it freed. Returns the shards that should soon have a turn, as a
  // mask.
  uint64_t end_turn();
  // Whether this shard owns the port: it alone may be given its frames, and writes its counters.
  bool owns(uint16_t port) const { return !ports_[port].remote; }

  size_t port_count() const { return ports_.size(); }
  SwitchPortCounters& counters(uint16_t port) { return ports_[port].counters; }
  SwitchPriorityCounters& counters(uint16_t port, int priority) {
    return ports_[port].queues[static_cast<size_t>(priority)].counters;
  }
  int64_t queue_bytes(uint16_t port, int priority) const { return buffer_.egress_bytes(port, priority); }
  uint8_t paused_mask(uint16_t port) const { return ports_[port].pause.paused_mask(); }
  uint8_t pausing_mask(uint16_t port) const { return ports_[port].pfc.stopped_mask(); }
  const SharedBuffer& buffer() const { return buffer_; }
  // Whether the peer at `port` is paused by us at `priority`.
  bool stopped(uint16_t port, int priority) const { return ports_[port].pfc.stopped(priority); }
  // Frames in the queues and on their way out of them, which have not been counted as sent.
  uint64_t held() const { return held_; }
  // Frames that came in here and are another shard's now: neither sent nor dropped yet, as far as this shard has heard.
  uint64_t lent() const { return lent_; }

  // Without a driver every queue keeps its distribution; with one, those that this is called for, before anything happens, or all
  // that ever hold a frame, which then get it.
  void keep_distribution(uint16_t port, int priority);
  void keep_distributions() { keeps_all_ = true; }
  bool keeps_distribution(uint16_t port, int priority) const {
    return ports_[port].queues[static_cast<size_t>(priority)].distribution != nullptr;
  }
  // Distribution of an egress queue's length over time, each length weighted by the ns it lasted, up to now(). Only when kept.
  const Histogram& queue_distribution(uint16_t port, int priority);
  // Highest queue length since the last call.
  int64_t take_queue_peak(uint16_t port, int priority);
  // Starts the distributions afresh: the warm-up is over.
  void reset_distributions();
  // Brings the duration counters (pauses) up to now().
  void settle_counters();

 private:
  // In the order of use, for the caches: a simulated fabric has thousands of ports.
  struct alignas(64) Queue {
    SwitchPriorityCounters counters;
    PacketQueue packets;
    Time since = 0;  // when the length last changed
    int64_t peak = 0;
    std::unique_ptr<Histogram> distribution;
    RedMarker marker;
  };
  struct alignas(64) Port {
    Serializer link;
    Time busy_until = 0;  // end of the frame on the link
    Time wakes = kNever;  // when step() is to be called: in events_, or asked of the driver
    PacketQueue departing;
    uint32_t mtu = 0;
    uint8_t backlogged = 0;
    uint8_t limited = 0;            // mask of queues with a rate limit
    uint8_t bounded = 0;            // mask of queues with a limit of their own to what they hold
    bool remote = false;            // another shard's
    uint8_t congestion_points = 0;  // mask of queues that have one
    uint16_t number = 0;
    uint8_t held_back = 0;  // 1 while the host has too much to take
    uint32_t unsent = 0;   // bytes that it has to take, at most; on a link with a rate, those that had left when it was last said
    uint8_t untagged = 0;  // mask of priorities whose frames leave without CN-TAG
    uint8_t defended = 0;  // mask of CNPVs that frames which come in here do not keep
    uint8_t outside = 0;   // mask of CNPVs of whose domain the neighbour here is no part
    alignas(64) PfcSender pfc;
    PauseState pause;
    alignas(64) SwitchPortCounters counters;
    Scheduler scheduler;
    SwitchParameters::Port parameters;
    std::array<Pacer, kPriorities> limiters;  // when a limited queue may send again
    StormControl storms;
    std::array<Queue, kPriorities> queues;
  };

  void apply_parameters();
  void catch_up(Time now);
  void forward(Port& in, uint16_t out, PacketId id);
  bool takes_offload(const Port& out, const Packet& packet) const;
  void finish_offload(Port& in, uint16_t out, PacketId id);
  void flood(Port& in, PacketId id);
  uint64_t* storm(Port& in, const Packet& packet);
  void count_learned(uint16_t of, Forwarding::Learned learned);
  bool passes(const Port& in, const Port& out, const Packet& packet) const;
  void pass(Port& in, Port& out, PacketId id);
  void enqueue(Port& out, PacketId id);
  PacketId dequeue(Port& out, int priority);
  void hand_over(Port& in, Port& out, PacketId id);
  void tell(const PacketMeta& meta, uint16_t port);
  void find_message();
  void take_messages(Time now);
  void take(const ShardMessage& message);
  void take_frame(Port& out, PacketId id);
  void settle(const ShardMessage& message);
  void report(const Packet& packet, ShardMessage::Fate fate);
  void release(const Packet& packet, const Port& out);
  static void count_pfc(Port& out, const Packet& packet);
  bool go_on(Port& port);
  void depart(Port& out, PacketId id, Packet& packet);
  void mark(Port& out, Packet& packet, int64_t queue_bytes);
  void apply_congestion_notification();
  bool guard(Port& in, PacketId id);
  PacketId sample(Port& out, PacketId id, int64_t queue_bytes);
  PacketId make_cnm(Port& out, PacketId id, const QcnFeedback& feedback);
  void send_back(Port& out, PacketId cnm);
  void remove_tag(Port& out, PacketId id);
  static void count_discarded(Port& out, int priority) {
    const bool congestion_point = (out.congestion_points >> priority & 1) != 0;
    if (congestion_point) ++out.queues[static_cast<size_t>(priority)].counters.cn_cp_discarded_frames;
  }
  void drop(uint64_t& reason, PacketId id);
  void pause(Time now, uint16_t port, uint8_t enable, uint8_t obeyed, const std::array<uint16_t, kPriorities>& quanta);
  void check_xoff(Port& in, int priority);
  void stop_peer(Port& in, int priority);
  void stop_for_want_of_headroom(Port& in, int priority);
  void check_xon() {
    if (stopped_ != 0) resume_peers();
  }
  void resume_peers();
  bool busy(const Port& port) const { return port.busy_until > now_; }
  void step(Port& port);
  void start_next(Port& port);
  int pick(Port& port);
  void reschedule(Port& port);
  void schedule(Port& port, Time at) {
    if (port.wakes != at) wake_at(port, at);
  }
  void wake_at(Port& port, Time at);
  PacketId make_pfc(Port& port);
  uint8_t limited_mask(const Port& port) const;
  Time next_release(const Port& port) const;
  void note_length(Queue& queue, int64_t bytes_before) {
    if (now_ > queue.since && (queue.distribution != nullptr || keeps_all_)) record_length(queue, bytes_before);
  }
  void record_length(Queue& queue, int64_t bytes_before);
  static void raise(uint64_t& watermark, int64_t value) {
    if (value > static_cast<int64_t>(watermark)) watermark = static_cast<uint64_t>(value);
  }

  SwitchParameters parameters_;
  PacketPool& pool_;
  SharedBuffer buffer_;
  Forwarding forwarding_;
  Random random_;
  std::vector<Port> ports_;
  std::vector<QcnCongestionPoint> congestion_points_;  // of all queues, by port and priority; none where QCN was never on
  Driver* driver_;
  ShardLink* link_;
  IndexedHeap events_;
  Time next_message_ = kNever;  // the oldest of those that others sent
  Time next_rival_ = kNever;    // the oldest of those of other shards than that one's
  uint32_t next_sender_ = 0;
  Time now_ = 0;
  uint64_t held_ = 0;
  uint64_t lent_ = 0;
  uint32_t stopped_ = 0;  // how many (port, priority) pairs are stopped by us now
  bool keeps_all_ = false;
};

}  // namespace weir
