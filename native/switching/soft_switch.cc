#include "switching/soft_switch.h"

#include <cassert>
#include <memory>

#include "base/native_error.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/segmentation.h"
#include "wire/tags.h"
#include "wire/telemetry.h"
#include "wire/udp.h"

namespace weir {
namespace {

SwitchParameters checked(SwitchParameters parameters) {
  check(parameters);
  return parameters;
}

void raise(uint64_t& watermark, int64_t value) {
  if (value > static_cast<int64_t>(watermark)) watermark = static_cast<uint64_t>(value);
}

}  // namespace

SoftSwitch::SoftSwitch(SwitchParameters parameters, PacketPool& pool, Driver& driver, uint32_t queued, ShardLink* link)
    : parameters_(checked(std::move(parameters))),
      pool_(pool),
      buffer_(parameters_.buffer, static_cast<int>(parameters_.ports.size()), parameters_.pfc_priorities, queued),
      forwarding_(parameters_.fdb_capacity, parameters_.learning, parameters_.ageing, parameters_.ports.size()),
      vlans_(parameters_.ports.size()),
      port_vlans_(parameters_.ports.size()),
      balancer_(parameters_.hash_seed, parameters_.component),
      domain_(parameters_, pool),
      random_(parameters_.seed, parameters_.component, link == nullptr ? 0 : 16 + link->self()),
      ports_(parameters_.ports.size()),
      driver_(driver),
      link_(link),
      icmp_used_(link == nullptr ? own_icmp_used_ : link->icmp_used()),
      messages_(static_cast<uint32_t>(parameters_.ports.size())) {
  buffer_.reconfigure(parameters_.buffer, parameters_.pfc_priorities, port_buffers(parameters_),
                      fixed_queue(parameters_.trimming));
  apply_parameters();
}

void SoftSwitch::apply_parameters() {
  configure_router();
  configure_vlans();
  balancer_.configure(parameters_.load_balancing, parameters_.flowlet_gap);
  for (size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    const SwitchParameters::Port& parameters = parameters_.ports[i];
    port.egress.configure(now_, parameters_, i);
    port.remote = link_ != nullptr && link_->owner(port.number()) != link_->self();
    port.storms.configure(parameters.storm_rates);
    configure_watchdog(port);
    forwarding_.limit(port.number(), parameters.max_learned_addresses);
    domain_.configure(port.domain, i);
  }
}

void SoftSwitch::reconfigure(SwitchParameters parameters) {
  require(parameters.ports.size() == ports_.size(), "switch", "the number of ports cannot change");
  adopt(checked(std::move(parameters)));
}

void SoftSwitch::adopt(SwitchParameters parameters) {
  parameters_ = std::move(parameters);
  buffer_.reconfigure(parameters_.buffer, parameters_.pfc_priorities, port_buffers(parameters_),
                      fixed_queue(parameters_.trimming));
  forwarding_.reconfigure(parameters_.learning, parameters_.ageing);
  apply_parameters();
  for (Port& port : ports_) {
    // A peer that was stopped at a priority that is lossy now would never be resumed.
    for (uint8_t left = port.egress.pfc.stopped_mask() & ~parameters_.pfc_priorities; left != 0;
         left = static_cast<uint8_t>(left & (left - 1))) {
      resume(port, __builtin_ctz(left));
    }
    schedule(port, port.egress.free_at(now_));
  }
}

void SoftSwitch::receive(Time now, uint16_t number, PacketId id) {
  advance(now);
  Port& in = ports_[number];
  assert(!in.remote);
  Packet& packet = pool_[id];
  const uint32_t frames = carried_frames(packet);
  held_ += frames;
  in.counters.rx_packets += frames;
  in.counters.rx_bytes += carried_bytes(packet);
  packet.ingress_port = number;
  packet.priority = parameters_.priority_map.priority(packet.meta);
  if ((in.domain.defended >> packet.priority & 1) != 0 || packet.meta.kind == FrameKind::cnm) {
    const bool admitted = domain_.admits(in.domain, number, id, in.egress.queue(packet.priority).counters);
    if (!admitted) return drop(in.counters.drop_cnm_from_outside, id);
  }
  if (is_group(packet.meta.destination_mac) && is_link_local_group(packet.meta.destination_mac))
    return drop(in.counters.drop_reserved_address, id);
  if (vlans_.heeded() && !enter_vlan(in, id)) return;
  if (router_ != nullptr && route(in, id)) return;
  if (forwarding_.learning()) learn(in, packet.meta);
  const int out = forwarding_.lookup(now_, packet.meta, [&](std::span<const uint16_t> ports) {
    return ports[balancer_.choose(now_, packet.meta.flow_hash, ports.size(),
                                  [&](size_t way) { return load_of(ports[way], packet.priority); })];
  });
  if (out >= 0) return forward(in, static_cast<uint16_t>(out), id);
  const bool floods = forwarding_.learning() || (in.egress.parameters().floods && is_group(packet.meta.destination_mac));
  if (!floods) return drop(in.counters.drop_no_route, id);
  flood(in, id);
}

// Returns the counter of a frame that would be flooded if it is beyond what its port may.
uint64_t* SoftSwitch::storm(Port& in, const Packet& packet) {
  const Storm kind = storm_of(packet.meta.destination_mac);
  if (!in.storms.exceeded(now_, kind, carried_wire_bytes(packet.length, packet.offload))) return nullptr;
  SwitchPortCounters& counters = in.counters;
  return kind == Storm::broadcast   ? &counters.drop_storm_broadcast
         : kind == Storm::multicast ? &counters.drop_storm_multicast
                                    : &counters.drop_storm_unknown_unicast;
}

void SoftSwitch::flood(Port& in, PacketId id) {
  if (uint64_t* const reason = storm(in, pool_[id]); reason != nullptr) return drop(*reason, id);
  int last = -1;
  for (uint16_t out = 0; out < ports_.size(); ++out) {
    if (routes_only(out) || !in_vlan(out, pool_[id].meta.vlan())) continue;
    if (out == in.number() || !(forwarding_.learning() || ports_[out].egress.parameters().floods)) continue;
    if (last >= 0) {
      const PacketId copy = pool_.copy(id);
      const uint32_t frames = carried_frames(pool_[id]);
      in.counters.flood_copies += frames;
      if (copy == kNoPacket) {
        in.counters.drop_no_descriptor += frames;
      } else {
        held_ += frames;
        forward(in, static_cast<uint16_t>(last), copy);
      }
    }
    last = out;
  }
  if (last < 0) return drop(in.counters.drop_no_route, id);
  forward(in, static_cast<uint16_t>(last), id);
}

void SoftSwitch::emit(Port& in, uint16_t to, PacketId id) {
  Port& out = ports_[to];
  if (vlans_.heeded() && !leave_in_vlan(in, out, id)) return;
  const Packet& packet = pool_[id];
  const uint32_t longest = packet.offload.largest_segment(packet.length);
  if (!out.egress.fits(longest, kEthernetHeader) && !out.egress.fits(longest, link_header_length(packet.meta)))
    return drop(in.counters.drop_mtu_exceeded, id);
  if (packet.offload.pending() && !takes_offload(out, packet)) return finish_offload(in, to, id);
  admit(in, out, id);
}

// A partial checksum rides through any queue. A super-frame would distort a shaped one, and be sampled, or make an average, as
// one frame.
bool SoftSwitch::takes_offload(const Port& out, const Packet& packet) const {
  const SwitchParameters::Port& port = out.egress.parameters();
  if (!port.offloads || packet.offload.gso == Gso::none) return port.offloads;
  const uint8_t averaged = out.egress.averages() ? parameters_.ecn_priorities : uint8_t{0};
  return port.rate == 0 && port.priority_rates[packet.priority] == 0 &&
         ((averaged | out.domain.points) >> packet.priority & 1) == 0;
}

// Whether a super-frame that has to wait may do so as one: where none of its frames would be looked at to be marked, or stop a
// peer.
bool SoftSwitch::may_queue_whole(const Port& in, const Port& out, const Packet& packet) const {
  const int priority = packet.priority;
  const uint32_t bytes = carried_bytes(packet);
  if ((parameters_.ecn_priorities >> priority & 1) != 0) {
    if (out.remote || parameters_.mark_on_dequeue) return false;
    const auto length = static_cast<uint64_t>(buffer_.egress_bytes(out.number(), priority));
    if (length + bytes > red_of(parameters_, out.number()).kmin) return false;
  }
  if ((parameters_.pfc_priorities >> priority & 1) != 0) return buffer_.passes(in.number(), out.number(), priority, bytes);
  const uint32_t last = packet.length - (carried_frames(packet) - 1) * packet.offload.segment_size;
  return out.remote || buffer_.takes(out.number(), priority, bytes, last);
}

// Does in software what the egress interface cannot, and forwards what comes of it.
void SoftSwitch::finish_offload(Port& in, uint16_t to, PacketId id) {
  SwitchPortCounters& counters = in.counters;
  Packet& frame = pool_[id];
  if (frame.offload.gso == Gso::none) {
    if (!complete_checksum(pool_.data(id), frame.length, frame.offload)) return drop(counters.drop_offload_refused, id);
    frame.offload = {};
    return emit(in, to, id);
  }
  // An MTU may be larger than what the memory was made for.
  if (frame.offload.largest_segment(frame.length) > pool_.room()) return drop(counters.drop_mtu_exceeded, id);
  const uint32_t count = carried_frames(frame);
  held_ -= count;
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
    emit(in, to, segment);
  }
  pool_.free(id);
}

// A frame is charged where it came in, and joins its queue; if another shard has the queue, that one decides.
void SoftSwitch::admit(Port& in, Port& out, PacketId id) {
  const Packet& packet = pool_[id];
  const int priority = packet.priority;
  const uint32_t bytes = carried_bytes(packet);
  if (in.egress.closed(priority)) return drop_of_storm(in, id);
  if (!out.remote && stopped_ == 0 && out.egress.open(now_) && buffer_.passes(in.number(), out.number(), priority, bytes)) {
    return pass(in, out, id);
  }
  const bool super_frame = packet.offload.gso != Gso::none;
  if (super_frame && !may_queue_whole(in, out, packet)) return finish_offload(in, out.number(), id);
  const Admission admission = charge(in, out, packet);
  if (admission != Admission::admitted) {
    if (super_frame) return finish_offload(in, out.number(), id);  // there may be room for some of it
    if (trims(packet, admission)) return trim_or_drop(in, out, id, admission);
    if (admission == Admission::headroom_full) {
      stop_for_want_of_headroom(in, priority);
    } else {
      count_discarded(out, priority, admission);
    }
    count_refused(in, priority, admission, 1);
    return discard(id);
  }
  join(in, out, id);
}

// The rest of admit(), for a frame that has been charged.
void SoftSwitch::join(Port& in, Port& out, PacketId id) {
  const Packet& packet = pool_[id];
  const int priority = packet.priority;
  SwitchPriorityCounters& group = in.egress.queue(priority).counters;
  raise(group.pg_watermark_bytes, buffer_.ingress_bytes(in.number(), priority));
  raise(group.pg_xoff_room_watermark_bytes, buffer_.headroom_bytes(in.number(), priority));
  if (out.remote) {
    lend(out, id);
  } else {
    count_admitted(in, priority, carried_frames(packet));
    enqueue(out, id);
  }
  check_xoff(in, priority);
}

Admission SoftSwitch::charge(const Port& in, const Port& out, const Packet& packet) {
  const uint32_t bytes = carried_bytes(packet);
  if (out.remote) return buffer_.admit_ingress(in.number(), packet.priority, bytes);
  if (out.egress.closed(packet.priority)) return Admission::pfc_storm;
  if (beyond_limit(out, packet)) return Admission::queue_limit;
  return buffer_.admit(in.number(), out.number(), packet.priority, bytes);
}

// A frame that its queue has no room for becomes one of another queue.
void SoftSwitch::trim(Port& out, PacketId id) {
  Packet& packet = pool_[id];
  const TrimmingParameters& trimming = parameters_.trimming;
  ++out.egress.queue(packet.priority).counters.trim_packets;
  if (packet.offload.pending()) complete_checksum(pool_.data(id), packet.length, packet.offload);
  packet.offload = {};
  weir::trim(pool_.data(id), packet, trimming.size, trimming.dscp);
  packet.priority = trimming.queue;
}

void SoftSwitch::trim_or_drop(Port& in, Port& out, PacketId id, Admission why) {
  const int priority = pool_[id].priority;
  trim(out, id);
  if (charge(in, out, pool_[id]) == Admission::admitted) return join(in, out, id);
  ++out.egress.queue(priority).counters.dropped_trim_packets;
  count_discarded(out, priority, why);
  count_refused(in, priority, why, 1);
  discard(id);
}

// SONiC's drop action is of both directions: the peer that pauses without end is not heard at that priority either.
void SoftSwitch::drop_of_storm(Port& in, PacketId id) {
  const Packet& packet = pool_[id];
  in.egress.queue(packet.priority).counters.pfc_wd_rx_drop += carried_frames(packet);
  drop(in.counters.drop_pfc_watchdog, id);
}

void SoftSwitch::count_refused(Port& in, int priority, Admission why, uint32_t frames) {
  SwitchPortCounters& counters = in.counters;
  (why == Admission::queue_limit       ? counters.drop_queue_limit
   : why == Admission::pfc_storm       ? counters.drop_pfc_watchdog
   : why == Admission::headroom_full   ? counters.drop_headroom_full
   : why == Admission::lossy_threshold ? counters.drop_lossy_threshold
                                       : counters.drop_buffer_full) += frames;
  if (why != Admission::queue_limit && why != Admission::pfc_storm)
    in.egress.queue(priority).counters.pg_dropped_packets += frames;
}

// Does the same as queueing and picking where a frame meets a free link and nobody is stopped before or after.
void SoftSwitch::pass(Port& in, Port& out, PacketId id) {
  Packet& packet = pool_[id];
  const int priority = packet.priority;
  // One after the other.
  const uint32_t bytes = packet.offload.largest_segment(packet.length);
  count_admitted(in, priority, carried_frames(packet));
  raise(in.egress.queue(priority).counters.pg_watermark_bytes, buffer_.ingress_bytes(in.number(), priority) + bytes);
  buffer_.passed(bytes);
  if (out.egress.averages()) mark(out, packet, 0);
  PacketId cnm = kNoPacket;
  if (out.domain.has_point(priority)) {
    SwitchPriorityCounters& counters = out.egress.queue(priority).counters;
    cnm = domain_.sample(out.number(), id, packet.length, counters);
    if ((out.domain.untagged >> priority & 1) != 0) domain_.remove_tag(id, counters);
  }
  depart(out, id);
  schedule(out, out.egress.next_wake());
  if (cnm != kNoPacket) send_back(out, cnm, in.number());
}

void SoftSwitch::enqueue(Port& out, PacketId id) {
  Packet& packet = pool_[id];
  const int priority = packet.priority;
  const uint16_t from = packet.ingress_port;
  EgressPort::Queue& queue = out.egress.queue(priority);
  int64_t length = buffer_.egress_bytes(out.number(), priority);
  const int64_t before = length - carried_bytes(packet);
  if (!parameters_.mark_on_dequeue) mark(out, packet, before);
  PacketId cnm = kNoPacket;
  if (out.domain.has_point(priority)) cnm = domain_.sample(out.number(), id, length, queue.counters);
  queue.note_length(now_, before, keeps_all_);
  out.egress.push(pool_, id, priority);
  if (!out.egress.busy(now_)) {
    out.egress.pause.advance(now_);  // one may have run out with nothing waiting
    serve(out);
    reschedule(out);
    length = buffer_.egress_bytes(out.number(), priority);
  } else if (out.egress.wakes_late()) {
    reschedule(out);
  }
  queue.peak = std::max(queue.peak, length);
  raise(queue.counters.queue_watermark_bytes, length);
  if (cnm != kNoPacket) send_back(out, cnm, from);
}

// A CNM goes where the sampled frame came from, once that has been dealt with.
void SoftSwitch::send_back(Port& out, PacketId cnm, uint16_t to) {
  ++held_;
  parameters_.cnms_by_ip ? notify_by_route(out, cnm) : forward(out, to, cnm);
}

// Puts the next frame on a free link; on a link without a rate, all that may go.
void SoftSwitch::serve(Port& out) {
  while (!out.egress.held_back()) {
    PacketId id = out.egress.pfc.owed() != 0 ? make_pfc(out) : kNoPacket;
    if (id == kNoPacket) {
      const int priority = out.egress.pick(now_, pool_);
      if (priority < 0) return;
      id = dequeue(out, priority);
      out.egress.charge(now_, priority, pool_[id].length);
    }
    const uint32_t length = pool_[id].length;
    depart(out, id);
    if (out.egress.busy(now_)) return;
    out.egress.add_unsent(length);
  }
}

// A frame that leaves here is told of this hop if it asks for it. Acknowledgements have the hops of others.
void SoftSwitch::tell(Port& out, PacketId id) {
  const Packet& packet = pool_[id];
  const PacketMeta& meta = packet.meta;
  if (meta.kind != FrameKind::roce) return;
  uint8_t* const bth = pool_.data(id) + meta.bth_offset;
  // A frame that was cut from a super-frame has the opcode of its first packet in `meta`.
  const uint8_t opcode = bth[0];
  if (!has_telemetry(opcode) || plain_opcode(opcode) == kOpcodeRcAcknowledge) return;
  const uint32_t at = meta.bth_offset + telemetry_offset(opcode);
  if (at + kTelemetryHeader > std::min(packet.length, pool_.room(id))) return void(++out.counters.int_malformed);
  // A kernel that cuts super-frames gives them a UDP checksum. 0: there is none, as RoCEv2 senders have it.
  if (!packet.offload.pending()) store_be16(bth - kUdpHeader + kUdpChecksum, 0);
  const HopWritten written =
      write_hop(pool_.data(id) + at, {.time = static_cast<uint32_t>(now_),
                                      .sent = out.egress.sent(),
                                      .queue = static_cast<uint32_t>(buffer_.egress_bytes(out.number(), packet.priority)),
                                      .rate = out.egress.parameters().rate});
  ++(written == HopWritten::written      ? out.counters.int_written
     : written == HopWritten::overflowed ? out.counters.int_overflowed
                                         : out.counters.int_malformed);
}

PacketId SoftSwitch::dequeue(Port& out, int priority) {
  EgressPort::Queue& queue = out.egress.queue(priority);
  queue.note_length(now_, buffer_.egress_bytes(out.number(), priority), keeps_all_);
  const PacketId id = out.egress.pop(pool_, priority);
  Packet& packet = pool_[id];
  release(packet, out);
  if ((out.domain.untagged >> priority & 1) != 0) domain_.remove_tag(id, queue.counters);
  if (parameters_.mark_on_dequeue) mark(out, packet, buffer_.egress_bytes(out.number(), priority));
  check_xon();
  return id;
}

// The frame leaves its queue: it is sent, or dropped after all, and that is its fate.
void SoftSwitch::release(const Packet& packet, const Port& out, Admission fate) {
  if (link_ == nullptr || owns(packet.ingress_port)) {
    buffer_.release(packet.ingress_port, out.number(), packet.priority, carried_bytes(packet));
    if (fate != Admission::admitted) count_refused(ports_[packet.ingress_port], packet.priority, fate, carried_frames(packet));
  } else {
    buffer_.release_egress(out.number(), packet.priority, carried_bytes(packet));
    report(packet, fate);
  }
}

void SoftSwitch::count_own(Port& out, const Packet& packet) {
  if (!is_flow_control(packet.meta.kind)) return void(++out.counters.tx_slow_path);
  ++(packet.meta.kind == FrameKind::pfc ? out.counters.tx_pfc_frames : out.counters.tx_pause_frames);
  for (uint8_t left = packet.pfc_enable; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    ++out.egress.queue(__builtin_ctz(left)).counters.pfc_tx_packets;
  }
}

void SoftSwitch::drop(uint64_t& reason, PacketId id) {
  reason += carried_frames(pool_[id]);
  discard(id);
}

void SoftSwitch::discard(PacketId id) {
  held_ -= carried_frames(pool_[id]);
  pool_.free(id);
}

void SoftSwitch::go_on(Port& port) {
  if (!port.egress.busy(now_)) serve(port);
  reschedule(port);
}

void SoftSwitch::wake(uint32_t what, Time at) {
  if (what == messages_) {
    look_at_neighbours(at);
    if (link_ != nullptr) take_message(at);
    return;
  }
  Port& port = ports_[what];
  if (!port.egress.woken(at)) return;
  advance(at);
  port.egress.advance(now_);
  go_on(port);
  if (port.watchdog && now_ >= port.watchdog->next()) watch(port);
}

void SoftSwitch::keep_distribution(uint16_t port, int priority) {
  ports_[port].egress.queue(priority).distribution = std::make_unique<Histogram>();
}

const Histogram& SoftSwitch::queue_distribution(uint16_t port, int priority) {
  EgressPort::Queue& queue = ports_[port].egress.queue(priority);
  queue.note_length(now_, buffer_.egress_bytes(port, priority), keeps_all_);
  return *queue.distribution;
}

int64_t SoftSwitch::take_queue_peak(uint16_t port, int priority) {
  return std::exchange(ports_[port].egress.queue(priority).peak, buffer_.egress_bytes(port, priority));
}

void SoftSwitch::reset_distributions() {
  for (Port& port : ports_) {
    for (EgressPort::Queue& queue : port.egress.queues()) {
      if (queue.distribution != nullptr) queue.distribution->reset();
      queue.since = now_;
    }
  }
}

void SoftSwitch::settle_counters() {
  for (Port& port : ports_) {
    for (int p = 0; p < kPriorities; ++p) {
      SwitchPriorityCounters& counters = port.egress.queue(p).counters;
      counters.pfc_rx_transitions = port.egress.pause.ended(p);
      counters.pfc_rx_pause_duration = static_cast<uint64_t>(port.egress.pause.paused_for(p, now_));
      counters.pfc_tx_pause_duration = static_cast<uint64_t>(port.egress.pfc.stopped_for(p, now_));
    }
  }
}

}  // namespace weir
