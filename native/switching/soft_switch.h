// A lossless Ethernet switch as a state machine: no I/O, no clock, no threads. Its driver (link/driver.h) is handed every
// frame as soon as it is picked, and calls wake() when told to.
//
//   receive(now, port, packet)   a frame arrived whole at `now`, and all that was due by then has happened
//   pauses().receive_pfc(...)    a MAC control frame arrived
//   wake(what, at)               the driver was asked for this time, and it has come
//   left(port, packet)           the host behind the port has taken a frame: it counts as sent
//   set_unsent(port, bytes)      bytes that were handed over and that it has not taken
//
// The way of a frame is receive -> forward in soft_switch.cc, and emit -> admit -> enqueue -> serve -> depart in
// traffic_manager.cc. Parts have headers of their own, and share switch_state.h: where a frame leaves (forwarding.h,
// load_balancing.h), whether it may come in (shared_buffer.h, storm_control.h), VLANs (vlans.h), what is routed instead of
// bridged (routed_path.h, router.h), queues and links (traffic_manager.h, egress_port.h), marks (congestion/red_marker.h),
// congestion notification (congestion_notification.h, congestion_domain.h), pauses (pauses.h, link/pfc.h, pfc_watchdog.h), and
// one switch on several workers (shard_traffic.h, shard.h, exchange.h).
//
// Times never go backwards. It costs little: a frame that meets a free link and no queue touches no queue, heap or distribution;
// a wake is needed only where something waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fetch.h"
#include "base/types.h"
#include "link/driver.h"
#include "switching/counters.h"
#include "switching/exchange.h"
#include "switching/forwarding.h"
#include "switching/pauses.h"
#include "switching/queue_statistics.h"
#include "switching/routed_path.h"
#include "switching/shard_traffic.h"
#include "switching/shared_buffer.h"
#include "switching/switch_parameters.h"
#include "switching/switch_state.h"
#include "switching/traffic_manager.h"
#include "switching/vlans.h"
#include "wire/carried.h"
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

  // New parameters between two events: queues, learned addresses and random streams stay. The ports must be as many. A new limit
  // to a queue's rate holds at once, also for a frame that waits for it; a new rate of a link from the next frame on. Throws as
  // the constructor does, and has changed nothing then.
  void reconfigure(SwitchParameters parameters);
  // The same with parameters that have passed check(), which of thousands of routes takes longer than all else.
  void adopt(SwitchParameters parameters);
  const SwitchParameters& parameters() const { return state_.parameters; }

  // Parts that others talk to.
  Forwarding& forwarding() { return state_.forwarding; }
  const Forwarding& forwarding() const { return state_.forwarding; }
  RoutedPath& routed() { return routed_; }
  Pauses& pauses() { return pauses_; }
  const Pauses& pauses() const { return pauses_; }
  QueueStatistics& statistics() { return statistics_; }
  const SharedBuffer& buffer() const { return state_.buffer; }

  // Takes ownership of `id`, whose meta and length are filled in.
  void receive(Time now, uint16_t port, PacketId id);
  // Nothing happens up to `now`: what was asked for by then has come.
  void advance(Time now) { state_.advance(now); }
  // A time has come that the driver was asked for: `at`. Times that the switch no longer wants are ignored.
  void wake(uint32_t what, Time at);
  Time now() const { return state_.now; }

  // Frames that were handed to the driver count as sent from now on; kind pfc: made here, without bytes. Frames that never were
  // the switch's do not count.
  void left(uint16_t port, PacketId id) {
    const Packet& packet = state_.pool[id];
    SwitchPort& out = state_.ports[port];
    if (packet.ingress_port == kNoIngress) return out.count_own(packet);
    SwitchPriorityCounters& counters = out.egress.queue(packet.priority).counters;
    const uint32_t frames = carried_frames(packet), bytes = carried_bytes(packet);
    counters.queue_packets += frames;
    counters.queue_bytes += bytes;
    out.counters.tx_packets += frames;
    out.counters.tx_bytes += bytes;
    state_.held -= frames;
  }
  // It was discarded instead, and is counted by whoever did so.
  void lost(PacketId id) {
    if (state_.pool[id].ingress_port != kNoIngress) state_.held -= carried_frames(state_.pool[id]);
  }
  // Takes the bytes that have left and that the host has not taken by now. True if frames may have been picked because of that.
  bool set_unsent(uint16_t port, uint32_t bytes) {
    SwitchPort& out = state_.ports[port];
    if (!out.egress.set_unsent(bytes)) return false;
    traffic_.serve_and_reschedule(out);
    return true;
  }

  // A shard looks at what others sent it, and wants to be woken for it as for everything else.
  void begin_turn() { shards_.begin_turn(); }
  // A shard lets others see what it did, and sends home what it freed. Returns the shards that should soon have a turn, as a
  // mask.
  uint64_t end_turn() { return shards_.end_turn(); }
  // Whether this shard owns the port: it alone may be given its frames, and writes its counters.
  bool owns(uint16_t port) const { return !state_.ports[port].remote; }

  // Hints for the caches: a packet is going to come in, whose descriptor may be fetched still; it is, at a port, of the priority
  // that its sender has given it; or there is a wake.
  WEIR_FETCHES void fetch_bytes(PacketId id) const {
    if (!routed_.routes()) return;
    __builtin_prefetch(&state_.pool[id].meta.l3_offset, 1);
    __builtin_prefetch(state_.pool.data(id), 1);
  }
  WEIR_FETCHES void fetch(uint16_t port, PacketId id) const {
    const Packet& packet = state_.pool[id];
    if (routed_.routes()) routed_.fetch(packet.meta, state_.pool.data(id));
    state_.ports[port].egress.fetch(packet.priority);
    __builtin_prefetch(&state_.ports[port].counters, 1);
    state_.buffer.fetch(port, packet.priority);
    state_.forwarding.fetch(packet.meta);
  }
  WEIR_FETCHES void fetch(uint32_t what) const {
    if (what < state_.ports.size()) state_.ports[what].egress.fetch();
  }
  // Memory that each port takes.
  static constexpr size_t port_bytes() { return sizeof(SwitchPort) + kPriorities * SharedBuffer::kPlaceBytes; }
  size_t port_count() const { return state_.ports.size(); }
  SwitchPortCounters& counters(uint16_t port) { return state_.ports[port].counters; }
  SwitchPriorityCounters& counters(uint16_t port, int priority) { return state_.ports[port].egress.queue(priority).counters; }
  int64_t queue_bytes(uint16_t port, int priority) const { return state_.buffer.egress_bytes(port, priority); }
  // Frames in the queues and on their way out of them, which have not been counted as sent. A super-frame counts as those that it
  // carries, as everywhere.
  uint64_t held() const { return state_.held; }
  // Frames that came in here and are another shard's now: neither sent nor dropped yet, as far as this shard has heard.
  uint64_t lent() const { return state_.lent; }

 private:
  void configure_parts();
  void learn(SwitchPort& in, const PacketMeta& meta);
  void flood(SwitchPort& in, PacketId id);

  SwitchState state_;
  Vlans vlans_;
  RoutedPath routed_;
  Pauses pauses_;
  ShardTraffic shards_;
  TrafficManager traffic_;
  QueueStatistics statistics_;
};

}  // namespace weir
