// What the shards of one switch say to each other: a ring with one writer and one reader for each ordered pair of them, and what
// each of them occupies of the shared buffer.
//
// No ring can overflow. A packet of shard A goes from A to one other shard and home again. So of each packet of A there is at
// most one message on its way from A, and two to A; rings have room for as many, and some for learned addresses beside, which are
// counted when they find no room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/lazy_memory.h"
#include "switching/shard.h"

namespace weir {

class Exchange {
 public:
  static constexpr uint32_t kMaxShards = 64;

  // `owner`: the shard of each port of the switch. `packets`: in each shard's slice of the packet memory, long ones included.
  Exchange(const std::vector<uint8_t>& owner, uint32_t shards, uint32_t packets);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Of shard number `shard`: for its thread alone.
  ShardLink& link(uint32_t shard);
  // On the thread of `shard`, which has said to the others that it is about to sleep: whether it must not, because a message has
  // come that it has not looked at. Sequentially consistent with flush().
  bool waiting(uint32_t shard) const;
  // Addresses learned that `shard` could not tell others. Any thread.
  uint64_t untold(uint32_t shard) const;

 private:
  class Ring;
  class Link;
  Ring& ring(uint32_t from, uint32_t to) { return *rings_[from * shards_ + to]; }
  const Ring& ring(uint32_t from, uint32_t to) const { return *rings_[from * shards_ + to]; }

  uint32_t shards_;
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace weir
