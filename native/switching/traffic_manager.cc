#include "switching/traffic_manager.h"

#include <algorithm>

#include "switching/pauses.h"
#include "switching/routed_path.h"
#include "switching/shard_traffic.h"
#include "switching/vlans.h"
#include "switching/way.h"
#include "wire/ethernet.h"
#include "wire/offload.h"
#include "wire/segmentation.h"
#include "wire/tags.h"
#include "wire/telemetry.h"
#include "wire/udp.h"

namespace weir {
namespace {

void raise(uint64_t& watermark, int64_t value) {
  if (value > static_cast<int64_t>(watermark)) watermark = static_cast<uint64_t>(value);
}

}  // namespace

TrafficManager::TrafficManager(SwitchState& state, Vlans& vlans, RoutedPath& routed, Pauses& pauses, ShardTraffic& shards)
    : state_(state),
      vlans_(vlans),
      routed_(routed),
      pauses_(pauses),
      shards_(shards),
      random_(state.parameters.seed, state.parameters.component, state.link == nullptr ? 0 : 16 + state.link->self()) {}

void TrafficManager::emit(SwitchPort& in, uint16_t to, PacketId id) {
  SwitchPort& out = state_.ports[to];
  if (vlans_.heeded() && !vlans_.leave(in, out, id)) return;
  const Packet& packet = state_.pool[id];
  const uint32_t longest = packet.offload.largest_segment(packet.length);
  if (!out.egress.fits(longest, kEthernetHeader) && !out.egress.fits(longest, link_header_length(packet.meta)))
    return state_.drop(in.counters.drop_mtu_exceeded, id);
  if (packet.offload.pending() && !takes_offload(out, packet)) return finish_offload(in, to, id);
  admit(in, out, id);
}

// A partial checksum rides through any queue. A super-frame would distort a shaped one, and be sampled, or make an average, as
// one frame.
bool TrafficManager::takes_offload(const SwitchPort& out, const Packet& packet) const {
  const SwitchParameters::Port& port = out.egress.parameters();
  if (!port.offloads || packet.offload.gso == Gso::none) return port.offloads;
  const uint8_t averaged = out.egress.averages() ? state_.parameters.ecn_priorities : uint8_t{0};
  return port.rate == 0 && port.priority_rates[packet.priority] == 0 &&
         ((averaged | out.domain.points) >> packet.priority & 1) == 0;
}

// Whether a super-frame that has to wait may do so as one: where none of its frames would be looked at to be marked, or stop a
// peer.
bool TrafficManager::may_queue_whole(const SwitchPort& in, const SwitchPort& out, const Packet& packet) const {
  const int priority = packet.priority;
  const uint32_t bytes = carried_bytes(packet);
  if ((state_.parameters.ecn_priorities >> priority & 1) != 0) {
    if (out.remote || state_.parameters.mark_on_dequeue) return false;
    const auto length = static_cast<uint64_t>(state_.buffer.egress_bytes(out.number(), priority));
    if (length + bytes > red_of(state_.parameters, out.number()).kmin) return false;
  }
  if ((state_.parameters.pfc_priorities >> priority & 1) != 0)
    return state_.buffer.passes(in.number(), out.number(), priority, bytes);
  const uint32_t last = packet.length - (carried_frames(packet) - 1) * packet.offload.segment_size;
  return out.remote || state_.buffer.takes(out.number(), priority, bytes, last);
}

// Does in software what the egress interface cannot, and forwards what comes of it.
void TrafficManager::finish_offload(SwitchPort& in, uint16_t to, PacketId id) {
  SwitchPortCounters& counters = in.counters;
  Packet& frame = state_.pool[id];
  if (frame.offload.gso == Gso::none) {
    if (!complete_checksum(state_.pool.data(id), frame.length, frame.offload))
      return state_.drop(counters.drop_offload_refused, id);
    frame.offload = {};
    return emit(in, to, id);
  }
  // An MTU may be larger than what the memory was made for.
  if (frame.offload.largest_segment(frame.length) > state_.pool.room()) return state_.drop(counters.drop_mtu_exceeded, id);
  const uint32_t count = carried_frames(frame);
  state_.held -= count;
  ++counters.gso_segmented;
  counters.gso_segments += count;
  for (uint32_t i = 0; i < count; ++i) {
    const PacketId segment = state_.pool.allocate();
    if (segment == kNoPacket) {
      ++counters.drop_no_descriptor;
      continue;
    }
    ++state_.held;
    state_.pool[segment] = frame;
    state_.pool[segment].offload = {};
    state_.pool[segment].length = write_segment(state_.pool.data(id), frame.length, frame.offload, i, state_.pool.data(segment));
    emit(in, to, segment);
  }
  state_.pool.free(id);
}

// A frame is charged where it came in, and joins its queue; if another shard has the queue, that one decides.
void TrafficManager::admit(SwitchPort& in, SwitchPort& out, PacketId id) {
  const Packet& packet = state_.pool[id];
  const int priority = packet.priority;
  const uint32_t bytes = carried_bytes(packet);
  if (in.egress.closed(priority)) return drop_in_pfc_storm(in, id);
  if (!out.remote && state_.stopped == 0 && out.egress.open(state_.now) &&
      state_.buffer.passes(in.number(), out.number(), priority, bytes)) {
    return bypass_queue(in, out, id);
  }
  const bool super_frame = packet.offload.gso != Gso::none;
  if (super_frame && !may_queue_whole(in, out, packet)) return finish_offload(in, out.number(), id);
  const Admission admission = charge(in, out, packet);
  if (admission == Admission::admitted) return join_queue(in, out, id);
  if (super_frame) return finish_offload(in, out.number(), id);  // there may be room for some of it
  refuse(in, out, id, admission);
}

void TrafficManager::refuse(SwitchPort& in, SwitchPort& out, PacketId id, Admission why) {
  const int priority = state_.pool[id].priority;
  if (may_trim(state_.pool[id], why)) return trim_or_drop(in, out, id, why);
  if (why == Admission::headroom_full) {
    pauses_.stop_for_want_of_headroom(in, priority);
  } else {
    out.count_discarded(priority, why);
  }
  in.count_refused(priority, why, 1);
  state_.discard(id);
}

// The rest of admit(), for a frame that has been charged.
void TrafficManager::join_queue(SwitchPort& in, SwitchPort& out, PacketId id) {
  const Packet& packet = state_.pool[id];
  const int priority = packet.priority;
  SwitchPriorityCounters& group = in.egress.queue(priority).counters;
  raise(group.pg_watermark_bytes, state_.buffer.ingress_bytes(in.number(), priority));
  raise(group.pg_xoff_room_watermark_bytes, state_.buffer.headroom_bytes(in.number(), priority));
  if (out.remote) {
    shards_.lend_frame(out, id);
  } else {
    in.count_admitted(priority, carried_frames(packet));
    enqueue(out, id);
  }
  pauses_.check_xoff(in, priority);
}

Admission TrafficManager::charge(const SwitchPort& in, const SwitchPort& out, const Packet& packet) {
  const uint32_t bytes = carried_bytes(packet);
  if (out.remote) return state_.buffer.admit_ingress(in.number(), packet.priority, bytes);
  if (out.egress.closed(packet.priority)) return Admission::pfc_storm;
  if (beyond_limit(out, packet)) return Admission::queue_limit;
  return state_.buffer.admit(in.number(), out.number(), packet.priority, bytes);
}

Admission TrafficManager::charge_queue(const SwitchPort& out, const Packet& packet) {
  if (out.egress.closed(packet.priority)) return Admission::pfc_storm;
  if (beyond_limit(out, packet)) return Admission::queue_limit;
  return state_.buffer.admit_egress(out.number(), packet.priority, carried_bytes(packet));
}

void TrafficManager::trim(SwitchPort& out, PacketId id) {
  Packet& packet = state_.pool[id];
  const TrimmingParameters& trimming = state_.parameters.trimming;
  ++out.egress.queue(packet.priority).counters.trim_packets;
  if (packet.offload.pending()) complete_checksum(state_.pool.data(id), packet.length, packet.offload);
  packet.offload = {};
  weir::trim(state_.pool.data(id), packet, trimming.size, trimming.dscp);
  packet.priority = trimming.queue;
}

void TrafficManager::trim_or_drop(SwitchPort& in, SwitchPort& out, PacketId id, Admission why) {
  const int priority = state_.pool[id].priority;
  trim(out, id);
  if (charge(in, out, state_.pool[id]) == Admission::admitted) return join_queue(in, out, id);
  ++out.egress.queue(priority).counters.dropped_trim_packets;
  out.count_discarded(priority, why);
  in.count_refused(priority, why, 1);
  state_.discard(id);
}

// SONiC's drop action is of both directions: the peer that pauses without end is not heard at that priority either.
void TrafficManager::drop_in_pfc_storm(SwitchPort& in, PacketId id) {
  const Packet& packet = state_.pool[id];
  in.egress.queue(packet.priority).counters.pfc_wd_rx_drop += carried_frames(packet);
  state_.drop(in.counters.drop_pfc_watchdog, id);
}

// Does the same as queueing and picking where a frame meets a free link and nobody is stopped before or after.
void TrafficManager::bypass_queue(SwitchPort& in, SwitchPort& out, PacketId id) {
  Packet& packet = state_.pool[id];
  const int priority = packet.priority;
  // The frames of a super-frame pass one after the other.
  const uint32_t bytes = packet.offload.largest_segment(packet.length);
  in.count_admitted(priority, carried_frames(packet));
  raise(in.egress.queue(priority).counters.pg_watermark_bytes, state_.buffer.ingress_bytes(in.number(), priority) + bytes);
  state_.buffer.passed(bytes);
  if (out.egress.averages()) mark(out, packet, 0);
  PacketId cnm = kNoPacket;
  if (out.domain.has_point(priority)) {
    SwitchPriorityCounters& counters = out.egress.queue(priority).counters;
    cnm = state_.domain.sample(out.number(), id, packet.length, counters);
    if ((out.domain.untagged >> priority & 1) != 0) state_.domain.remove_tag(id, counters);
  }
  depart(out, id);
  state_.schedule(out, out.egress.next_wake());
  if (cnm != kNoPacket) send_cnm(out, cnm, in.number());
}

void TrafficManager::enqueue(SwitchPort& out, PacketId id) {
  Packet& packet = state_.pool[id];
  const int priority = packet.priority;
  const uint16_t from = packet.ingress_port;
  EgressPort::Queue& queue = out.egress.queue(priority);
  int64_t length = state_.buffer.egress_bytes(out.number(), priority);
  const int64_t before = length - carried_bytes(packet);
  if (!state_.parameters.mark_on_dequeue) mark(out, packet, before);
  PacketId cnm = kNoPacket;
  if (out.domain.has_point(priority)) cnm = state_.domain.sample(out.number(), id, length, queue.counters);
  queue.note_length(state_.now, before, state_.keeps_all);
  out.egress.push(state_.pool, id, priority);
  if (!out.egress.busy(state_.now)) {
    out.egress.pause.advance(state_.now);  // one may have run out with nothing waiting
    serve(out);
    state_.reschedule(out);
    length = state_.buffer.egress_bytes(out.number(), priority);
  } else if (out.egress.wakes_late()) {
    state_.reschedule(out);
  }
  queue.peak = std::max(queue.peak, length);
  raise(queue.counters.queue_watermark_bytes, length);
  if (cnm != kNoPacket) send_cnm(out, cnm, from);
}

// A CNM goes where the sampled frame came from, once that has been dealt with.
void TrafficManager::send_cnm(SwitchPort& out, PacketId cnm, uint16_t from) {
  ++state_.held;
  state_.parameters.cnms_by_ip ? routed_.notify(out, cnm) : forward(out, from, cnm);
}

// Puts the next frame on a free link; on a link without a rate, all that may go.
void TrafficManager::serve(SwitchPort& out) {
  PacketPool& pool = state_.pool;
  while (!out.egress.held_back()) {
    PacketId id = out.egress.pfc.owed() != 0 ? pauses_.make_frame(out) : kNoPacket;
    if (id == kNoPacket) {
      const int priority = out.egress.pick(state_.now, pool);
      if (priority < 0) return;
      id = dequeue(out, priority);
      out.egress.charge(state_.now, priority, pool[id].length);
    }
    const uint32_t length = pool[id].length;
    depart(out, id);
    if (out.egress.busy(state_.now)) return;
    out.egress.add_unsent(length);
  }
}

// A frame that leaves here has this hop written into it if it has room for that. Acknowledgements have the hops of others.
void TrafficManager::write_telemetry_hop(SwitchPort& out, PacketId id) {
  const Packet& packet = state_.pool[id];
  const PacketMeta& meta = packet.meta;
  if (meta.kind != FrameKind::roce) return;
  uint8_t* const bth = state_.pool.data(id) + meta.bth_offset;
  // A frame that was cut from a super-frame has the opcode of its first packet in `meta`.
  const uint8_t opcode = bth[0];
  if (!has_telemetry(opcode) || plain_opcode(opcode) == kOpcodeRcAcknowledge) return;
  const uint32_t at = meta.bth_offset + telemetry_offset(opcode);
  if (at + kTelemetryHeader > std::min(packet.length, state_.pool.room(id))) return void(++out.counters.int_malformed);
  // A kernel that cuts super-frames gives them a UDP checksum. 0: there is none, as RoCEv2 senders have it.
  if (!packet.offload.pending()) store_be16(bth - kUdpHeader + kUdpChecksum, 0);
  const HopWritten written = write_hop(state_.pool.data(id) + at,
                                       {.time = static_cast<uint32_t>(state_.now),
                                        .sent = out.egress.sent(),
                                        .queue = static_cast<uint32_t>(state_.buffer.egress_bytes(out.number(), packet.priority)),
                                        .rate = out.egress.parameters().rate});
  ++(written == HopWritten::written      ? out.counters.int_written
     : written == HopWritten::overflowed ? out.counters.int_overflowed
                                         : out.counters.int_malformed);
}

PacketId TrafficManager::dequeue(SwitchPort& out, int priority) {
  EgressPort::Queue& queue = out.egress.queue(priority);
  queue.note_length(state_.now, state_.buffer.egress_bytes(out.number(), priority), state_.keeps_all);
  const PacketId id = out.egress.pop(state_.pool, priority);
  Packet& packet = state_.pool[id];
  release(packet, out);
  if ((out.domain.untagged >> priority & 1) != 0) state_.domain.remove_tag(id, queue.counters);
  if (state_.parameters.mark_on_dequeue) mark(out, packet, state_.buffer.egress_bytes(out.number(), priority));
  pauses_.check_xon();
  return id;
}

void TrafficManager::release(const Packet& packet, const SwitchPort& out, Admission fate) {
  if (state_.link == nullptr || !state_.ports[packet.ingress_port].remote) {
    state_.buffer.release(packet.ingress_port, out.number(), packet.priority, carried_bytes(packet));
    if (fate != Admission::admitted)
      state_.ports[packet.ingress_port].count_refused(packet.priority, fate, carried_frames(packet));
  } else {
    state_.buffer.release_egress(out.number(), packet.priority, carried_bytes(packet));
    shards_.report_fate(packet, fate);
  }
}

void TrafficManager::serve_and_reschedule(SwitchPort& port) {
  if (!port.egress.busy(state_.now)) serve(port);
  state_.reschedule(port);
}

void Way::emit(SwitchPort& in, uint16_t to, PacketId id) const { traffic_.emit(in, to, id); }

}  // namespace weir
