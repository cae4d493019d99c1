// What a responder has to answer, in the order of the requests: acknowledgements, READ responses, results of atomics. And what
// it remembers of the latest READs and atomics, to answer them again (IBTA volume 1, 9.7.5.1.5, 9.4.5).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "transport/psn.h"
#include "transport/queue_attributes.h"

namespace weir {

struct Response {
  enum class Kind : uint8_t { acknowledge, negative, read, atomic };
  Kind kind = Kind::acknowledge;
  bool repeated = false;   // read, atomic: executed before
  bool echo = false;       // acknowledge, negative: of packets that met congestion
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
  // Room for all that a peer may have under way, a READ or an atomic and an ACK in turns, and as much again that is repeated.
  // ACKs and NAKs that follow one another take one place.
  void start(uint32_t most_data, uint32_t path_mtu) {
    ring_ = std::vector<Response>(std::bit_ceil(4 * (most_data + 1)));
    packet_bytes_ = path_mtu;
    clear();
  }
  void stop() {
    ring_ = std::vector<Response>();
    clear();
  }
  void clear() { head_ = count_ = 0; }
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == ring_.size(); }
  Response& front() { return ring_[head_]; }
  const Response& front() const { return ring_[head_]; }
  Response& back() { return at(count_ - 1); }
  void pop() {
    head_ = (head_ + 1) & mask();
    --count_;
  }
  void pop_back() { --count_; }
  // Only when not full.
  void push(const Response& response) { at(count_++) = response; }
  // READs and atomics that wait, those apart that are only repeated.
  uint32_t waiting_data() const {
    uint32_t data = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      const Response& response = ring_[(head_ + i) & mask()];
      data += !response.repeated && (response.kind == Response::Kind::read || response.kind == Response::Kind::atomic);
    }
    return data;
  }
  // Takes back whatever waits for `psn` and later: it is asked for again.
  void truncate(uint32_t psn) {
    while (count_ > 0 && psn_distance(back().end_psn, psn) > 0 && psn_distance(back().psn, psn) >= 0) --count_;
    if (count_ > 0 && psn_distance(back().end_psn, psn) > 0 && back().kind == Response::Kind::read) {
      back().length = static_cast<uint32_t>(psn_distance(psn, back().first_psn)) * packet_bytes_;
      back().end_psn = psn;
    }
  }

 private:
  uint32_t mask() const { return static_cast<uint32_t>(ring_.size()) - 1; }
  Response& at(uint32_t i) { return ring_[(head_ + i) & mask()]; }

  std::vector<Response> ring_;
  uint32_t packet_bytes_ = 1024;
  uint32_t head_ = 0;
  uint32_t count_ = 0;
};

// The latest READs and atomics that were executed.
class ExecutedRequests {
 public:
  void start(uint32_t most) {
    ring_ = std::vector<Response>(most);
    next_ = count_ = 0;
  }
  void stop() { start(0); }
  void remember(const Response& response) {
    ring_[next_] = response;
    next_ = (next_ + 1) % size();
    if (count_ < size()) ++count_;
  }
  // The one whose packets `psn` is among; null if it is forgotten.
  const Response* find(uint32_t psn) const {
    for (uint32_t i = 1; i <= count_; ++i) {
      const Response& candidate = ring_[(next_ + size() - i) % size()];
      if (psn_distance(psn, candidate.first_psn) >= 0 && psn_distance(candidate.end_psn, psn) > 0) return &candidate;
    }
    return nullptr;
  }

 private:
  uint32_t size() const { return static_cast<uint32_t>(ring_.size()); }

  std::vector<Response> ring_;
  uint32_t next_ = 0;
  uint32_t count_ = 0;
};

}  // namespace weir
