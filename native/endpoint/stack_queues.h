// Frames that the host's own network stack has given to its NIC to send, and that the link has not taken yet.
//
// A NIC's Ethernet driver has several send queues of each priority, and picks one by a hash of addresses and ports (Liss, "QCN
// and RoCE", OFA workshop 2012: "multiple flow queues per priority, selected based on L2/3/4 hash", beside "each QP constitutes
// its own flow queue"). So has this; each takes turns with the queue pairs of its priority as if it were one of them.
//
// A super-frame waits whole, and is cut when its turn comes, a segment each time, as TSO does: others are not held up by the
// rest. Each priority has a bound on what waits, counted in the memory that packets take, as Linux counts a socket's: a bound
// for long frames is one for short ones, too. The excess is dropped from the queue that has most, from its front (as
// fq_codel of Linux does, RFC 8290, section 4.1): a sender of more than there is room for costs others nothing, and learns of it
// soon.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "wire/packet_pool.h"

namespace weir {

class StackQueues {
 public:
  static constexpr uint32_t kOfPriority = 32;
  // idle: empty; waiting: for its flow; ready: in its priority's list.
  enum class State : uint8_t { idle, waiting, ready };

  // `most`: bytes that may wait of a priority; 0: there is no stack, and no queue.
  explicit StackQueues(uint32_t most) : most_(most), queues_(count(most)) {}

  static uint32_t count(uint32_t most) { return most > 0 ? kPriorities * kOfPriority : 0; }
  static uint32_t queue_of(uint8_t priority, uint32_t flow_hash) { return priority * kOfPriority + flow_hash % kOfPriority; }
  static uint8_t priority_of(uint32_t queue) { return static_cast<uint8_t>(queue / kOfPriority); }

  uint32_t size() const { return static_cast<uint32_t>(queues_.size()); }
  State& state(uint32_t queue) { return queues_[queue].state; }
  bool empty(uint32_t queue) const { return queues_[queue].packets.empty(); }
  // Owns a packet, of which check_offload() said yes, from now on. Returns how many frames were dropped, of its priority.
  uint32_t push(PacketPool& pool, uint32_t queue, PacketId id);
  // Wire bytes of the next frame of a queue that is not empty.
  uint32_t next_wire_bytes(const PacketPool& pool, uint32_t queue) const;
  // Takes that frame, which is then the caller's. One of the pool's short packets must be left: a segment gets its own.
  PacketId take(PacketPool& pool, uint32_t queue);

 private:
  struct Queue {
    PacketQueue packets;
    uint32_t count = 0;
    uint32_t bytes = 0;     // memory that they take
    uint32_t segments = 0;  // segments of the first that have been cut
    State state = State::idle;
  };

  PacketId pop(PacketPool& pool, uint32_t queue);
  uint32_t longest(uint8_t priority) const;

  uint32_t most_;
  std::array<uint32_t, kPriorities> held_{};  // bytes
  std::vector<Queue> queues_;
};

}  // namespace weir
