// What a responder has to answer, in the order of the requests: acknowledgements, READ responses, results of atomics. And what
// it remembers of the latest READs and atomics, to answer them again (IBTA volume 1, 9.7.5.1.5, 9.4.5).
#pragma once

#include <array>
#include <cstdint>

#include "transport/psn.h"
#include "transport/queue_attributes.h"

namespace weir {

struct Response {
  enum class Kind : uint8_t { acknowledge, negative, read, atomic };
  Kind kind = Kind::acknowledge;
  bool repeated = false;   // read, atomic: executed before
  uint8_t syndrome = 0;    // negative
  uint32_t psn = 0;        // of the (next) packet
  uint32_t first_psn = 0;  // read
  uint32_t end_psn = 0;    // behind the last packet
  uint32_t sequence = 0;   // MSN
  uint32_t key = 0;        // read
  uint64_t address = 0;    // read: of the packet at first_psn
  uint32_t length = 0;     // read: from first_psn on
  uint64_t original = 0;   // atomic
};

class ResponseQueue {
 public:
  static constexpr uint32_t kMost = 256;

  void clear() { head_ = count_ = 0; }
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == kMost; }
  Response& front() { return ring_[head_]; }
  const Response& front() const { return ring_[head_]; }
  Response& back() { return ring_[(head_ + count_ - 1) % kMost]; }
  void pop() {
    head_ = (head_ + 1) % kMost;
    --count_;
  }
  void pop_back() { --count_; }
  // Only when not full.
  void push(const Response& response) { ring_[(head_ + count_++) % kMost] = response; }
  // READs and atomics that wait, those apart that are only repeated.
  uint32_t waiting_data() const {
    uint32_t data = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      const Response& response = ring_[(head_ + i) % kMost];
      data += !response.repeated && (response.kind == Response::Kind::read || response.kind == Response::Kind::atomic);
    }
    return data;
  }
  // Takes back whatever waits for `psn` and later: it is asked for again.
  void truncate(uint32_t psn) {
    while (count_ > 0 && psn_distance(back().end_psn, psn) > 0 && psn_distance(back().psn, psn) >= 0) --count_;
    if (count_ > 0 && psn_distance(back().end_psn, psn) > 0 && back().kind == Response::Kind::read) {
      back().length = static_cast<uint32_t>(psn_distance(psn, back().first_psn)) * packet_bytes;
      back().end_psn = psn;
    }
  }
  uint32_t packet_bytes = 1024;  // path MTU

 private:
  std::array<Response, kMost> ring_{};
  uint32_t head_ = 0;
  uint32_t count_ = 0;
};

// The latest READs and atomics that were executed.
class ExecutedRequests {
 public:
  void clear() { count_ = 0; }
  void remember(const Response& response, uint32_t most) {
    ring_[next_] = response;
    next_ = (next_ + 1) % ring_.size();
    if (count_ < most) ++count_;
  }
  // The one whose packets `psn` is among; null if it is forgotten.
  const Response* find(uint32_t psn) const {
    for (uint32_t i = 1; i <= count_; ++i) {
      const Response& candidate = ring_[(next_ + ring_.size() - i) % ring_.size()];
      if (psn_distance(psn, candidate.first_psn) >= 0 && psn_distance(candidate.end_psn, psn) > 0) return &candidate;
    }
    return nullptr;
  }

 private:
  std::array<Response, kMaxRdAtomic> ring_{};
  uint32_t next_ = 0;
  uint32_t count_ = 0;
};

}  // namespace weir
