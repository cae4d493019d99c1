#include "endpoint/stack_queues.h"

#include "wire/carried.h"
#include "wire/segmentation.h"

namespace weir {

uint32_t StackQueues::push(PacketPool& pool, uint32_t queue, PacketId id) {
  Queue& to = queues_[queue];
  uint32_t& held = held_[priority_of(queue)];
  const uint32_t takes = pool.room(id);
  uint32_t dropped = 0;
  while (takes > most_ - held) {
    const uint32_t from = longest(priority_of(queue));
    if (queues_[from].count < 2 || queues_[from].bytes <= to.bytes + takes) {
      dropped += carried_frames(pool[id]);
      pool.free(id);
      return dropped;
    }
    dropped += carried_frames(pool[queues_[from].packets.front()]) - queues_[from].segments;
    pool.free(pop(pool, from));
  }
  held += takes;
  to.bytes += takes;
  ++to.count;
  to.packets.push(pool, id);
  return dropped;
}

uint32_t StackQueues::longest(uint8_t priority) const {
  const uint32_t first = priority * kOfPriority;
  uint32_t longest = first;
  for (uint32_t queue = first + 1; queue < first + kOfPriority; ++queue) {
    if (queues_[queue].bytes > queues_[longest].bytes) longest = queue;
  }
  return longest;
}

PacketId StackQueues::pop(PacketPool& pool, uint32_t queue) {
  Queue& of = queues_[queue];
  const PacketId id = of.packets.pop(pool);
  held_[priority_of(queue)] -= pool.room(id);
  of.bytes -= pool.room(id);
  --of.count;
  of.segments = 0;
  return id;
}

uint32_t StackQueues::next_wire_bytes(const PacketPool& pool, uint32_t queue) const {
  const Packet& first = pool[queues_[queue].packets.front()];
  return wire_bytes(first.offload.largest_segment(first.length));
}

PacketId StackQueues::take(PacketPool& pool, uint32_t queue) {
  Queue& of = queues_[queue];
  const PacketId first = of.packets.front();
  const Packet& whole = pool[first];
  if (whole.offload.gso == Gso::none) return pop(pool, queue);
  const PacketId id = pool.allocate();
  Packet& segment = pool[id];
  segment = whole;
  segment.offload = {};
  segment.length = write_segment(pool.data(first), whole.length, whole.offload, of.segments, pool.data(id));
  if (++of.segments == carried_frames(whole)) pool.free(pop(pool, queue));
  return id;
}

}  // namespace weir
