#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/native_error.h"
#include "base/random.h"
#include "congestion/qcn_congestion_point.h"

namespace {

using weir::QcnCongestionParameters;
using weir::QcnCongestionPoint;
using weir::QcnFeedback;
using weir::Random;

constexpr std::array<uint32_t, 8> kTable = {150'000, 75'000, 50'000, 37'500, 30'000, 25'000, 21'500, 18'500};
constexpr uint32_t kWholePeriod = 1'000'000;  // a frame that is sampled whatever the period

struct Queue {
  explicit Queue(const QcnCongestionParameters& p, uint64_t seed = 1) : parameters(p) { cp.configure(&parameters, Random(seed)); }
  // Frames of `bytes` with `queue_bytes` in the queue until one is sampled: how many.
  int until_sample(int64_t queue_bytes, uint32_t bytes) {
    const uint64_t before = cp.samples();
    bool silent = true;
    for (int frames = 1;; ++frames) {
      last = cp.on_enqueue(queue_bytes, bytes);
      if (cp.samples() > before) {
        REQUIRE(silent);
        return frames;
      }
      silent = silent && last.quantized == 0;
    }
  }
  // The feedback at a queue of `queue_bytes` that does not change.
  uint8_t steady(int64_t queue_bytes) {
    cp.on_enqueue(queue_bytes, kWholePeriod);
    return cp.on_enqueue(queue_bytes, kWholePeriod).quantized;
  }
  QcnCongestionParameters parameters;
  QcnCongestionPoint cp;
  QcnFeedback last;
};

QcnCongestionParameters exact() {
  QcnCongestionParameters p;
  p.jitter = 0;
  return p;
}

// A queue above the set point at which the feedback, without a change of the queue, just reaches `quantized`.
int64_t queue_for(const QcnCongestionParameters& p, int64_t quantized) {
  const int64_t range = 5 * p.cp_queue_set_point;  // w = 2
  return p.cp_queue_set_point + (quantized * range + 62) / 63;
}

}  // namespace

TEST_CASE("QCN congestion point: a trajectory by hand") {
  Queue queue(exact());  // Q_eq 26 KB, w 2: the range is 130 KB
  CHECK(queue.until_sample(30'000, 1'000) == 150);
  CHECK(queue.last.offset == 4'000);
  CHECK(queue.last.delta == 30'000);               // Q_old 0
  CHECK(queue.last.quantized == 31);               // (4000 + 2 x 30000) 63 / 130000 = 31.02
  CHECK(queue.until_sample(28'000, 1'000) == 38);  // 37.5 KB
  CHECK(queue.last.offset == 2'000);
  CHECK(queue.last.delta == -2'000);
  CHECK(queue.last.quantized == 0);  // F_b = -(2000 - 4000) > 0: it drains
  CHECK(queue.until_sample(30'000, 1'500) == 100);
  CHECK(queue.last.delta == 2'000);          // against the last sample, although that one sent nothing
  CHECK(queue.last.quantized == 3);          // (4000 + 2 x 2000) 63 / 130000 = 3.88
  CHECK(queue.until_sample(0, 64) == 2344);  // 150 KB / 64 B = 2343.75
  CHECK(queue.last.offset == -26'000);
  CHECK(queue.last.quantized == 0);
  CHECK(queue.until_sample(20'000, 1'000) == 150);
  CHECK(queue.last.quantized == 16);  // below the set point, but it grows: (-6000 + 40000) 63 / 130000 = 16.48
  CHECK(queue.cp.samples() == 5);
}

TEST_CASE("QCN congestion point: bytes beyond the end of a period are not carried over") {
  Queue queue(exact());
  queue.cp.on_enqueue(0, 200'000);
  CHECK(queue.until_sample(0, 1'000) == 150);
}

TEST_CASE("QCN congestion point: every step of the quantisation, and its clipping") {
  Queue queue(exact());
  const QcnCongestionParameters& p = queue.parameters;
  for (int64_t quantized = 1; quantized <= 63; ++quantized) {
    CAPTURE(quantized);
    CHECK(queue.steady(queue_for(p, quantized)) == quantized);
    CHECK(queue.steady(queue_for(p, quantized) - 1) == quantized - 1);
  }
  CHECK(queue.steady(p.cp_queue_set_point) == 0);
  CHECK(queue.steady(p.cp_queue_set_point + 1) == 0);
  CHECK(queue.steady(p.cp_queue_set_point + 2'063) == 0);  // 130000 / 63 = 2063.5
  CHECK(queue.steady(p.cp_queue_set_point + 2'064) == 1);
  CHECK(queue.steady(6 * p.cp_queue_set_point) == 63);
  CHECK(queue.steady(1'000'000'000'000) == 63);
  CHECK(queue.cp.on_enqueue(0, kWholePeriod).quantized == 0);
  CHECK(queue.cp.on_enqueue(1'000'000'000'000, kWholePeriod).quantized == 63);
}

TEST_CASE("QCN congestion point: equation (1) in whole numbers, for every weight") {
  Random random(3);
  for (int weight = -10; weight <= 10; ++weight) {
    CAPTURE(weight);
    QcnCongestionParameters p = exact();
    p.cp_weight = weight;
    p.cp_queue_set_point = 100 + static_cast<int64_t>(random.next() % 200'000);
    Queue queue(p);
    int64_t old = 0;
    const int64_t one = 1024;
    const int64_t w = int64_t{1} << (weight + 10);  // in units of 1 / one
    bool some = false;
    for (int i = 0; i < 20'000; ++i) {
      const auto now =
          static_cast<int64_t>(random.next() % 4) * p.cp_queue_set_point / 2 + static_cast<int64_t>(random.next() % 1'000);
      const QcnFeedback feedback = queue.cp.on_enqueue(now, kWholePeriod);
      const int64_t congestion = (now - p.cp_queue_set_point) * one + (now - old) * w;
      const int64_t range = (2 * w + one) * p.cp_queue_set_point;
      const int64_t expected = congestion <= 0 ? 0 : std::min<int64_t>(congestion * 63 / range, 63);
      REQUIRE(feedback.quantized == expected);
      REQUIRE(feedback.offset == now - p.cp_queue_set_point);
      REQUIRE(feedback.delta == now - old);
      some = some || (expected > 0 && expected < 63);
      old = now;
    }
    CHECK(some);
  }
}

TEST_CASE("QCN congestion point: table 1 for every feedback") {
  Queue queue(exact());
  for (int quantized = 0; quantized <= 63; ++quantized) {
    CAPTURE(quantized);
    const int64_t bytes = queue_for(queue.parameters, quantized);
    REQUIRE(queue.steady(bytes) == quantized);
    CHECK(queue.until_sample(bytes, 100) * 100u == kTable[static_cast<size_t>(quantized / 8)]);
  }
  QcnCongestionParameters p = exact();
  p.cp_sample_base = 30'000;  // a fifth
  Queue fifth(p);
  for (int quantized = 0; quantized <= 63; ++quantized) {
    const int64_t bytes = queue_for(p, quantized);
    REQUIRE(fifth.steady(bytes) == quantized);
    CHECK(fifth.until_sample(bytes, 20) * 20u == kTable[static_cast<size_t>(quantized / 8)] / 5);
  }
}

TEST_CASE("QCN congestion point: periods are uniform within 15% of table 1") {
  Queue queue({});
  constexpr int kSamples = 4'000;
  constexpr double kFrame = 20;
  for (int bin = 0; bin < 8; ++bin) {
    CAPTURE(bin);
    const double basic = kTable[static_cast<size_t>(bin)];
    const int64_t bytes = queue_for(queue.parameters, bin * 8);
    REQUIRE(queue.steady(bytes) == bin * 8);
    double sum = 0;
    double squares = 0;
    double least = 1e9;
    double most = 0;
    std::array<int, 10> deciles{};
    for (int i = 0; i < kSamples; ++i) {
      const double period =
          queue.until_sample(bytes, static_cast<uint32_t>(kFrame)) * kFrame - kFrame / 2;  // within half a frame
      const double factor = period / basic;
      sum += factor;
      squares += (factor - 1) * (factor - 1);
      least = std::min(least, factor);
      most = std::max(most, factor);
      ++deciles[static_cast<size_t>(std::clamp((factor - 0.85) / 0.03, 0.0, 9.999))];
    }
    const double rounding = kFrame / basic;
    CHECK(least >= 0.85 - rounding);
    CHECK(least < 0.852);
    CHECK(most < 1.15 + rounding);
    CHECK(most > 1.148);
    CHECK(std::abs(sum / kSamples - 1) < 5 * 0.3 / std::sqrt(12.0 * kSamples));
    CHECK(squares / kSamples == doctest::Approx(0.3 * 0.3 / 12).epsilon(0.06));
    for (const int count : deciles) CHECK(std::abs(count - kSamples / 10) < 5 * std::sqrt(kSamples * 0.1 * 0.9) + 20);
  }
}

TEST_CASE("QCN congestion point: the first period is jittered too, and the seed decides") {
  Queue first({}, 1);
  Queue again({}, 1);
  Queue other({}, 2);
  const int frames = first.until_sample(0, 10);
  CHECK(frames >= 12'750);
  CHECK(frames <= 17'250);
  CHECK(again.until_sample(0, 10) == frames);
  CHECK(other.until_sample(0, 10) != frames);
  Random random(7);
  for (int i = 0; i < 100'000; ++i) {
    const auto queue_bytes = static_cast<int64_t>(random.next() % 100'000);
    const auto bytes = static_cast<uint32_t>(64 + random.next() % 1'500);
    const QcnFeedback a = first.cp.on_enqueue(queue_bytes, bytes);
    const QcnFeedback b = again.cp.on_enqueue(queue_bytes, bytes);
    REQUIRE(a.quantized == b.quantized);
    REQUIRE(a.delta == b.delta);
  }
  CHECK(first.cp.samples() == again.cp.samples());
  CHECK(first.cp.samples() > 500);
}

TEST_CASE("QCN congestion point: refuses parameters outside their ranges") {
  const auto refused = [](auto change) {
    QcnCongestionParameters p;
    change(p);
    QcnCongestionPoint cp;
    try {
      cp.configure(&p, Random(1));
    } catch (const weir::NativeError& error) {
      return error.code == "INVALID_CONFIG";
    }
    return false;
  };
  CHECK_FALSE(refused([](QcnCongestionParameters&) {}));
  CHECK(refused([](QcnCongestionParameters& p) { p.cp_queue_set_point = 99; }));
  CHECK(refused([](QcnCongestionParameters& p) { p.cp_queue_set_point = int64_t{1} << 31; }));
  CHECK(refused([](QcnCongestionParameters& p) { p.cp_weight = 11; }));
  CHECK(refused([](QcnCongestionParameters& p) { p.cp_weight = -11; }));
  CHECK(refused([](QcnCongestionParameters& p) { p.cp_sample_base = 9'999; }));
  CHECK(refused([](QcnCongestionParameters& p) { p.jitter = 1; }));
  CHECK(refused([](QcnCongestionParameters& p) { p.jitter = std::nan(""); }));
}
