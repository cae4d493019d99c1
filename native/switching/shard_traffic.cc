#include "switching/shard_traffic.h"

#include "switching/pauses.h"
#include "switching/routed_path.h"
#include "switching/traffic_manager.h"
#include "wire/carried.h"

namespace weir {

void ShardTraffic::begin_turn() {
  if (state_.link == nullptr) return;
  state_.buffer.set_others(state_.link->others());
  pauses_.check_xon();
  state_.link->look();
  state_.ask_for_wake();
}

uint64_t ShardTraffic::end_turn() {
  if (state_.link == nullptr) return 0;
  for (PacketId id = state_.pool.take_foreign(); id != kNoPacket; id = state_.pool.take_foreign()) {
    state_.link->send(state_.pool.slice_of(id), {.at = state_.now, .packet = id, .kind = ShardMessage::Kind::home});
  }
  state_.ask_for_wake();
  return state_.link->flush(state_.buffer.own());
}

// Most switches have one shard, and this is kept out of the way of their wakes.
__attribute__((noinline)) void ShardTraffic::take_message(Time at) {
  if (state_.link->next() > at) return;
  state_.advance(state_.link->next());
  const ShardMessage message = state_.link->take();
  switch (message.kind) {
    case ShardMessage::Kind::frame:
      take_frame(state_.ports[message.port], message.packet);
      break;
    case ShardMessage::Kind::settled:
      settle_frame(message);
      break;
    case ShardMessage::Kind::trimmed:
      state_.buffer.recharge_ingress(message.port, message.priority, message.length, message.vlan,
                                     static_cast<uint32_t>(message.mac));
      pauses_.check_xon();
      break;
    case ShardMessage::Kind::home:
      state_.pool.free(message.packet);
      break;
    case ShardMessage::Kind::learned:
      state_.count_learned(message.port, state_.forwarding.hear(state_.now, message.at, message.mac, message.vlan, message.port));
      break;
    case ShardMessage::Kind::heard:
      routed_.hear_from_shard(state_.ports[message.port], message.packet);
      break;
  }
  state_.ask_for_wake();
}

void ShardTraffic::lend_frame(SwitchPort& out, PacketId id) {
  const uint32_t frames = carried_frames(state_.pool[id]);
  state_.held -= frames;
  state_.lent += frames;
  state_.link->send(state_.link->owner(out.number()), {.at = state_.now, .packet = id, .port = out.number()});
}

// The rest of TrafficManager::admit(), for a frame that came in at another shard.
void ShardTraffic::take_frame(SwitchPort& out, PacketId id) {
  const Packet& packet = state_.pool[id];
  state_.held += carried_frames(packet);
  const Admission admission = traffic_.charge_queue(out, packet);
  if (admission == Admission::admitted) return traffic_.enqueue(out, id);
  if (traffic_.may_trim(packet, admission)) return take_trimmed_frame(out, id, admission);
  out.count_discarded(packet.priority, admission);
  report_fate(packet, admission);
  state_.discard(id);
}

// Its ingress is charged for all of it, until it hears what is left.
void ShardTraffic::take_trimmed_frame(SwitchPort& out, PacketId id, Admission why) {
  Packet& packet = state_.pool[id];
  const Packet whole = packet;
  traffic_.trim(out, id);
  if (traffic_.charge_queue(out, packet) == Admission::admitted) {
    state_.link->send(state_.link->owner(packet.ingress_port), {.at = state_.now,
                                                                .mac = packet.length,
                                                                .length = whole.length,
                                                                .port = packet.ingress_port,
                                                                .vlan = packet.priority,
                                                                .kind = ShardMessage::Kind::trimmed,
                                                                .priority = whole.priority});
    return traffic_.enqueue(out, id);
  }
  ++out.egress.queue(whole.priority).counters.dropped_trim_packets;
  out.count_discarded(whole.priority, why);
  report_fate(whole, why);
  state_.discard(id);
}

void ShardTraffic::report_fate(const Packet& packet, Admission fate) {
  state_.link->send(state_.link->owner(packet.ingress_port), {.at = state_.now,
                                                              .frames = static_cast<uint16_t>(carried_frames(packet)),
                                                              .length = carried_bytes(packet),
                                                              .port = packet.ingress_port,
                                                              .kind = ShardMessage::Kind::settled,
                                                              .fate = fate,
                                                              .priority = packet.priority});
}

void ShardTraffic::tell_learned(const SwitchPort& in, const PacketMeta& meta) {
  const bool told = state_.link->tell(
      {.at = state_.now, .mac = meta.source_mac, .port = in.number(), .vlan = meta.vlan(), .kind = ShardMessage::Kind::learned});
  if (told) state_.forwarding.told(state_.now, meta);  // else again with the next frame
}

// Settles the fate of a frame that came in here.
void ShardTraffic::settle_frame(const ShardMessage& message) {
  SwitchPort& in = state_.ports[message.port];
  state_.lent -= message.frames;
  state_.buffer.release_ingress(message.port, message.priority, message.length);
  if (message.fate == Admission::admitted) {
    in.count_admitted(message.priority, message.frames);
  } else {
    in.count_refused(message.priority, message.fate, message.frames);
  }
  pauses_.check_xon();
}

}  // namespace weir
