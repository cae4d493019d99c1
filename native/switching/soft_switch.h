// A lossless Ethernet switch as a state machine: no I/O, no clock, no threads. Its driver (link/driver.h) is handed every
// frame as soon as it is picked, and calls wake() when told to.
//
//   receive(now, port, packet)   a frame arrived whole at `now`, and all that was due by then has happened
//   receive_pfc / receive_pause  a MAC control frame arrived
//   wake(what, at)               the driver was asked for this time, and it has come
//   left(port, packet)           the host behind the port has taken a frame: it counts as sent
//   set_unsent(port, bytes)      bytes that were handed over and that it has not taken
//
// The way of a frame is receive -> forward -> admit -> enqueue -> serve -> depart, in the order of soft_switch.cc. Parts that
// join here have headers of their own: where a frame leaves (forwarding.h, load_balancing.h), whether it may come in
// (shared_buffer.h, storm_control.h), VLANs (vlan_table.h, soft_switch_vlans.cc), what is routed instead of bridged (router.h,
// soft_switch_routes.cc), queues and links (egress_port.h), marks (congestion/red_marker.h), congestion notification
// (congestion_notification.h, congestion_domain.h), pauses (link/pfc.h, pfc_watchdog.h), and one switch on several workers
// (shard.h, exchange.h).
//
// Times never go backwards. It costs little: a frame that meets a free link and no queue touches no queue, heap or distribution;
// a wake is needed only where something waits.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/fetch.h"
#include "base/histogram.h"
#include "base/random.h"
#include "base/types.h"
#include "link/driver.h"
#include "switching/congestion_domain.h"
#include "switching/counters.h"
#include "switching/egress_port.h"
#include "switching/exchange.h"
#include "switching/forwarding.h"
#include "switching/load_balancing.h"
#include "switching/pfc_watchdog.h"
#include "switching/router.h"
#include "switching/shared_buffer.h"
#include "switching/storm_control.h"
#include "switching/switch_parameters.h"
#include "switching/vlan_table.h"
#include "wire/carried.h"
#include "wire/icmp.h"
#include "wire/neighbour.h"
#include "wire/packet_pool.h"

namespace weir {

class SoftSwitch {
 public:
  // Throws NativeError INVALID_CONFIG for parameters that do not pass check(). `pool`, `driver` and `link` must outlive the
  // switch and belong to the same worker. `queued`: most packets that its queues may hold. With a link this is a shard
  // (switching/shard.h): it knows all ports, is given the frames of its own, is framed by begin_turn() and end_turn(), and the
  // pool is its slice of the memory that all shards share.
  SoftSwitch(SwitchParameters parameters, PacketPool& pool, Driver& driver, uint32_t queued = kMostPackets,
             ShardLink* link = nullptr);
  SoftSwitch(const SoftSwitch&) = delete;
  SoftSwitch& operator=(const SoftSwitch&) = delete;

  // New parameters between two events: queues, learned addresses and random streams stay. The ports must be as many. A new limit
  // to a queue's rate holds at once, also for a frame that waits for it; a new rate of a link from the next frame on. Throws as
  // the constructor does, and has changed nothing then.
  void reconfigure(SwitchParameters parameters);
  // The same with parameters that have passed check(), which of thousands of routes takes longer than all else.
  void adopt(SwitchParameters parameters);
  const SwitchParameters& parameters() const { return parameters_; }

  // Null: it does not route.
  const Router* router() const { return router_.get(); }
  Forwarding& forwarding() { return forwarding_; }
  const Forwarding& forwarding() const { return forwarding_; }

  // Takes ownership of `id`, whose meta and length are filled in.
  void receive(Time now, uint16_t port, PacketId id);
  // Frames that the kernel's twins are to have, since this was last taken: whoever takes them owns them, whole and untagged.
  // Their ingress is the port that they came in at.
  struct ForKernel {
    PacketId id;
    uint16_t interface;  // number of the router's interface
  };
  std::vector<ForKernel>& for_kernel() { return for_kernel_; }
  // A frame without a tag that the kernel has sent by the twin of an interface of the router. Takes ownership of `id`, whose meta
  // and length are filled in.
  void send_for_kernel(Time now, uint16_t interface, PacketId id);
  // Priorities that are not under PFC here do not obey.
  void receive_pfc(Time now, uint16_t port, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta);
  void receive_pause(Time now, uint16_t port, uint16_t quanta);
  // The link at `port` has failed: what its two ends have asked of each other by PFC is over.
  void end_pauses(Time now, uint16_t port);
  // Nothing happens up to `now`: what was asked for by then has come.
  void advance(Time now) { now_ = std::max(now_, now); }
  // A time has come that the driver was asked for: `at`. Times that the switch no longer wants are ignored.
  void wake(uint32_t what, Time at);
  Time now() const { return now_; }

  // Frames that were handed to the driver count as sent from now on; kind pfc: made here, without bytes. Frames that never were
  // the switch's do not count.
  void left(uint16_t port, PacketId id) {
    const Packet& packet = pool_[id];
    Port& out = ports_[port];
    if (packet.ingress_port == kNoIngress) return count_own(out, packet);
    SwitchPriorityCounters& counters = out.egress.queue(packet.priority).counters;
    const uint32_t frames = carried_frames(packet), bytes = carried_bytes(packet);
    counters.queue_packets += frames;
    counters.queue_bytes += bytes;
    out.counters.tx_packets += frames;
    out.counters.tx_bytes += bytes;
    held_ -= frames;
  }
  // It was discarded instead, and is counted by whoever did so.
  void lost(PacketId id) {
    if (pool_[id].ingress_port != kNoIngress) held_ -= carried_frames(pool_[id]);
  }
  // Takes the bytes that have left and that the host has not taken by now. True if frames may have been picked because of that.
  bool set_unsent(uint16_t port, uint32_t bytes) {
    Port& out = ports_[port];
    if (!out.egress.set_unsent(bytes)) return false;
    go_on(out);
    return true;
  }

  // A shard looks at what others sent it, and wants to be woken for it as for everything else.
  void begin_turn();
  // A shard lets others see what it did, and sends home what it freed. Returns the shards that should soon have a turn, as a
  // mask.
  uint64_t end_turn();
  // Whether this shard owns the port: it alone may be given its frames, and writes its counters.
  bool owns(uint16_t port) const { return !ports_[port].remote; }

  // Hints for the caches: a packet is going to come in, whose descriptor may be fetched still; it is, at a port, of the priority
  // that its sender has given it; or there is a wake.
  WEIR_FETCHES void fetch_bytes(PacketId id) const {
    if (router_ == nullptr) return;
    __builtin_prefetch(&pool_[id].meta.l3_offset, 1);
    __builtin_prefetch(pool_.data(id), 1);
  }
  WEIR_FETCHES void fetch(uint16_t port, PacketId id) const {
    const Packet& packet = pool_[id];
    if (router_ != nullptr && packet.meta.l3_offset != 0) router_->fetch(destination_of(packet.meta, pool_.data(id)));
    ports_[port].egress.fetch(packet.priority);
    __builtin_prefetch(&ports_[port].counters, 1);
    buffer_.fetch(port, packet.priority);
    forwarding_.fetch(packet.meta);
  }
  WEIR_FETCHES void fetch(uint32_t what) const {
    if (what < ports_.size()) ports_[what].egress.fetch();
  }
  // Memory that each port takes.
  static constexpr size_t port_bytes() { return sizeof(Port) + kPriorities * SharedBuffer::kPlaceBytes; }
  size_t port_count() const { return ports_.size(); }
  SwitchPortCounters& counters(uint16_t port) { return ports_[port].counters; }
  SwitchPriorityCounters& counters(uint16_t port, int priority) { return ports_[port].egress.queue(priority).counters; }
  int64_t queue_bytes(uint16_t port, int priority) const { return buffer_.egress_bytes(port, priority); }
  uint8_t paused_mask(uint16_t port) const { return ports_[port].egress.pause.paused_mask(); }
  uint8_t pausing_mask(uint16_t port) const { return ports_[port].egress.pfc.stopped_mask(); }
  // Egress queues that the watchdog has found to be paused without end.
  uint8_t pfc_storm_mask(uint16_t port) const { return ports_[port].watchdog ? ports_[port].watchdog->storms() : uint8_t{0}; }
  const SharedBuffer& buffer() const { return buffer_; }
  // Whether the peer at `port` is paused by us at `priority`.
  bool stopped(uint16_t port, int priority) const { return ports_[port].egress.pfc.stopped(priority); }
  // Frames in the queues and on their way out of them, which have not been counted as sent. A super-frame counts as those that it
  // carries, as everywhere.
  uint64_t held() const { return held_; }
  // Frames that came in here and are another shard's now: neither sent nor dropped yet, as far as this shard has heard.
  uint64_t lent() const { return lent_; }

  // Queues that this is called for, before anything happens, keep their distribution; or all that ever hold a frame, which then
  // get it.
  void keep_distribution(uint16_t port, int priority);
  void keep_distributions() { keeps_all_ = true; }
  bool keeps_distribution(uint16_t port, int priority) const {
    return ports_[port].egress.queue(priority).distribution != nullptr;
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
  struct Port {
    EgressPort egress;
    alignas(64) CongestionDomain::Port domain;
    bool remote = false;  // another shard's
    SwitchPortCounters counters;
    StormControl storms;
    std::unique_ptr<PfcWatchdog> watchdog;
    uint16_t number() const { return egress.number(); }
  };

  void apply_parameters();

  PortLoad load_of(uint16_t port, int priority) const {
    return {buffer_.egress_bytes(port, priority), ports_[port].egress.free_at(now_)};
  }

  // The way of a frame.
  void learn(Port& in, const PacketMeta& meta);
  void count_learned(uint16_t of, Forwarding::Learned learned);
  void flood(Port& in, PacketId id);
  uint64_t* storm(Port& in, const Packet& packet);
  void forward(Port& in, uint16_t to, PacketId id) {
    if (to == in.number()) return drop(in.counters.drop_same_port, id);
    emit(in, to, id);
  }
  void emit(Port& in, uint16_t to, PacketId id);
  void configure_vlans();
  bool enter_vlan(Port& in, PacketId id);
  bool in_vlan(uint16_t port, uint16_t vlan) const;
  bool leave_in_vlan(Port& in, const Port& out, PacketId id);
  bool routes_only(uint16_t port) const { return router_ != nullptr && router_->routed(port); }
  bool takes_offload(const Port& out, const Packet& packet) const;
  bool may_queue_whole(const Port& in, const Port& out, const Packet& packet) const;
  void drop_of_storm(Port& in, PacketId id);
  void finish_offload(Port& in, uint16_t to, PacketId id);
  void admit(Port& in, Port& out, PacketId id);
  void join(Port& in, Port& out, PacketId id);
  Admission charge(const Port& in, const Port& out, const Packet& packet);
  Admission charge_queue(const Port& out, const Packet& packet);
  bool trims(const Packet& packet, Admission why) const {
    const bool full = why != Admission::pfc_storm && why != Admission::headroom_full;
    const bool may = (parameters_.trimming.priorities >> packet.priority & 1) != 0 && packet.offload.gso == Gso::none;
    return full && may && can_trim(packet, parameters_.trimming.size);
  }
  void trim(Port& out, PacketId id);
  void trim_or_drop(Port& in, Port& out, PacketId id, Admission why);
  bool beyond_limit(const Port& out, const Packet& packet) const {
    const int priority = packet.priority;
    return out.egress.has_limit(priority) && buffer_.egress_bytes(out.number(), priority) + carried_bytes(packet) >
                                                 out.egress.parameters().queue_limits[packet.priority];
  }
  static void count_admitted(Port& in, int priority, uint32_t frames) {
    if (frames > 1) ++in.counters.gso_passed;
    in.egress.queue(priority).counters.pg_packets += frames;
  }
  static void count_refused(Port& in, int priority, Admission why, uint32_t frames);
  static void count_discarded(Port& out, int priority, Admission why) {
    SwitchPriorityCounters& counters = out.egress.queue(priority).counters;
    if (why == Admission::pfc_storm) {
      ++counters.pfc_wd_tx_drop;
    } else if (out.domain.has_point(priority)) {
      ++counters.cn_cp_discarded_frames;
    }
  }
  void pass(Port& in, Port& out, PacketId id);
  void enqueue(Port& out, PacketId id);
  void send_back(Port& out, PacketId cnm, uint16_t to);
  void mark(Port& out, Packet& packet, int64_t queue_bytes) {
    if ((parameters_.ecn_priorities >> packet.priority & 1) != 0) out.egress.mark(packet, queue_bytes, random_);
  }
  void serve(Port& out);
  PacketId dequeue(Port& out, int priority);
  void release(const Packet& packet, const Port& out, Admission fate = Admission::admitted);
  PacketId make_pfc(Port& out);
  void tell(Port& out, PacketId id);
  void depart(Port& out, PacketId id) {
    if (out.egress.tells()) tell(out, id);
    const Time at = out.egress.serialize(now_, pool_[id].length);
    driver_.depart(out.number(), id, at);
  }
  static void count_own(Port& out, const Packet& packet);
  void drop(uint64_t& reason, PacketId id);
  void discard(PacketId id);

  // The way of a frame that is routed.
  static AddressBits destination_of(const PacketMeta& meta, const uint8_t* frame) {
    const uint32_t source = meta.l3_offset + ip_source_offset(meta.ip_version);
    return AddressBits::load(meta.ip_version, frame + source + ip_address_length(meta.ip_version));
  }
  void configure_router();
  bool route(Port& in, PacketId id);
  void route_ip(Port& in, uint16_t on, PacketId id);
  const Router::NextHop* next_hop(const Packet& packet, uint8_t version, const Router::Destination& to);
  uint32_t neighbour_of(const Router::NextHop& hop, uint8_t version, Router::Destination& to);
  void send_to(Port& in, uint32_t neighbour, PacketId id);
  void notify_by_route(Port& out, PacketId cnm);
  void take_for_router(Port& in, PacketId id);
  void take_locally(Port& in, uint16_t on, PacketId id);
  bool concerns_kernel(PacketId id) const;
  void take_for_kernel(Port& in, uint16_t on, PacketId id);
  void send_routed(Port& in, PacketId id, const NeighbourTable::Entry& to);
  void wait_for(Port& in, uint32_t neighbour, PacketId id);
  void resolved(uint32_t neighbour);
  void ask(Port& in, uint32_t neighbour);
  void hear(Port& in, uint16_t on, const NeighbourMessage& message, PacketId id);
  bool learn_neighbour(Port& in, uint16_t on, const NeighbourMessage& message);
  void tell_of_neighbour(uint16_t port, PacketId id);
  void hear_of(Port& at, PacketId id);
  bool may_send_icmp(Port& in);
  void refuse(Port& in, uint16_t on, PacketId id, uint64_t& reason, IcmpError error, uint32_t mtu = 0);
  PacketId make(Port& in, const uint8_t* bytes, uint32_t length);
  void look_at_neighbours(Time at);
  uint16_t first_own_port() const;
  void arm_router();

  // When a port has something to do.
  void go_on(Port& port);
  void reschedule(Port& port) { schedule(port, port.egress.next_wake(now_)); }
  void schedule(Port& port, Time at) {
    if (port.egress.changes_wake(at)) driver_.wake(port.number(), at);
  }

  // Pauses.
  void obey(Time now, Port& port, uint8_t enable, uint8_t obeyed, const std::array<uint16_t, kPriorities>& quanta);
  void check_xoff(Port& in, int priority) {
    if ((parameters_.pfc_priorities >> priority & 1) != 0 && buffer_.above_xoff(in.number(), priority)) stop_peer(in, priority);
  }
  void configure_watchdog(Port& port);
  void watch(Port& port);
  void begin_storm(Port& port, int priority);
  void stop_for_want_of_headroom(Port& in, int priority);
  void stop_peer(Port& in, int priority);
  void check_xon() {
    if (stopped_ != 0) resume_peers();
  }
  void resume_peers();
  void resume(Port& port, int priority);

  // Messages of a shard to the others, and its answers to theirs.
  void ask_for_messages();
  void take_message(Time at);
  void lend(Port& out, PacketId id);
  void take_frame(Port& out, PacketId id);
  void report(const Packet& packet, Admission fate);
  void take_trimmed_frame(Port& out, PacketId id, Admission why);
  void settle(const ShardMessage& message);

  SwitchParameters parameters_;
  PacketPool& pool_;
  SharedBuffer buffer_;
  Forwarding forwarding_;
  VlanTable vlans_;
  std::vector<std::optional<PortVlans>> port_vlans_;  // settings that those are made of
  std::unique_ptr<Router> router_;
  uint64_t router_mac_ = Forwarding::kNobody;  // kNobody: there is no router
  std::vector<ForKernel> for_kernel_;
  LoadBalancer balancer_;
  CongestionDomain domain_;
  Random random_;
  std::vector<Port> ports_;
  Driver& driver_;
  ShardLink* link_;
  std::atomic<Time> own_icmp_used_{0};
  std::atomic<Time>& icmp_used_;  // up to when the rate of ICMP messages is used up: of all shards together
  const uint32_t messages_;       // entry that it is woken for besides ports
  Time now_ = 0;
  uint64_t held_ = 0;
  uint64_t lent_ = 0;
  uint32_t stopped_ = 0;  // number of (port, priority) pairs that are stopped by us now
  bool keeps_all_ = false;
};

}  // namespace weir
