#include "switching/exchange.h"

#include <algorithm>
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

void ShardLink::send(uint32_t shard, const ShardMessage& message) { exchange_.ring(self_, shard).push(message); }

bool ShardLink::tell(const ShardMessage& news) {
  bool all = true;
  for (uint32_t shard = 0; shard < exchange_.shards_; ++shard) {
    if (shard == self_) continue;
    Exchange::Ring& ring = exchange_.ring(self_, shard);
    if (ring.has_room(kNews)) {
      ring.push(news);
    } else {
      untold_.store(untold_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      all = false;
    }
  }
  return all;
}

void ShardLink::look() {
  next_ = rival_ = kNever;
  for (uint32_t shard = 0; shard < exchange_.shards_; ++shard) {
    const ShardMessage* message = shard == self_ ? nullptr : exchange_.ring(shard, self_).front();
    if (message == nullptr) continue;
    if (message->at < next_) {
      rival_ = next_;
      next_ = message->at;
      sender_ = shard;
    } else {
      rival_ = std::min(rival_, message->at);
    }
  }
}

ShardMessage ShardLink::take() {
  Exchange::Ring& ring = exchange_.ring(sender_, self_);
  const ShardMessage message = *ring.front();
  ring.pop();
  const ShardMessage* next = ring.front();
  if (next != nullptr && next->at < rival_) {
    next_ = next->at;
  } else {
    look();
  }
  return message;
}

Occupancy ShardLink::others() const {
  Occupancy sum;
  for (const auto& link : exchange_.links_) {
    if (link.get() == this) continue;
    sum.occupied += link->occupied_.load(std::memory_order_relaxed);
    sum.in_headroom += link->in_headroom_.load(std::memory_order_relaxed);
  }
  return sum;
}

// What was read first: whoever sees a packet sent home, or sent again, sees the room that its last message has left.
uint64_t ShardLink::flush(const Occupancy& own) {
  occupied_.store(own.occupied, std::memory_order_relaxed);
  in_headroom_.store(own.in_headroom, std::memory_order_relaxed);
  uint64_t shards = 0;
  for (uint32_t other = 0; other < exchange_.shards_; ++other) {
    if (other != self_) exchange_.ring(other, self_).publish_read();
  }
  for (uint32_t other = 0; other < exchange_.shards_; ++other) {
    if (other != self_ && exchange_.ring(self_, other).publish_written()) shards |= uint64_t{1} << other;
  }
  return shards;
}

Exchange::Exchange(const std::vector<uint8_t>& owner, uint32_t shards, uint32_t packets) : shards_(shards) {
  assert(shards <= kMaxShards);
  for (uint32_t i = 0; i < shards * shards; ++i) {
    rings_.push_back(i % (shards + 1) == 0 ? nullptr : std::make_unique<Ring>(3 * size_t{packets} + kNews));
  }
  for (uint32_t i = 0; i < shards; ++i) links_.push_back(std::make_unique<ShardLink>(*this, i, owner));
}

Exchange::~Exchange() = default;

bool Exchange::waiting(uint32_t shard) const {
  for (uint32_t other = 0; other < shards_; ++other) {
    if (other != shard && ring(other, shard).has_news()) return true;
  }
  return false;
}

}  // namespace weir
