// Messages between the shards of one switch: a ring with one writer and one reader for each ordered pair of them, and the room
// that each of them occupies in the shared buffer.
//
// No ring can overflow. A packet of shard A goes from A to one other shard and home again. So each packet of A has at
// most one message on its way from A, and two to A; rings have room for as many, and some for learned addresses beside, which are
// told again when they find no room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/lazy_memory.h"
#include "base/types.h"
#include "switching/shard.h"
#include "wire/icmp.h"

namespace weir {

class ShardRing;

// One shard's end of it: for its thread alone.
class ShardLink {
 public:
  ShardLink(uint32_t self, const std::vector<uint8_t>& owner, IcmpBudget& icmp) : self_(self), owner_(owner), icmp_(&icmp) {}

  uint32_t self() const { return self_; }
  uint32_t shards() const { return static_cast<uint32_t>(others_.size()) + 1; }
  // The shard of each port.
  uint32_t owner(uint16_t port) const { return owner_[port]; }

  // Sends a message of any kind but `learned`. The receiver sees it after flush().
  void send(uint32_t shard, const ShardMessage& message);
  // Tells all others. False when there is no room with one of them.
  bool tell(const ShardMessage& news);

  // Looks at what others sent up to now.
  void look();
  // When the oldest of that was said; kNever if there is none.
  Time next() const { return next_; }
  // Takes it; of equally old ones, that of the lowest shard.
  ShardMessage take();

  Occupancy others() const;
  // Time up to which the rate of ICMP messages is used up that all shards have together.
  IcmpBudget& icmp() { return *icmp_; }
  // Makes visible what was sent and taken, and what this shard occupies. Returns the shards that have something new, as a mask.
  uint64_t flush(const Occupancy& own);

 private:
  friend class Exchange;
  struct Other {
    uint32_t shard;
    const ShardLink* link;
    ShardRing* to;
    ShardRing* from;
  };

  uint32_t self_;
  std::vector<uint8_t> owner_;
  IcmpBudget* icmp_;
  std::vector<Other> others_;  // the others, in their order
  Time next_ = kNever;
  Time rival_ = kNever;  // the oldest of those of other shards than that one's
  ShardRing* oldest_ = nullptr;
  alignas(64) std::atomic<int64_t> occupied_{0};
  std::atomic<int64_t> in_headroom_{0};
};

class Exchange {
 public:
  static constexpr uint32_t kMaxShards = 64;

  // `owner`: the shard of each port of the switch. `packets`: in each shard's slice of the packet memory, long ones included.
  Exchange(const std::vector<uint8_t>& owner, uint32_t shards, uint32_t packets);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  ShardLink& link(uint32_t shard) { return *links_[shard]; }
  // Asked on the thread of `shard`, which has said to the others that it is about to sleep: whether it must not, because a
  // message has come that it has not looked at. Sequentially consistent with flush().
  bool waiting(uint32_t shard) const;

 private:
  IcmpBudget icmp_;
  std::vector<std::unique_ptr<ShardRing>> rings_;  // indexed by sender and receiver
  std::vector<std::unique_ptr<ShardLink>> links_;
};

}  // namespace weir
