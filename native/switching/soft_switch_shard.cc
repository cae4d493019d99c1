// Messages of a switch's shard to the others, and what it does when they send theirs: see switching/shard.h.
#include "switching/soft_switch.h"

namespace weir {
namespace {

constexpr Time kLookAgain = 20 * kMicrosecond;

}  // namespace

void SoftSwitch::begin_turn() {
  if (link_ == nullptr) return;
  buffer_.set_others(link_->others());
  check_xon();
  link_->look();
  ask_for_messages();
}

uint64_t SoftSwitch::end_turn() {
  if (link_ == nullptr) return 0;
  for (PacketId id = pool_.take_foreign(); id != kNoPacket; id = pool_.take_foreign()) {
    link_->send(pool_.slice_of(id), {.at = now_, .packet = id, .kind = ShardMessage::Kind::home});
  }
  ask_for_messages();
  return link_->flush(buffer_.own());
}

void SoftSwitch::ask_for_messages() {
  Time next = link_->next();
  // Frames that another shard lets go may resume a peer of ours, and it does not tell us.
  if (stopped_ != 0 && buffer_.others().occupied > 0) next = std::min(next, now_ + kLookAgain);
  if (router_ != nullptr) next = std::min(next, router_->next_look);
  driver_.wake(messages_, next);
}

// Takes the oldest message, if its time has come. Messages behind it wait for events that are due before.
void SoftSwitch::take_message(Time at) {
  if (link_->next() > at) return;
  advance(link_->next());
  const ShardMessage message = link_->take();
  switch (message.kind) {
    case ShardMessage::Kind::frame:
      take_frame(ports_[message.port], message.packet);
      break;
    case ShardMessage::Kind::settled:
      settle(message);
      break;
    case ShardMessage::Kind::trimmed:
      buffer_.recharge_ingress(message.port, message.priority, message.length, message.vlan, static_cast<uint32_t>(message.mac));
      check_xon();
      break;
    case ShardMessage::Kind::home:
      pool_.free(message.packet);
      break;
    case ShardMessage::Kind::learned:
      count_learned(message.port, forwarding_.hear(now_, message.at, message.mac, message.vlan, message.port));
      break;
    case ShardMessage::Kind::heard:
      hear_of(ports_[message.port], message.packet);
      break;
  }
  ask_for_messages();
}

// The frame is charged to its ingress here, and joins a queue of another shard.
void SoftSwitch::lend(Port& out, PacketId id) {
  const uint32_t frames = carried_frames(pool_[id]);
  held_ -= frames;
  lent_ += frames;
  link_->send(link_->owner(out.number()), {.at = now_, .packet = id, .port = out.number()});
}

// The rest of admit(), for a frame that came in at another shard.
void SoftSwitch::take_frame(Port& out, PacketId id) {
  const Packet& packet = pool_[id];
  held_ += carried_frames(packet);
  const Admission admission = charge_queue(out, packet);
  if (admission == Admission::admitted) return enqueue(out, id);
  if (trims(packet, admission)) return take_trimmed_frame(out, id, admission);
  count_discarded(out, packet.priority, admission);
  report(packet, admission);
  discard(id);
}

Admission SoftSwitch::charge_queue(const Port& out, const Packet& packet) {
  if (out.egress.closed(packet.priority)) return Admission::pfc_storm;
  if (beyond_limit(out, packet)) return Admission::queue_limit;
  return buffer_.admit_egress(out.number(), packet.priority, carried_bytes(packet));
}

// Its ingress is charged for all of it, until it hears what is left.
void SoftSwitch::take_trimmed_frame(Port& out, PacketId id, Admission why) {
  Packet& packet = pool_[id];
  const Packet whole = packet;
  trim(out, id);
  if (charge_queue(out, packet) == Admission::admitted) {
    link_->send(link_->owner(packet.ingress_port), {.at = now_,
                                                    .mac = packet.length,
                                                    .length = whole.length,
                                                    .port = packet.ingress_port,
                                                    .vlan = packet.priority,
                                                    .kind = ShardMessage::Kind::trimmed,
                                                    .priority = whole.priority});
    return enqueue(out, id);
  }
  ++out.egress.queue(whole.priority).counters.dropped_trim_packets;
  count_discarded(out, whole.priority, why);
  report(whole, why);
  discard(id);
}

void SoftSwitch::report(const Packet& packet, Admission fate) {
  link_->send(link_->owner(packet.ingress_port), {.at = now_,
                                                  .frames = static_cast<uint16_t>(carried_frames(packet)),
                                                  .length = carried_bytes(packet),
                                                  .port = packet.ingress_port,
                                                  .kind = ShardMessage::Kind::settled,
                                                  .fate = fate,
                                                  .priority = packet.priority});
}

// Settles the fate of a frame that came in here.
void SoftSwitch::settle(const ShardMessage& message) {
  Port& in = ports_[message.port];
  lent_ -= message.frames;
  buffer_.release_ingress(message.port, message.priority, message.length);
  if (message.fate == Admission::admitted) {
    count_admitted(in, message.priority, message.frames);
  } else {
    count_refused(in, message.priority, message.fate, message.frames);
  }
  check_xon();
}

}  // namespace weir
