#include "switching/soft_switch.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/native_error.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"
#include "wire/segmentation.h"

namespace weir {
namespace {

constexpr uint64_t kReservedBlock = 0x0180c2000000;  // 01:80:C2:00:00:00..0F (IEEE 802.1Q table 8-1): never forwarded
constexpr uint8_t kAllPriorities = 0xff;
constexpr Time kLookAgain = 20 * kMicrosecond;

// In front of the IP packet, tags included.
uint32_t header_length(const PacketMeta& meta) {
  return kEthernetHeader + (meta.tagged ? kVlanTag : 0) + (meta.cn_tagged ? kCnTag : 0);
}

SwitchParameters checked(SwitchParameters parameters) {
  check(parameters);
  return parameters;
}

}  // namespace

bool alternates_are_free(const SwitchParameters& p) {
  return std::ranges::all_of(p.ports, [&](const SwitchParameters::Port& port) {
    for (size_t priority = 0; priority < kPriorities; ++priority) {
      if ((p.cn_priorities >> priority & 1) == 0 || port.cn_defence[priority] != CnDefence::edge) continue;
      const uint8_t alternate = port.cn_alternate_priority[priority];
      if (alternate >= kPriorities || (p.cn_priorities >> alternate & 1) != 0) return false;
    }
    return true;
  });
}

SoftSwitch::SoftSwitch(SwitchParameters parameters, PacketPool& pool, Driver* driver, ShardLink* link)
    : parameters_(checked(std::move(parameters))),
      pool_(pool),
      // A third is for what is on its way in or out. In virtual time there are as many packets as it takes.
      buffer_(parameters_.buffer, static_cast<int>(parameters_.ports.size()), parameters_.pfc_priorities,
              driver == nullptr ? pool.size() / 3 * 2 : kMostPackets),
      forwarding_(parameters_.fdb_capacity, parameters_.learning, parameters_.ageing,
                  Random(parameters_.hash_seed, parameters_.component, 1).next(), parameters_.ports.size()),
      random_(parameters_.seed, parameters_.component, link == nullptr ? 0 : 16 + link->map().self),
      ports_(parameters_.ports.size()),
      driver_(driver),
      link_(link),
      events_(static_cast<uint32_t>(parameters_.ports.size())) {
  apply_parameters();
  for (uint16_t port = 0; driver_ == nullptr && port < ports_.size(); ++port) {
    for (int priority = 0; priority < kPriorities && owns(port); ++priority) keep_distribution(port, priority);
  }
}

void SoftSwitch::apply_parameters() {
  for (size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    port.number = static_cast<uint16_t>(i);
    port.remote = link_ != nullptr && link_->map().owner[i] != link_->map().self;
    const std::array<Rate, kPriorities> rates = std::exchange(port.parameters, parameters_.ports[i]).priority_rates;
    if (port.link.rate() != port.parameters.rate) port.link = Serializer(port.parameters.rate);
    port.scheduler.configure(parameters_.scheduler);
    port.pfc.configure(port.parameters.rate);
    port.mtu = port.parameters.mtu;
    port.storms.configure(port.parameters.storm_rates);
    forwarding_.limit(port.number, port.parameters.max_learned_addresses);
    port.limited = port.bounded = 0;
    for (size_t p = 0; p < kPriorities; ++p) {
      port.queues[p].marker = RedMarker(parameters_.red);
      const Rate rate = port.parameters.priority_rates[p];
      if (rate != rates[p]) port.limiters[p].rate_changed(now_, rate);
      if (rate > 0) port.limited = static_cast<uint8_t>(port.limited | 1u << p);
      if (port.parameters.queue_limits[p] > 0) port.bounded = static_cast<uint8_t>(port.bounded | 1u << p);
    }
  }
  apply_congestion_notification();
}

void SoftSwitch::reconfigure(SwitchParameters parameters) {
  require(parameters.ports.size() == ports_.size(), "switch", "the number of ports cannot change");
  parameters_ = checked(std::move(parameters));
  buffer_.reconfigure(parameters_.buffer, parameters_.pfc_priorities);
  forwarding_.reconfigure(parameters_.learning, parameters_.ageing);
  apply_parameters();
  for (Port& port : ports_) {
    // Who was stopped at a priority that is lossy now would never be resumed.
    for (uint8_t left = port.pfc.stopped_mask() & ~parameters_.pfc_priorities; left != 0;
         left = static_cast<uint8_t>(left & (left - 1))) {
      port.pfc.resume(__builtin_ctz(left), now_);
      --stopped_;
    }
    schedule(port, std::max(now_, port.busy_until));
  }
}

void SoftSwitch::receive(Time now, uint16_t in, PacketId id) {
  advance(now);
  Port& port = ports_[in];
  assert(!port.remote);
  Packet& packet = pool_[id];
  ++held_;
  ++port.counters.rx_packets;
  port.counters.rx_bytes += packet.length;
  packet.ingress_port = in;
  packet.priority = parameters_.priority_map.priority(packet.meta);
  if ((port.defended >> packet.priority & 1) != 0 || packet.meta.kind == FrameKind::cnm) {
    if (!guard(port, id)) return;
  }
  if ((packet.meta.destination_mac & ~0xfull) == kReservedBlock) return drop(port.counters.drop_reserved_address, id);
  if (forwarding_.learning()) {
    const bool news = link_ != nullptr && forwarding_.is_news(now_, packet.meta, in);
    const Forwarding::Learned learned = forwarding_.learn(now_, packet.meta, in);
    count_learned(in, learned);
    if (news && learned) tell(packet.meta, in);
  }
  const int out = forwarding_.lookup(now_, packet.meta);
  if (out >= 0) return forward(port, static_cast<uint16_t>(out), id);
  if (!forwarding_.learning()) return drop(port.counters.drop_no_route, id);
  flood(port, id);
}

// What became of an address of port `of`. Other shards count for their ports.
void SoftSwitch::count_learned(uint16_t of, Forwarding::Learned learned) {
  using Outcome = Forwarding::Learned::Outcome;
  if (learned.outcome == Outcome::stored) return;
  Port& port = ports_[learned.outcome == Outcome::in_place ? learned.forgotten : of];
  SwitchPortCounters& counters = port.counters;
  if (port.remote) return;
  ++(learned.outcome == Outcome::in_place  ? counters.fdb_evicted
     : learned.outcome == Outcome::limited ? counters.fdb_limited
                                           : counters.fdb_full);
}

// Of a frame that would be flooded: where to count it if it is beyond what its port may.
uint64_t* SoftSwitch::storm(Port& in, const Packet& packet) {
  const Storm kind = storm_of(packet.meta.destination_mac);
  if (!in.storms.exceeded(now_, kind, wire_bytes(packet.length))) return nullptr;
  SwitchPortCounters& counters = in.counters;
  return kind == Storm::broadcast   ? &counters.drop_storm_broadcast
         : kind == Storm::multicast ? &counters.drop_storm_multicast
                                    : &counters.drop_storm_unknown_unicast;
}

void SoftSwitch::flood(Port& in, PacketId id) {
  if (uint64_t* const reason = storm(in, pool_[id]); reason != nullptr) return drop(*reason, id);
  int last = -1;
  for (uint16_t out = 0; out < ports_.size(); ++out) {
    if (out == in.number) continue;
    if (last >= 0) {
      const PacketId copy = pool_.copy(id);
      ++in.counters.flood_copies;
      if (copy == kNoPacket) {
        ++in.counters.drop_no_descriptor;
      } else {
        ++held_;
        forward(in, static_cast<uint16_t>(last), copy);
      }
    }
    last = out;
  }
  if (last < 0) return drop(in.counters.drop_no_route, id);
  forward(in, static_cast<uint16_t>(last), id);
}

void SoftSwitch::forward(Port& in, uint16_t to, PacketId id) {
  Port& out = ports_[to];
  const Packet& packet = pool_[id];
  const int priority = packet.priority;
  if (out.number == in.number) return drop(in.counters.drop_same_port, id);
  const uint32_t longest = packet.offload.largest_segment(packet.length);
  if (longest > out.mtu + kEthernetHeader && longest > out.mtu + header_length(packet.meta))
    return drop(in.counters.drop_mtu_exceeded, id);
  if (packet.offload.pending() && !takes_offload(out, packet)) return finish_offload(in, to, id);
  if (out.remote) return hand_over(in, out, id);
  if ((out.bounded >> priority & 1) != 0) {
    const int64_t limit = out.parameters.queue_limits[static_cast<size_t>(priority)];
    if (buffer_.egress_bytes(to, priority) + packet.length > limit) {
      count_discarded(out, priority);
      return drop(in.counters.drop_queue_limit, id);
    }
  }
  if (passes(in, out, packet)) return pass(in, out, id);
  SwitchPriorityCounters& group = in.queues[static_cast<size_t>(priority)].counters;
  const Admission admission = buffer_.admit(in.number, to, priority, packet.length);
  if (admission != Admission::admitted) {
    ++group.pg_dropped_packets;
    switch (admission) {
      case Admission::headroom_full:
        stop_for_want_of_headroom(in, priority);
        return drop(in.counters.drop_headroom_full, id);
      case Admission::lossy_threshold:
        count_discarded(out, priority);
        return drop(in.counters.drop_lossy_threshold, id);
      default:
        count_discarded(out, priority);
        return drop(in.counters.drop_buffer_full, id);
    }
  }
  if (packet.offload.gso != Gso::none) ++in.counters.gso_passed;
  ++group.pg_packets;
  raise(group.pg_watermark_bytes, buffer_.ingress_bytes(in.number, priority));
  raise(group.pg_xoff_room_watermark_bytes, buffer_.headroom_bytes(in.number, priority));
  enqueue(out, id);
  check_xoff(in, priority);
}

// A partial checksum rides through any queue. A super-frame would distort a shaped one, be marked, sampled or stopped as one
// frame.
bool SoftSwitch::takes_offload(const Port& out, const Packet& packet) const {
  const SwitchParameters::Port& port = out.parameters;
  if (!port.offloads || packet.offload.gso == Gso::none) return port.offloads;
  return port.rate == 0 && port.priority_rates[packet.priority] == 0 &&
         ((parameters_.ecn_priorities | parameters_.pfc_priorities | out.congestion_points) >> packet.priority & 1) == 0;
}

// Does in software what the egress interface cannot, and forwards what comes of it.
void SoftSwitch::finish_offload(Port& in, uint16_t out, PacketId id) {
  SwitchPortCounters& counters = in.counters;
  Packet& frame = pool_[id];
  if (frame.offload.gso == Gso::none) {
    if (!complete_checksum(pool_.data(id), frame.length, frame.offload)) return drop(counters.drop_offload_refused, id);
    frame.offload = {};
    return forward(in, out, id);
  }
  // An MTU may be larger than what the memory was made for.
  if (frame.offload.largest_segment(frame.length) > pool_.room()) return drop(counters.drop_mtu_exceeded, id);
  const uint32_t count = segment_count(frame.length, frame.offload);
  ++counters.gso_segmented;
  counters.gso_segments += count;
  for (uint32_t i = 0; i < count; ++i) {
    const PacketId segment = pool_.allocate();
    if (segment == kNoPacket) {
      ++counters.drop_no_descriptor;
      continue;
    }
    ++held_;
    pool_[segment] = frame;
    pool_[segment].offload = {};
    pool_[segment].length = write_segment(pool_.data(id), frame.length, frame.offload, i, pool_.data(segment));
    forward(in, out, segment);
  }
  --held_;
  pool_.free(id);
}

void SoftSwitch::drop(uint64_t& reason, PacketId id) {
  ++reason;
  --held_;
  pool_.free(id);
}

void SoftSwitch::check_xoff(Port& in, int priority) {
  if ((parameters_.pfc_priorities >> priority & 1) != 0 && buffer_.above_xoff(in.number, priority)) stop_peer(in, priority);
}

// A frame was dropped that found neither room nor headroom, so its sender should be stopped, if it is not. But not if nothing is
// held of it: a frame that is longer than both would never come in, and nothing would ever leave that lets its sender go on.
void SoftSwitch::stop_for_want_of_headroom(Port& in, int priority) {
  if (!buffer_.below_xon(in.number, priority)) stop_peer(in, priority);
}

void SoftSwitch::stop_peer(Port& in, int priority) {
  if (in.pfc.stopped(priority)) return;
  in.pfc.stop(priority, now_);
  ++stopped_;
  ++in.queues[static_cast<size_t>(priority)].counters.pfc_tx_transitions;
  if (!busy(in)) start_next(in);
  reschedule(in);
}

// What leaves one queue raises the dynamic threshold of every ingress, so all that are stopped are looked at.
void SoftSwitch::resume_peers() {
  for (Port& port : ports_) {
    for (uint8_t left = port.pfc.stopped_mask(); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      const int priority = __builtin_ctz(left);
      if (!buffer_.below_xon(port.number, priority)) continue;
      port.pfc.resume(priority, now_);
      --stopped_;
      // An idle link sends it at once, from step(): start_next() must not be entered again from here.
      schedule(port, std::max(now_, port.busy_until));
    }
  }
}

void SoftSwitch::receive_pfc(Time now, uint16_t in, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
  ++ports_[in].counters.rx_pfc_frames;
  pause(now, in, enable, parameters_.pfc_priorities, quanta);
}

void SoftSwitch::receive_pause(Time now, uint16_t in, uint16_t quanta) {
  std::array<uint16_t, kPriorities> all;
  all.fill(quanta);
  ++ports_[in].counters.rx_pause_frames;
  pause(now, in, kAllPriorities, kAllPriorities, all);
}

void SoftSwitch::pause(Time now, uint16_t in, uint8_t enable, uint8_t obeyed, const std::array<uint16_t, kPriorities>& quanta) {
  advance(now);
  Port& port = ports_[in];
  for (int p = 0; p < kPriorities; ++p) {
    if ((enable >> p & 1) == 0) continue;
    ++port.queues[static_cast<size_t>(p)].counters.pfc_rx_packets;
    if ((obeyed >> p & 1) != 0) port.pause.apply(p, quanta[static_cast<size_t>(p)], now_, port.parameters.rate);
  }
  if (!busy(port)) start_next(port);
  reschedule(port);
}

void SoftSwitch::catch_up(Time now) {
  for (;;) {
    const Time event = events_.empty() ? kNever : events_.top_key();
    if (std::min(event, next_message_) > now) return;
    if (event <= next_message_) {
      now_ = std::max(now_, event);
      step(ports_[events_.top()]);
    } else {
      take_messages(now);
    }
  }
}

// A frame on a link wants its transmit(), whether or not anything waits behind it.
Time SoftSwitch::next_deadline() const {
  Time next = events_.empty() ? kNever : events_.top_key();
  for (const Port& port : ports_) {
    if (busy(port)) next = std::min(next, port.busy_until);
  }
  // What another shard lets go may resume a peer of ours, and it does not tell us.
  if (stopped_ != 0 && buffer_.others().occupied > 0) next = std::min(next, now_ + kLookAgain);
  return std::min(next, next_message_);
}

void SoftSwitch::step(Port& port) {
  port.pause.advance(now_);
  port.pfc.advance(now_);
  if (!busy(port)) start_next(port);
  reschedule(port);
}

void SoftSwitch::wake(uint16_t index, Time at) {
  Port& port = ports_[index];
  if (port.wakes != at) return;
  port.wakes = kNever;
  now_ = at;
  step(port);
}

void SoftSwitch::keep_distribution(uint16_t port, int priority) {
  ports_[port].queues[static_cast<size_t>(priority)].distribution = std::make_unique<Histogram>();
}

const Histogram& SoftSwitch::queue_distribution(uint16_t port, int priority) {
  Queue& queue = ports_[port].queues[static_cast<size_t>(priority)];
  note_length(queue, buffer_.egress_bytes(port, priority));
  return *queue.distribution;
}

int64_t SoftSwitch::take_queue_peak(uint16_t port, int priority) {
  Queue& queue = ports_[port].queues[static_cast<size_t>(priority)];
  return std::exchange(queue.peak, buffer_.egress_bytes(port, priority));
}

void SoftSwitch::reset_distributions() {
  for (Port& port : ports_) {
    for (Queue& queue : port.queues) {
      if (queue.distribution != nullptr) queue.distribution->reset();
      queue.since = now_;
    }
  }
}

void SoftSwitch::settle_counters() {
  for (Port& port : ports_) {
    for (int p = 0; p < kPriorities; ++p) {
      SwitchPriorityCounters& counters = port.queues[static_cast<size_t>(p)].counters;
      counters.pfc_rx_transitions = port.pause.ended(p);
      counters.pfc_rx_pause_duration = static_cast<uint64_t>(port.pause.paused_for(p, now_));
      counters.pfc_tx_pause_duration = static_cast<uint64_t>(port.pfc.stopped_for(p, now_));
    }
  }
}

}  // namespace weir
