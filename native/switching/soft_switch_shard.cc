// What a shard of a switch says to the others, and does when they say it: see switching/shard.h.
#include "switching/soft_switch.h"

namespace weir {

void SoftSwitch::begin_turn() {
  if (link_ == nullptr) return;
  buffer_.set_others(link_->others());
  check_xon();
  find_message();
}

uint64_t SoftSwitch::end_turn() {
  if (link_ == nullptr) return 0;
  for (PacketId id = pool_.take_foreign(); id != kNoPacket; id = pool_.take_foreign()) {
    link_->send(pool_.slice_of(id), {.at = now_, .packet = id, .kind = ShardMessage::Kind::home});
  }
  link_->publish(buffer_.own());
  return link_->flush();
}

// The oldest message; of equally old ones, that of the lowest shard.
void SoftSwitch::find_message() {
  const ShardMap& map = link_->map();
  next_message_ = next_rival_ = kNever;
  for (uint32_t shard = 0; shard < map.shards; ++shard) {
    const ShardMessage* message = shard == map.self ? nullptr : link_->front(shard);
    if (message == nullptr) continue;
    if (message->at < next_message_) {
      next_rival_ = next_message_;
      next_message_ = message->at;
      next_sender_ = shard;
    } else {
      next_rival_ = std::min(next_rival_, message->at);
    }
  }
}

// The oldest message, and those behind it as long as nothing else comes before.
void SoftSwitch::take_messages(Time now) {
  const uint32_t sender = next_sender_;
  const ShardMessage* next;
  do {
    const ShardMessage message = *link_->front(sender);
    link_->pop(sender);
    now_ = std::max(now_, message.at);
    take(message);
    next = link_->front(sender);
  } while (next != nullptr && next->at <= now && next->at < next_rival_ && (events_.empty() || next->at < events_.top_key()));
  find_message();
}

void SoftSwitch::take(const ShardMessage& message) {
  switch (message.kind) {
    case ShardMessage::Kind::frame:
      return take_frame(ports_[message.port], message.packet);
    case ShardMessage::Kind::settled:
      return settle(message);
    case ShardMessage::Kind::home:
      return pool_.free(message.packet);
    case ShardMessage::Kind::learned:
      return count_learned(message.port, forwarding_.hear(now_, message.at, message.mac, message.vlan, message.port));
  }
}

void SoftSwitch::tell(const PacketMeta& meta, uint16_t port) {
  const ShardMap& map = link_->map();
  const ShardMessage news{
      .at = now_, .mac = meta.source_mac, .port = port, .vlan = meta.vlan(), .kind = ShardMessage::Kind::learned};
  bool all = true;
  for (uint32_t shard = 0; shard < map.shards; ++shard) {
    if (shard != map.self) all = link_->tell(shard, news) && all;
  }
  if (all) forwarding_.told(now_, meta);  // else again with the next frame
}

// forward() to a port of another shard, up to where the frame would be admitted to its queue.
void SoftSwitch::hand_over(Port& in, Port& out, PacketId id) {
  const Packet& packet = pool_[id];
  const int priority = packet.priority;
  SwitchPriorityCounters& group = in.queues[packet.priority].counters;
  if (buffer_.admit_ingress(in.number, priority, packet.length) != Admission::admitted) {
    ++group.pg_dropped_packets;
    stop_for_want_of_headroom(in, priority);
    return drop(in.counters.drop_headroom_full, id);
  }
  raise(group.pg_watermark_bytes, buffer_.ingress_bytes(in.number, priority));
  raise(group.pg_xoff_room_watermark_bytes, buffer_.headroom_bytes(in.number, priority));
  --held_;
  ++lent_;
  link_->send(link_->map().owner[out.number], {.at = now_, .packet = id, .port = out.number});
  check_xoff(in, priority);
}

// The rest of forward(), for a frame that came in at another shard.
void SoftSwitch::take_frame(Port& out, PacketId id) {
  const Packet& packet = pool_[id];
  const int priority = packet.priority;
  using Fate = ShardMessage::Fate;
  ++held_;
  Fate fate = Fate::sent;
  const int64_t limit = out.parameters.queue_limits[packet.priority];
  if (limit > 0 && buffer_.egress_bytes(out.number, priority) + packet.length > limit) {
    fate = Fate::queue_limit;
  } else {
    const Admission admission = buffer_.admit_egress(out.number, priority, packet.length);
    if (admission == Admission::admitted) return enqueue(out, id);
    fate = admission == Admission::lossy_threshold ? Fate::lossy_threshold : Fate::buffer_full;
  }
  count_discarded(out, priority);
  report(packet, fate);
  --held_;
  pool_.free(id);
}

void SoftSwitch::report(const Packet& packet, ShardMessage::Fate fate) {
  link_->send(link_->map().owner[packet.ingress_port], {.at = now_,
                                                        .length = packet.length,
                                                        .port = packet.ingress_port,
                                                        .kind = ShardMessage::Kind::settled,
                                                        .fate = fate,
                                                        .priority = packet.priority,
                                                        .super_frame = packet.offload.gso != Gso::none});
}

// What became of a frame that came in here.
void SoftSwitch::settle(const ShardMessage& message) {
  Port& in = ports_[message.port];
  SwitchPriorityCounters& group = in.queues[message.priority].counters;
  --lent_;
  buffer_.release_ingress(message.port, message.priority, message.length);
  switch (message.fate) {
    case ShardMessage::Fate::sent:
      ++group.pg_packets;
      if (message.super_frame) ++in.counters.gso_passed;
      break;
    case ShardMessage::Fate::lossy_threshold:
      ++group.pg_dropped_packets;
      ++in.counters.drop_lossy_threshold;
      break;
    case ShardMessage::Fate::buffer_full:
      ++group.pg_dropped_packets;
      ++in.counters.drop_buffer_full;
      break;
    case ShardMessage::Fate::queue_limit:
      ++in.counters.drop_queue_limit;
      break;
  }
  check_xon();
}

}  // namespace weir
