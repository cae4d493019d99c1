// A flow: the one paced thing. Congestion control holds all that passes through it to one rate.
//
// Each queue pair has a flow of its own, which also keeps to the queue pair's rate cap. Where congestion control is about several
// queue pairs together (QCN), they pass through the flow of their group as well, and take turns there (endpoint/flow_table.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "base/types.h"
#include "congestion/controller.h"
#include "link/pacer.h"
#include "link/token_bucket.h"

namespace weir {

// Kind of limiter that holds a flow to its rate.
enum class Limiter : uint8_t { pacer, token_bucket };
constexpr auto words_of(Limiter) { return std::array{"pacer", "token-bucket"}; }

// Pacer or TokenBucket; see there.
class FlowLimiter {
 public:
  FlowLimiter() = default;
  explicit FlowLimiter(const TokenBucketParameters& shared) { limiter_.emplace<TokenBucket>().configure(&shared); }
  Time release() const {
    return std::visit([](const auto& limiter) { return limiter.release(); }, limiter_);
  }
  void sent(Time at, uint32_t wire_bytes, Rate rate) {
    std::visit([=](auto& limiter) { limiter.sent(at, wire_bytes, rate); }, limiter_);
  }
  void rate_changed(Time now, Rate rate) {
    std::visit([=](auto& limiter) { limiter.rate_changed(now, rate); }, limiter_);
  }
  void reset(Time now) {
    std::visit([=](auto& limiter) { limiter.reset(now); }, limiter_);
  }

 private:
  std::variant<Pacer, TokenBucket> limiter_;
};

// Fields are in the order of use.
struct Flow {
  static constexpr uint32_t kNobody = UINT32_MAX;

  Time wakes = kNever;  // when it is looked at
  bool started = false;
  bool running = false;   // has begun to send, and not ended; of a group: always
  bool held = false;      // its controller holds it below the line rate
  bool counted = false;   // counted as one that is held
  Rate ceiling = 0;       // bit/s, whatever its controller says; 0: the link's
  Rate rate = 0;          // rate of both; 0: no limit but the link's
  Rate paced_rate = 0;    // rate that the limiter keeps to
  Time changes = kNever;  // when the controller may change the rate if nothing is sent or heard
  FlowLimiter limiter;
  Controller controller;
  // A group's: queue pairs that wait for their turn; the one whose turn it is, and which has not sent yet; the last sender.
  uint32_t first = kNobody;
  uint32_t last = kNobody;
  uint32_t in_turn = kNobody;
  uint32_t sent_last = kNobody;

  // Tells the controller of an event: all of them come this way.
  template <class Event>
  void tell(Event event) {
    controller.visit([&](auto& c) {
      event(c);
      held = c.limited();
      changes = c.next_deadline();
      rate = held ? std::max<Rate>(c.rate(), 1) : ceiling;
      if (held && ceiling > 0) rate = std::min(rate, ceiling);
    });
  }
  void start(Time now, Rate initial_rate) {
    started = running = true;
    tell([=](auto& c) { c.start(now, initial_rate); });
    limiter.reset(now);
    paced_rate = rate;
  }
  // Catches up. When the next packet may go.
  Time release(Time now) {
    if (!controller.none()) tell([=](auto& c) { c.advance(now); });
    if (rate != paced_rate) repace(now);
    return limiter.release();
  }
  // The rate has changed while the next packet waits.
  void repace(Time now) {
    limiter.rate_changed(now, rate);
    paced_rate = rate;
  }
  void sent(Time now, uint32_t wire_bytes) {
    if (!controller.none()) tell([=](auto& c) { c.on_sent(now, wire_bytes); });
    paced_rate = rate;
    limiter.sent(now, wire_bytes, rate);
  }
  // A READ REQUEST left, and what it asks for, `wire_bytes` in all and `longest` in one packet, is as if this end had sent it.
  void asked(Time now, uint32_t longest, uint32_t wire_bytes) {
    tell([=](auto& c) { c.on_sent(now, longest); });
    paced_rate = rate;
    limiter.sent(now, wire_bytes, rate);
  }
  bool miscounted() const { return (held & running) != counted; }
  // When to look at it again while its next packet waits.
  Time next_deadline() const { return std::min(limiter.release(), changes); }
};

}  // namespace weir
