// The egress side of the switch: queues, marks, links.
#include "switching/soft_switch.h"

namespace weir {

// Whether the frame would be queued only to be picked in the same instant, with nobody stopped before or after.
bool SoftSwitch::passes(const Port& in, const Port& out, const Packet& packet) const {
  if (busy(out) || stopped_ != 0) return false;
  if ((out.backlogged | out.pfc.owed() | out.pause.paused_mask() | out.limited | out.held_back) != 0) return false;
  return buffer_.passes(in.number, packet.priority, packet.length);
}

// What queueing and picking such a frame comes to.
void SoftSwitch::pass(Port& in, Port& out, PacketId id) {
  Packet& packet = pool_[id];
  SwitchPriorityCounters& group = in.queues[packet.priority].counters;
  if (packet.offload.gso != Gso::none) ++in.counters.gso_passed;
  ++group.pg_packets;
  raise(group.pg_watermark_bytes, buffer_.ingress_bytes(in.number, packet.priority) + packet.length);
  buffer_.passed(packet.length);
  if (parameters_.red.averaged) mark(out, packet, 0);
  PacketId cnm = kNoPacket;
  if ((out.congestion_points >> packet.priority & 1) != 0) {
    cnm = sample(out, id, packet.length);
    if ((out.untagged >> packet.priority & 1) != 0) remove_tag(out, id);
  }
  depart(out, id, packet);
  schedule(out, out.pfc.next_deadline());
  if (cnm != kNoPacket) send_back(out, cnm);
}

void SoftSwitch::enqueue(Port& out, PacketId id) {
  Packet& packet = pool_[id];
  const size_t priority = packet.priority;
  Queue& queue = out.queues[priority];
  const int64_t before = buffer_.egress_bytes(out.number, packet.priority) - packet.length;
  if (!parameters_.mark_on_dequeue) mark(out, packet, before);
  const bool sampled = (out.congestion_points >> priority & 1) != 0;
  const PacketId cnm = sampled ? sample(out, id, before + packet.length) : kNoPacket;
  note_length(queue, before);
  queue.packets.push(pool_, id);
  out.backlogged = static_cast<uint8_t>(out.backlogged | 1u << priority);
  const bool idle = !busy(out);
  if (idle) {
    out.pause.advance(now_);  // one may have run out with nothing waiting
    start_next(out);
  }
  if (idle || out.wakes > out.busy_until) reschedule(out);
  const int64_t length = buffer_.egress_bytes(out.number, static_cast<int>(priority));
  queue.peak = std::max(queue.peak, length);
  raise(queue.counters.queue_watermark_bytes, length);
  if (cnm != kNoPacket) send_back(out, cnm);
}

PacketId SoftSwitch::dequeue(Port& out, int priority) {
  Queue& queue = out.queues[static_cast<size_t>(priority)];
  note_length(queue, buffer_.egress_bytes(out.number, priority));
  const PacketId id = queue.packets.pop(pool_);
  if (queue.packets.empty()) {
    out.backlogged = static_cast<uint8_t>(out.backlogged & ~(1u << priority));
  } else {
    __builtin_prefetch(&pool_[queue.packets.front()], 1);
  }
  Packet& packet = pool_[id];
  release(packet, out);
  if ((out.untagged >> priority & 1) != 0) remove_tag(out, id);
  if (parameters_.mark_on_dequeue) mark(out, packet, buffer_.egress_bytes(out.number, priority));
  check_xon();
  return id;
}

void SoftSwitch::release(const Packet& packet, const Port& out) {
  if (link_ == nullptr || owns(packet.ingress_port)) {
    buffer_.release(packet.ingress_port, out.number, packet.priority, packet.length);
  } else {
    buffer_.release_egress(out.number, packet.priority, packet.length);
    report(packet, ShardMessage::Fate::sent);
  }
}

void SoftSwitch::mark(Port& out, Packet& packet, int64_t queue_bytes) {
  if ((parameters_.ecn_priorities >> packet.priority & 1) == 0) return;
  Queue& queue = out.queues[packet.priority];
  const bool congested = queue.marker.mark(static_cast<uint64_t>(queue_bytes), random_);
  if (!congested || packet.meta.ecn == 0 || packet.meta.ecn == 3) return;
  packet.meta.ecn = 3;
  packet.meta.ecn_changed = true;
  ++queue.counters.wred_ecn_marked_packets;
}

// Puts the next frame on a free link; on a link without a rate, all that may go.
void SoftSwitch::start_next(Port& port) {
  while (port.held_back == 0) {
    PacketId id = port.pfc.owed() != 0 ? make_pfc(port) : kNoPacket;
    if (id == kNoPacket) {
      const int priority = pick(port);
      if (priority < 0) return;
      id = dequeue(port, priority);
      if ((port.limited >> priority & 1) != 0) {
        const Rate limit = port.parameters.priority_rates[static_cast<size_t>(priority)];
        port.limiters[static_cast<size_t>(priority)].sent(now_, wire_bytes(pool_[id].length), limit);
      }
    }
    depart(port, id, pool_[id]);
    if (busy(port)) return;
    if (driver_ == nullptr && (port.unsent += pool_[id].length) > kMostUnsent) port.held_back = 1;
  }
}

// The host has taken what it had to.
bool SoftSwitch::go_on(Port& port) {
  if (!busy(port)) start_next(port);
  reschedule(port);
  return !port.departing.empty() && pool_[port.departing.front()].departs <= now_;
}

void SoftSwitch::count_pfc(Port& out, const Packet& packet) {
  if (packet.meta.kind != FrameKind::pfc) return;
  ++out.counters.tx_pfc_frames;
  for (uint8_t left = packet.pfc_enable; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    ++out.queues[static_cast<size_t>(__builtin_ctz(left))].counters.pfc_tx_packets;
  }
}

void SoftSwitch::depart(Port& out, PacketId id, Packet& packet) {
  out.busy_until = out.link.finish(now_, wire_bytes(packet.length));
  if (driver_ != nullptr) return driver_->depart(out.number, id, out.busy_until);
  packet.departs = out.busy_until;
  out.departing.push(pool_, id);
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

void SoftSwitch::reschedule(Port& port) {
  Time next = port.pfc.next_deadline();
  if (busy(port)) {
    // What is on the link has been handed over; nobody need come when nothing waits behind it.
    if ((port.backlogged | port.pfc.owed()) != 0) next = std::min(next, port.busy_until);
  } else {
    next = std::min({next, port.pause.next_resume(port.backlogged), next_release(port)});
    if (port.pfc.owed() != 0 && port.held_back == 0) next = now_ + kMicrosecond;  // only for want of a descriptor: try again
  }
  schedule(port, next);
}

void SoftSwitch::wake_at(Port& port, Time at) {
  port.wakes = at;
  if (driver_ != nullptr) {
    if (at != kNever) driver_->wake(port.number, at);
  } else if (at == kNever) {
    events_.remove(port.number);
  } else {
    events_.set(port.number, at);
  }
}

PacketId SoftSwitch::make_pfc(Port& port) {
  const PacketId id = pool_.allocate();
  if (id == kNoPacket) return id;  // stays owed, tried again at the next event of the port
  Packet& packet = pool_[id];
  packet.reset();
  packet.meta.kind = FrameKind::pfc;
  packet.meta.source_mac = port.parameters.mac;
  packet.ingress_port = kNoIngress;
  packet.length = kMinimumFrame;
  packet.pfc_enable = port.pfc.take(now_, packet.pfc_xoff);
  return id;
}

void SoftSwitch::record_length(Queue& queue, int64_t bytes_before) {
  if (queue.distribution == nullptr) queue.distribution = std::make_unique<Histogram>();
  queue.distribution->record(static_cast<uint64_t>(bytes_before), static_cast<uint64_t>(now_ - queue.since));
  queue.since = now_;
}

}  // namespace weir
