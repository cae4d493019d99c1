#include "switching/exchange.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace weir {
namespace {

constexpr size_t kNews = 1024;  // addresses on their way from one shard to another

}  // namespace

// Each end keeps its own position, and shows it to the other with publish_*(): once per turn, not per message.
class ShardRing {
 public:
  explicit ShardRing(size_t capacity)
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

void ShardLink::send(uint32_t shard, const ShardMessage& message) {
  others_[shard < self_ ? shard : shard - 1].to->push(message);
}

bool ShardLink::tell(const ShardMessage& news) {
  bool all = true;
  for (const Other& other : others_) {
    const bool room = other.to->has_room(kNews);
    if (room) other.to->push(news);
    all = all && room;
  }
  return all;
}

void ShardLink::look() {
  next_ = rival_ = kNever;
  for (const Other& other : others_) {
    const ShardMessage* message = other.from->front();
    if (message == nullptr) continue;
    if (message->at < next_) {
      rival_ = next_;
      next_ = message->at;
      oldest_ = other.from;
    } else {
      rival_ = std::min(rival_, message->at);
    }
  }
}

ShardMessage ShardLink::take() {
  const ShardMessage message = *oldest_->front();
  oldest_->pop();
  const ShardMessage* next = oldest_->front();
  if (next != nullptr && next->at < rival_) {
    next_ = next->at;
  } else {
    look();
  }
  return message;
}

Occupancy ShardLink::others() const {
  Occupancy sum;
  for (const Other& other : others_) {
    sum.occupied += other.link->occupied_.load(std::memory_order_relaxed);
    sum.in_headroom += other.link->in_headroom_.load(std::memory_order_relaxed);
  }
  return sum;
}

// Flushes what was read first: a shard that sees a packet sent home, or sent again, sees the room that its last message has left.
uint64_t ShardLink::flush(const Occupancy& own) {
  occupied_.store(own.occupied, std::memory_order_relaxed);
  in_headroom_.store(own.in_headroom, std::memory_order_relaxed);
  uint64_t shards = 0;
  for (const Other& other : others_) other.from->publish_read();
  for (const Other& other : others_) shards |= uint64_t{other.to->publish_written()} << other.shard;
  return shards;
}

Exchange::Exchange(const std::vector<uint8_t>& owner, uint32_t shards, uint32_t packets) {
  assert(shards <= kMaxShards);
  for (uint32_t i = 0; i < shards * shards; ++i) {
    rings_.push_back(i % (shards + 1) == 0 ? nullptr : std::make_unique<ShardRing>(3 * size_t{packets} + kNews));
  }
  for (uint32_t i = 0; i < shards; ++i) links_.push_back(std::make_unique<ShardLink>(i, owner, icmp_));
  for (uint32_t self = 0; self < shards; ++self) {
    for (uint32_t i = 0; i < shards; ++i) {
      if (i == self) continue;
      links_[self]->others_.push_back({i, links_[i].get(), rings_[self * shards + i].get(), rings_[i * shards + self].get()});
    }
  }
}

Exchange::~Exchange() = default;

bool Exchange::waiting(uint32_t shard) const {
  return std::ranges::any_of(links_[shard]->others_, [](const ShardLink::Other& other) { return other.from->has_news(); });
}

}  // namespace weir
