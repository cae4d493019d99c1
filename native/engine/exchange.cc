#include "engine/exchange.h"

#include <bit>
#include <cassert>

namespace weir {
namespace {

constexpr size_t kNews = 1024;  // addresses on their way from one shard to another

}  // namespace

// Each end keeps its own position, and shows it to the other with publish_*(): once per turn, not per message.
class Exchange::Ring {
 public:
  explicit Ring(size_t capacity)
      : mask_(std::bit_ceil(capacity) - 1),
        memory_((mask_ + 1) * sizeof(ShardMessage), false),
        slots_(reinterpret_cast<ShardMessage*>(memory_.data())) {}

  // Writer.
  bool has_room(size_t most) {
    if (written_ - head_seen_ < most) return true;
    head_seen_ = head_.load(std::memory_order_acquire);
    return written_ - head_seen_ < most;
  }
  void push(const ShardMessage& message) {
    assert(has_room(mask_ + 1));
    slots_[written_ & mask_] = message;
    ++written_;
  }
  bool publish_written() {
    if (written_ == tail_.load(std::memory_order_relaxed)) return false;
    tail_.store(written_, std::memory_order_seq_cst);
    return true;
  }
  // Reader.
  const ShardMessage* front() {
    if (read_ == tail_seen_) tail_seen_ = tail_.load(std::memory_order_acquire);
    return read_ == tail_seen_ ? nullptr : &slots_[read_ & mask_];
  }
  void pop() { ++read_; }
  void publish_read() {
    if (read_ != head_.load(std::memory_order_relaxed)) head_.store(read_, std::memory_order_release);
  }
  bool has_news() const { return tail_.load(std::memory_order_seq_cst) != tail_seen_; }

 private:
  size_t mask_;
  LazyMemory memory_;
  ShardMessage* slots_;
  alignas(64) size_t written_ = 0;
  size_t head_seen_ = 0;
  alignas(64) std::atomic<size_t> tail_{0};
  alignas(64) size_t read_ = 0;
  size_t tail_seen_ = 0;
  alignas(64) std::atomic<size_t> head_{0};
};

class Exchange::Link final : public ShardLink {
 public:
  Link(Exchange& exchange, ShardMap map) : exchange_(exchange), map_(std::move(map)) {}

  const ShardMap& map() const override { return map_; }
  void send(uint32_t shard, const ShardMessage& message) override { exchange_.ring(map_.self, shard).push(message); }
  bool tell(uint32_t shard, const ShardMessage& message) override {
    Ring& ring = exchange_.ring(map_.self, shard);
    if (!ring.has_room(kNews)) {
      untold_.store(untold_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return false;
    }
    ring.push(message);
    return true;
  }
  const ShardMessage* front(uint32_t shard) override { return exchange_.ring(shard, map_.self).front(); }
  void pop(uint32_t shard) override { exchange_.ring(shard, map_.self).pop(); }
  void publish(const Occupancy& own) override {
    occupied_.store(own.occupied, std::memory_order_relaxed);
    in_headroom_.store(own.in_headroom, std::memory_order_relaxed);
  }
  Occupancy others() const override {
    Occupancy sum;
    for (const auto& link : exchange_.links_) {
      if (link.get() == this) continue;
      sum.occupied += link->occupied_.load(std::memory_order_relaxed);
      sum.in_headroom += link->in_headroom_.load(std::memory_order_relaxed);
    }
    return sum;
  }
  // What was read first: whoever sees a packet sent home, or sent again, sees the room that its last message has left.
  uint64_t flush() override {
    uint64_t shards = 0;
    for (uint32_t other = 0; other < map_.shards; ++other) {
      if (other != map_.self) exchange_.ring(other, map_.self).publish_read();
    }
    for (uint32_t other = 0; other < map_.shards; ++other) {
      if (other != map_.self && exchange_.ring(map_.self, other).publish_written()) shards |= uint64_t{1} << other;
    }
    return shards;
  }
  uint64_t untold() const { return untold_.load(std::memory_order_relaxed); }

 private:
  Exchange& exchange_;
  ShardMap map_;
  alignas(64) std::atomic<int64_t> occupied_{0};
  std::atomic<int64_t> in_headroom_{0};
  std::atomic<uint64_t> untold_{0};
};

Exchange::Exchange(const std::vector<uint8_t>& owner, uint32_t shards, uint32_t packets) : shards_(shards) {
  assert(shards <= kMaxShards);
  for (uint32_t i = 0; i < shards * shards; ++i) {
    rings_.push_back(i % (shards + 1) == 0 ? nullptr : std::make_unique<Ring>(3 * size_t{packets} + kNews));
  }
  for (uint32_t i = 0; i < shards; ++i) links_.push_back(std::make_unique<Link>(*this, ShardMap{i, shards, owner}));
}

Exchange::~Exchange() = default;

ShardLink& Exchange::link(uint32_t shard) { return *links_[shard]; }

bool Exchange::waiting(uint32_t shard) const {
  for (uint32_t other = 0; other < shards_; ++other) {
    if (other != shard && ring(other, shard).has_news()) return true;
  }
  return false;
}

uint64_t Exchange::untold(uint32_t shard) const { return links_[shard]->untold(); }

}  // namespace weir
