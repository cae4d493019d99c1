// When a rate limiter that is a token bucket may send its next packet: hardware's alternative to the Pacer, with its interface.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/describe.h"
#include "base/types.h"

namespace weir {

struct TokenBucketParameters {
  uint32_t depth = 3'000;
  Time tick = 16 * kMicrosecond;
};
void describe(auto& v, Of<TokenBucketParameters> auto& p) {
  v.type("NativeTokenBucket", "A rate limiter as the NetFPGA has it.");
  v("depth", p.depth, field::optional(field::bytes("Most tokens.", 1)));
  v("tick", p.tick, field::above(field::ns("Between two additions of tokens.")));
}

// As on the NetFPGA (Kabbani and Yasuda, "Data Center Quantized Congestion Notification (QCN)", section 3.2): every tick, tokens
// of one byte each are added to the bucket, as many as the rate gives, rounded down to whole bytes but at least one; `depth` is
// the most that it holds. A packet takes as many as it has wire bytes. So rates are multiples of 8 bits / tick: 0.5 Mb/s with the
// defaults, which is also the least; and a limiter that was idle sends a burst of `depth`. With time stretched by a scale,
// stretch the tick: it then brings the same bytes.
//
// A packet leaves at the first tick at which its tokens are there. Its size is not known by then: it is taken to be that of the
// one before it, which is exact while sizes do not change; a larger packet leaves the bucket in debt. Where packets are larger
// than `depth` less the tokens of a tick, part of a tick's tokens finds the bucket full, and the limiter gives less than its
// rate, as the hardware would.
//
// The ticks run from the last reset(), with a full bucket.
class TokenBucket {
 public:
  // Must be called before all else. `shared` must outlive this object, and always pass check().
  void configure(const TokenBucketParameters* shared) {
    parameters_ = shared;
    reset(0);
  }

  // The earliest time at which the next packet may leave.
  Time release() const { return release_; }

  // A packet of `wire_bytes` left at `at`, at `rate` bit/s (0: no limit, and the bucket stays full). A packet that goes ahead of
  // its release (a retransmission, say) is charged like any other.
  void sent(Time at, uint32_t wire_bytes, Rate rate) {
    fill(at);
    tokens_ -= wire_bytes;
    last_bytes_ = wire_bytes;
    release_ = at;
    set_rate(at, rate);
  }

  // The rate becomes `new_rate` (0: no limit) at `now`, and with it what the ticks after `now` add. Nothing happens to a packet
  // that was already released by `now`.
  void rate_changed(Time now, Rate new_rate) {
    fill(now);
    set_rate(now, new_rate);
  }

  // Forgets what was sent: the bucket is full, and the next packet may leave at `now`.
  void reset(Time now) {
    next_tick_ = now + parameters_->tick;
    release_ = now;
    tokens_ = parameters_->depth;
    tokens_per_tick_ = 0;
    last_bytes_ = 0;
  }

 private:
  // The ticks up to and including `now`.
  void fill(Time now) {
    if (now < next_tick_) return;
    const int64_t ticks = (now - next_tick_) / parameters_->tick + 1;
    next_tick_ += ticks * parameters_->tick;
    const int64_t depth = parameters_->depth;
    // Compared first: a long time at a high rate would overflow the product.
    if (tokens_per_tick_ > 0 && ticks > (depth - tokens_) / tokens_per_tick_) {
      tokens_ = depth;
    } else {
      tokens_ += ticks * tokens_per_tick_;
    }
  }

  // Must follow fill(now): the tokens in the bucket are then those of now.
  void set_rate(Time now, Rate rate) {
    if (rate == 0) {
      tokens_ = parameters_->depth;
      tokens_per_tick_ = 0;
    } else {
      const double bytes = static_cast<double>(rate) * static_cast<double>(parameters_->tick) / 8e9;
      tokens_per_tick_ = std::max<int64_t>(static_cast<int64_t>(bytes), 1);
    }
    const int64_t lacking = std::min(last_bytes_, parameters_->depth) - tokens_;
    if (lacking > 0) {
      release_ = next_tick_ + (lacking - 1) / tokens_per_tick_ * parameters_->tick;
    } else {
      release_ = std::min(release_, now);
    }
  }

  const TokenBucketParameters* parameters_ = nullptr;
  Time release_ = 0;
  Time next_tick_ = 0;
  int64_t tokens_ = 0;  // tokens in the bucket after the tick before next_tick_; below 0: debt
  int64_t tokens_per_tick_ = 0;
  uint32_t last_bytes_ = 0;
};

}  // namespace weir
