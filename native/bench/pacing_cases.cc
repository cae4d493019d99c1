// When something is due: timing wheel, pacer, token bucket, serialiser.
#include <cstdint>
#include <string>

#include "base/random.h"
#include "bench/bench_case.h"
#include "link/pacer.h"
#include "link/serializer.h"
#include "link/timing_wheel.h"
#include "link/token_bucket.h"

namespace weir::bench {
namespace {

// Cost of a paced packet: the earliest entry comes out and goes back in. 1 Mpps in all, whatever the number of entries, which
// have gaps between half and one and a half times the mean.
class Wheel : public BenchCase {
 public:
  explicit Wheel(uint32_t entries) : wheel_(entries, kMicrosecond) {
    Random random(1);
    for (uint32_t i = 0; i < entries; ++i) {
      gaps_.push_back(static_cast<Time>(static_cast<double>(entries) * kMicrosecond * (0.5 + random.uniform())));
      wheel_.schedule(i, static_cast<Time>(static_cast<double>(gaps_[i]) * random.uniform()));
    }
    Wheel::run(3ull * entries);  // after each has come out a few times, all levels are as full as they stay
  }
  void run(uint64_t count) override {
    for (; count > 0; --count) {
      uint32_t entry = wheel_.pop_due(now_);
      while (entry == TimingWheel::kNone) {
        now_ += 20 * kMicrosecond;  // a turn of the loop
        keep(wheel_.next_deadline());
        entry = wheel_.pop_due(now_);
      }
      wheel_.schedule(entry, wheel_.at(entry) + gaps_[entry]);
    }
  }

 private:
  TimingWheel wheel_;
  std::vector<Time> gaps_;
  Time now_ = 0;
};

class PacerSent : public BenchCase {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      pacer_.sent(pacer_.release(), 1'106, 1'000'000'007);
      keep(pacer_.release());
    }
  }

 private:
  Pacer pacer_;
};

class TokenBucketSent : public BenchCase {
 public:
  TokenBucketSent() { bucket_.configure(&parameters_); }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      bucket_.sent(bucket_.release(), 1'106, 400'000'007);
      keep(bucket_.release());
    }
  }

 private:
  TokenBucketParameters parameters_;
  TokenBucket bucket_;
};

class SerializerFinish : public BenchCase {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(link_.finish(0, 1'090));
  }

 private:
  Serializer link_{10'000'000'000};
};

}  // namespace

void define_pacing_cases(BenchList& list) {
  for (const uint32_t entries : {100u, 1'000u, 100'000u}) {
    define<Wheel>(list, "timing wheel, " + std::to_string(entries) + " entries", entries);
  }
  define<PacerSent>(list, "pacer");
  define<TokenBucketSent>(list, "token bucket");
  define<SerializerFinish>(list, "serialiser");
}

}  // namespace weir::bench
