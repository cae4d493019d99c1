#include "switching/soft_switch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/segmentation.h"

namespace weir {
namespace {

constexpr uint64_t kReservedBlock = 0x0180c2000000;  // 01:80:C2:00:00:00..0F (IEEE 802.1Q table 8-1): never forwarded
constexpr uint8_t kAllPriorities = 0xff;

void raise(uint64_t& watermark, int64_t value) {
  if (value > static_cast<int64_t>(watermark)) watermark = static_cast<uint64_t>(value);
}

}  // namespace

SoftSwitch::SoftSwitch(SwitchParameters parameters, PacketPool& pool, Driver* driver)
    : parameters_(std::move(parameters)),
      pool_(pool),
      buffer_(parameters_.buffer, static_cast<int>(parameters_.ports.size()), parameters_.pfc_priorities),
      forwarding_(parameters_.fdb_capacity, parameters_.learning, parameters_.ageing,
                  Random(parameters_.hash_seed, parameters_.component, 1).next()),
      random_(parameters_.seed, parameters_.component, 0),
      ports_(parameters_.ports.size()),
      driver_(driver),
      events_(static_cast<uint32_t>(parameters_.ports.size())) {
  apply_parameters();
  for (uint16_t port = 0; driver_ == nullptr && port < ports_.size(); ++port) {
    for (int priority = 0; priority < kPriorities; ++priority) keep_distribution(port, priority);
  }
}

void SoftSwitch::apply_parameters() {
  for (size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    port.parameters = parameters_.ports[i];
    port.link = Serializer(port.parameters.rate);
    port.scheduler.configure(parameters_.scheduler);
    port.pfc.configure(port.parameters.rate);
    port.mtu = port.parameters.mtu;
    port.limited = port.bounded = 0;
    for (size_t p = 0; p < kPriorities; ++p) {
      port.queues[p].marker = RedMarker(parameters_.red);
      if (port.parameters.priority_rates[p] > 0) port.limited = static_cast<uint8_t>(port.limited | 1u << p);
      if (port.parameters.queue_limits[p] > 0) port.bounded = static_cast<uint8_t>(port.bounded | 1u << p);
    }
  }
}

void SoftSwitch::reconfigure(SwitchParameters parameters) {
  parameters_ = std::move(parameters);
  buffer_.reconfigure(parameters_.buffer, parameters_.pfc_priorities);
  forwarding_.reconfigure(parameters_.learning, parameters_.ageing);
  apply_parameters();
  for (uint16_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    // Who was stopped at a priority that is lossy now would never be resumed.
    for (uint8_t left = port.pfc.stopped_mask() & ~parameters_.pfc_priorities; left != 0;
         left = static_cast<uint8_t>(left & (left - 1))) {
      port.pfc.resume(__builtin_ctz(left));
      --stopped_;
    }
    schedule(i, std::max(now_, port.busy_until));
  }
}

void SoftSwitch::receive(Time now, uint16_t in, PacketId id) {
  advance(now);
  Port& port = ports_[in];
  Packet& packet = pool_[id];
  ++held_;
  ++port.counters.rx_packets;
  port.counters.rx_bytes += packet.length;
  packet.ingress_port = in;
  packet.priority = parameters_.priority_map.priority(packet.meta);
  if ((packet.meta.destination_mac & ~0xfull) == kReservedBlock) return drop(port.counters.drop_reserved_address, id);
  if (forwarding_.learning() && !forwarding_.learn(now_, packet.meta, in)) ++port.counters.fdb_full;
  const int out = forwarding_.lookup(now_, packet.meta);
  if (out >= 0) return forward(in, static_cast<uint16_t>(out), id);
  if (!forwarding_.learning()) return drop(port.counters.drop_no_route, id);
  flood(in, id);
}

void SoftSwitch::flood(uint16_t in, PacketId id) {
  int last = -1;
  for (uint16_t out = 0; out < ports_.size(); ++out) {
    if (out == in) continue;
    if (last >= 0) {
      const PacketId copy = pool_.copy(id);
      ++ports_[in].counters.flood_copies;
      if (copy == kNoPacket) {
        ++ports_[in].counters.drop_no_descriptor;
      } else {
        ++held_;
        forward(in, static_cast<uint16_t>(last), copy);
      }
    }
    last = out;
  }
  if (last < 0) return drop(ports_[in].counters.drop_no_route, id);
  forward(in, static_cast<uint16_t>(last), id);
}

void SoftSwitch::forward(uint16_t in, uint16_t out, PacketId id) {
  Port& from = ports_[in];
  const Port& to = ports_[out];
  const Packet& packet = pool_[id];
  const int priority = packet.priority;
  if (out == in) return drop(from.counters.drop_same_port, id);
  if (packet.offload.largest_segment(packet.length) > to.mtu + (packet.meta.tagged ? 18u : 14u))
    return drop(from.counters.drop_mtu_exceeded, id);
  if (packet.offload.pending() && !takes_offload(out, packet)) return finish_offload(in, out, id);
  if ((to.bounded >> priority & 1) != 0) {
    const int64_t limit = to.parameters.queue_limits[static_cast<size_t>(priority)];
    if (buffer_.egress_bytes(out, priority) + packet.length > limit) return drop(from.counters.drop_queue_limit, id);
  }
  SwitchPriorityCounters& group = from.queues[static_cast<size_t>(priority)].counters;
  const Admission admission = buffer_.admit(in, out, priority, packet.length);
  if (admission != Admission::admitted) {
    ++group.pg_dropped_packets;
    switch (admission) {
      case Admission::headroom_full:
        stop_peer(in, priority);  // if not yet stopped: a headroom smaller than the frame
        return drop(from.counters.drop_headroom_full, id);
      case Admission::lossy_threshold:
        return drop(from.counters.drop_lossy_threshold, id);
      default:
        return drop(from.counters.drop_buffer_full, id);
    }
  }
  if (packet.offload.gso != Gso::none) ++from.counters.gso_passed;
  ++group.pg_packets;
  raise(group.pg_watermark_bytes, buffer_.ingress_bytes(in, priority));
  raise(group.pg_xoff_room_watermark_bytes, buffer_.headroom_bytes(in, priority));
  enqueue(out, id);
  check_xoff(in, priority);
}

// A partial checksum rides through any queue. A super-frame would distort a shaped one, be marked or stopped as one frame.
bool SoftSwitch::takes_offload(uint16_t out, const Packet& packet) const {
  const SwitchParameters::Port& port = ports_[out].parameters;
  if (!port.offloads || packet.offload.gso == Gso::none) return port.offloads;
  return port.rate == 0 && port.priority_rates[packet.priority] == 0 &&
         ((parameters_.ecn_priorities | parameters_.pfc_priorities) >> packet.priority & 1) == 0;
}

// Does in software what the egress interface cannot, and forwards what comes of it.
void SoftSwitch::finish_offload(uint16_t in, uint16_t out, PacketId id) {
  SwitchPortCounters& counters = ports_[in].counters;
  Packet& frame = pool_[id];
  if (frame.offload.gso == Gso::none) {
    if (!complete_checksum(pool_.data(id), frame.length, frame.offload)) return drop(counters.drop_offload_refused, id);
    frame.offload = {};
    return forward(in, out, id);
  }
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

void SoftSwitch::enqueue(uint16_t out, PacketId id) {
  Port& port = ports_[out];
  Packet& packet = pool_[id];
  const size_t priority = packet.priority;
  Queue& queue = port.queues[priority];
  const int64_t before = buffer_.egress_bytes(out, packet.priority) - packet.length;
  if (!parameters_.mark_on_dequeue) mark(port, packet, before);
  note_length(queue, before);
  queue.packets.push(pool_, id);
  port.backlogged = static_cast<uint8_t>(port.backlogged | 1u << priority);
  const bool idle = !busy(port);
  if (idle) {
    port.pause.advance(now_);  // one may have run out with nothing waiting
    start_next(out);
  }
  if (idle || (driver_ != nullptr && port.wakes > port.busy_until)) reschedule(out);
  const int64_t length = buffer_.egress_bytes(out, static_cast<int>(priority));
  queue.peak = std::max(queue.peak, length);
  raise(queue.counters.queue_watermark_bytes, length);
}

PacketId SoftSwitch::dequeue(uint16_t out, int priority) {
  Port& port = ports_[out];
  Queue& queue = port.queues[static_cast<size_t>(priority)];
  note_length(queue, buffer_.egress_bytes(out, priority));
  const PacketId id = queue.packets.pop(pool_);
  if (!queue.packets.empty()) __builtin_prefetch(&pool_[queue.packets.front()], 1);
  Packet& packet = pool_[id];
  if (queue.packets.empty()) port.backlogged = static_cast<uint8_t>(port.backlogged & ~(1u << priority));
  buffer_.release(packet.ingress_port, out, priority, packet.length);
  if (parameters_.mark_on_dequeue) mark(port, packet, buffer_.egress_bytes(out, priority));
  check_xon();
  return id;
}

void SoftSwitch::mark(Port& port, Packet& packet, int64_t queue_bytes) {
  if ((parameters_.ecn_priorities >> packet.priority & 1) == 0) return;
  Queue& queue = port.queues[packet.priority];
  const bool congested = queue.marker.mark(static_cast<uint64_t>(queue_bytes), random_);
  if (!congested || packet.meta.ecn == 0 || packet.meta.ecn == 3) return;
  packet.meta.ecn = 3;
  packet.meta.ecn_changed = true;
  ++queue.counters.wred_ecn_marked_packets;
}

void SoftSwitch::drop(uint64_t& reason, PacketId id) {
  ++reason;
  --held_;
  pool_.free(id);
}

void SoftSwitch::check_xoff(uint16_t in, int priority) {
  if ((parameters_.pfc_priorities >> priority & 1) != 0 && buffer_.above_xoff(in, priority)) stop_peer(in, priority);
}

void SoftSwitch::stop_peer(uint16_t in, int priority) {
  Port& port = ports_[in];
  if (port.pfc.stopped(priority)) return;
  port.pfc.stop(priority);
  ++stopped_;
  ++port.queues[static_cast<size_t>(priority)].counters.pfc_tx_transitions;
  if (!busy(port)) start_next(in);
  reschedule(in);
}

// What leaves one queue raises the dynamic threshold of every ingress, so all that are stopped are looked at.
void SoftSwitch::check_xon() {
  if (stopped_ == 0) return;
  for (uint16_t in = 0; in < ports_.size(); ++in) {
    Port& port = ports_[in];
    for (uint8_t left = port.pfc.stopped_mask(); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      const int priority = __builtin_ctz(left);
      if (!buffer_.below_xon(in, priority)) continue;
      port.pfc.resume(priority);
      --stopped_;
      // An idle link sends it at once, from step(): start_next() must not be entered again from here.
      schedule(in, std::max(now_, port.busy_until));
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
  if (!busy(port)) start_next(in);
  reschedule(in);
}

void SoftSwitch::advance(Time now) {
  while (!events_.empty() && events_.top_key() <= now) {
    now_ = std::max(now_, events_.top_key());
    step(static_cast<uint16_t>(events_.top()));
  }
  now_ = std::max(now_, now);
}

void SoftSwitch::step(uint16_t index) {
  Port& port = ports_[index];
  port.pause.advance(now_);
  port.pfc.advance(now_);
  if (!busy(port)) start_next(index);
  reschedule(index);
}

void SoftSwitch::wake(uint16_t index, Time at) {
  Port& port = ports_[index];
  if (port.wakes != at) return;
  port.wakes = kNever;
  now_ = at;
  step(index);
}

// Puts the next frame on a free link; on a link without a rate, all that may go.
void SoftSwitch::start_next(uint16_t index) {
  Port& port = ports_[index];
  do {
    PacketId id = kNoPacket;
    if (port.pfc.owed() != 0) id = make_pfc(port);
    if (id == kNoPacket) {
      const int priority = pick(port);
      if (priority < 0) return;
      id = dequeue(index, priority);
      const uint32_t length = pool_[id].length;
      if ((port.limited >> priority & 1) != 0) {
        const Rate limit = port.parameters.priority_rates[static_cast<size_t>(priority)];
        port.limiters[static_cast<size_t>(priority)].sent(now_, wire_bytes(length), limit);
      }
      SwitchPriorityCounters& counters = port.queues[static_cast<size_t>(priority)].counters;
      ++counters.queue_packets;
      counters.queue_bytes += length;
      ++port.counters.tx_packets;
      port.counters.tx_bytes += length;
      --held_;
    }
    port.busy_until = port.link.finish(now_, wire_bytes(pool_[id].length));
    if (driver_ != nullptr) {
      driver_->depart(index, id, port.busy_until);
    } else {
      pool_[id].departs = port.busy_until;
      port.departing.push(pool_, id);
    }
  } while (!busy(port));
}

// The priority that sends next, or -1.
int SoftSwitch::pick(Port& port) {
  const uint8_t held_back = static_cast<uint8_t>(port.pause.paused_mask() | limited_mask(port));
  const uint8_t ready = static_cast<uint8_t>(port.backlogged & ~held_back);
  if (ready == 0) return -1;
  if ((ready & (ready - 1)) == 0) return __builtin_ctz(ready);
  std::array<uint32_t, kPriorities> heads{};
  for (uint8_t left = port.backlogged; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const size_t p = static_cast<size_t>(__builtin_ctz(left));
    heads[p] = wire_bytes(pool_[port.queues[p].packets.front()].length);
  }
  return port.scheduler.pick(port.backlogged, held_back, heads);
}

// Queues whose rate limit does not let them send yet.
uint8_t SoftSwitch::limited_mask(const Port& port) const {
  uint8_t mask = 0;
  for (uint8_t left = port.limited; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const int p = __builtin_ctz(left);
    if (port.limiters[static_cast<size_t>(p)].release() > now_) mask = static_cast<uint8_t>(mask | 1u << p);
  }
  return mask;
}

Time SoftSwitch::next_release(const Port& port) const {
  Time next = kNever;
  for (uint8_t left = port.backlogged & limited_mask(port); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    next = std::min(next, port.limiters[static_cast<size_t>(__builtin_ctz(left))].release());
  }
  return next;
}

void SoftSwitch::reschedule(uint16_t index) {
  Port& port = ports_[index];
  Time next = port.pfc.next_deadline();
  if (busy(port)) {
    // A driver has the frame already; it need not come for nothing.
    if (driver_ == nullptr || port.backlogged != 0 || port.pfc.owed() != 0) next = std::min(next, port.busy_until);
  } else {
    next = std::min({next, port.pause.next_resume(port.backlogged), next_release(port)});
    if (port.pfc.owed() != 0) next = now_ + kMicrosecond;  // only for want of a descriptor: try again
  }
  schedule(index, next);
}

void SoftSwitch::schedule(uint16_t index, Time at) {
  if (driver_ != nullptr) {
    Port& port = ports_[index];
    if (port.wakes == at) return;
    port.wakes = at;
    if (at != kNever) driver_->wake(index, at);
  } else if (at == kNever) {
    events_.remove(index);
  } else {
    events_.set(index, at);
  }
}

PacketId SoftSwitch::make_pfc(Port& port) {
  const PacketId id = pool_.allocate();
  if (id == kNoPacket) return id;  // stays owed, tried again at the next event of the port
  Packet& packet = pool_[id];
  packet = Packet{};
  packet.meta.kind = FrameKind::pfc;
  packet.meta.source_mac = port.parameters.mac;
  packet.length = kMinimumFrame;
  packet.pfc_enable = port.pfc.take(now_, packet.pfc_xoff);
  ++port.counters.tx_pfc_frames;
  for (uint8_t left = packet.pfc_enable; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    ++port.queues[static_cast<size_t>(__builtin_ctz(left))].counters.pfc_tx_packets;
  }
  return id;
}

void SoftSwitch::note_length(Queue& queue, int64_t bytes_before) {
  if (queue.distribution == nullptr || now_ <= queue.since) return;
  queue.distribution->record(static_cast<uint64_t>(bytes_before), static_cast<uint64_t>(now_ - queue.since));
  queue.since = now_;
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
      port.queues[static_cast<size_t>(p)].counters.pfc_rx_pause_duration = static_cast<uint64_t>(port.pause.paused_for(p, now_));
    }
  }
}

}  // namespace weir
