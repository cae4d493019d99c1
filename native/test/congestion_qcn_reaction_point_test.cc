#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/native_error.h"
#include "base/random.h"
#include "congestion/qcn_reaction_point.h"
#include "test/reaction_point_script.h"

namespace {

using weir::kMillisecond;
using weir::kNever;
using weir::kSecond;
using weir::QcnParameters;
using weir::QcnReactionPoint;
using weir::Random;
using weir::Rate;
using weir::Time;
using weir::test::run_script;
using weir::test::ScriptReached;
using Stage = QcnReactionPoint::Stage;
using Variant = QcnParameters::Variant;

constexpr Rate kLine = 10'000'000'000;
constexpr Time kMs = kMillisecond;

QcnParameters exact() {
  QcnParameters p;
  p.jitter = 0;
  return p;
}

// The 1 Gb/s parameters of Shu et al. for QCN-T.
QcnParameters qcn_t() {
  QcnParameters p = exact();
  p.variant = Variant::timer;
  p.rpg_time_reset = 2'400'000;
  p.hyper_threshold = 31;  // 15 ms x 5 / 2.4 ms = 31.25
  p.rpg_ai_rate = 500'000;
  p.rpg_hai_rate = 5'000'000;
  return p;
}

// A reaction point that starts at line rate at time 0.
struct Flow {
  explicit Flow(const QcnParameters& p = exact(), Rate initial = kLine, Rate line = kLine, uint64_t seed = 1) : parameters(p) {
    rp.configure(parameters, {.line_rate = line, .random = Random(seed)});
    rp.start(0, initial);
  }
  void send(Time now, uint32_t bytes, int times) {
    for (int i = 0; i < times; ++i) rp.on_sent(now, bytes);
  }
  QcnParameters parameters;
  QcnReactionPoint rp;
};

}  // namespace

TEST_CASE("QCN reaction point: off until the first CNM, which cuts at once") {
  Flow flow;
  auto& rp = flow.rp;
  rp.on_sent(kMs, 50'000'000);
  CHECK_FALSE(rp.limited());
  CHECK(rp.rate() == kLine);
  CHECK(rp.next_deadline() == kNever);
  rp.on_cnm(2 * kMs, 0);
  CHECK_FALSE(rp.limited());
  rp.on_cnm(2 * kMs, 32);
  CHECK(rp.limited());
  CHECK(rp.target_rate() == kLine);   // the rate before the cut
  CHECK(rp.rate() == 7'500'000'000);  // 10G (1 - 32/128)
  CHECK(rp.stage() == Stage::fast_recovery);
  CHECK(rp.next_deadline() == 17 * kMs);
}

TEST_CASE("QCN reaction point: two cuts, five cycles of fast recovery, additive, hyper, by both counters") {
  constexpr double kAfterT7 = 8'968'011'016.845703125;
  Flow flow;
  auto& rp = flow.rp;
  rp.on_cnm(1 * kMs, 32);        // TR 10G, CR 7.5G
  rp.on_sent(2 * kMs, 150'000);  // BC = 1: 8.75G
  CHECK(rp.rate() == 8'750'000'000);
  rp.on_cnm(3 * kMs, 32);  // TR 8.75G, CR 8.75G x 3/4
  CHECK(rp.target_rate() == 8'750'000'000);
  CHECK(rp.rate() == 6'562'500'000);
  CHECK(rp.next_deadline() == 18 * kMs);

  rp.on_sent(4 * kMs, 149'999);  // one byte short
  CHECK(rp.rate() == 6'562'500'000);
  rp.on_sent(4 * kMs, 1);  // BC = 1: (8.75 + 6.5625) / 2
  CHECK(rp.rate() == 7'656'250'000);
  rp.on_sent(5 * kMs, 200'000);  // BC = 2; what is beyond is not carried over
  CHECK(rp.rate() == 8'203'125'000);
  rp.advance(18 * kMs - 1);
  CHECK(rp.rate() == 8'203'125'000);
  rp.advance(18 * kMs);  // T = 1
  CHECK(rp.rate() == 8'476'562'500);
  CHECK(rp.next_deadline() == 33 * kMs);
  rp.on_sent(19 * kMs, 149'999);
  CHECK(rp.rate() == 8'476'562'500);
  rp.on_sent(19 * kMs, 1);  // BC = 3
  CHECK(rp.rate() == 8'613'281'250);
  flow.send(20 * kMs, 150'000, 2);  // BC = 4: 8681.640625M; BC = 5, the fifth cycle, still recovers
  CHECK(rp.exact_rate() == 8'715'820'312.5);
  CHECK(rp.target_rate() == 8'750'000'000);
  CHECK(rp.stage() == Stage::additive_increase);  // from now on

  rp.on_sent(21 * kMs, 74'999);  // cycles are half as long from here
  CHECK(rp.exact_rate() == 8'715'820'312.5);
  rp.on_sent(21 * kMs, 1);  // BC = 6, T = 1: additive; TR 8.755G; (8.755 + 8.7158203125) / 2
  CHECK(rp.target_rate() == 8'755'000'000);
  CHECK(rp.exact_rate() == 8'735'410'156.25);
  CHECK(rp.stage() == Stage::additive_increase);
  rp.advance(33 * kMs);  // T = 2: TR 8.760G
  CHECK(rp.exact_rate() == 8'747'705'078.125);
  rp.advance(78 * kMs);  // T = 3, 4, 5: TR 8.765, 8.770, 8.775; CR 8.7563525390625, 8.76317626953125, ...
  CHECK(rp.target_rate() == 8'775'000'000);
  CHECK(rp.exact_rate() == 8'769'088'134.765625);
  CHECK(rp.stage() == Stage::hyper_increase);  // both have completed five cycles
  CHECK(rp.next_deadline() == 85'500'000);     // the sixth is half as long
  rp.advance(85'500'000);                      // T = 6, i = 1: TR 8.825G
  CHECK(rp.target_rate() == 8'825'000'000);
  CHECK(rp.exact_rate() == 8'797'044'067.3828125);
  rp.on_sent(86 * kMs, 75'000);  // BC = 7, i = 2: TR 8.925G
  rp.advance(93 * kMs);          // T = 7, i = 3: TR 9.075G
  CHECK(rp.target_rate() == 9'075'000'000);
  CHECK(rp.exact_rate() == kAfterT7);

  rp.on_sent(93 * kMs, 50'000);
  rp.on_cnm(94 * kMs, 16);  // x 7/8
  CHECK(rp.exact_target_rate() == kAfterT7);
  CHECK(rp.exact_rate() == kAfterT7 * 0.875);
  CHECK(rp.stage() == Stage::fast_recovery);
  CHECK(rp.next_deadline() == 109 * kMs);
  rp.on_sent(95 * kMs, 149'999);  // the byte counter restarted too, in full length
  CHECK(rp.exact_rate() == kAfterT7 * 0.875);
  rp.advance(109 * kMs + 5 * 15 * kMs + 7'500'000);  // T = 7, BC = 0: the count of hyper increases has begun anew
  rp.on_sent(200 * kMs, 1);                          // BC = 1
  const double target = rp.exact_target_rate();
  flow.send(200 * kMs, 150'000, 4);  // BC = 5: additive
  CHECK(rp.exact_target_rate() == target + 4 * 5e6);
  rp.on_sent(200 * kMs, 75'000);  // BC = 6, T = 7: i = 1
  CHECK(rp.exact_target_rate() == target + 4 * 5e6 + 50e6);
}

TEST_CASE("QCN reaction point: once five cycles of one counter have completed, what completes next increases") {
  Flow flow;
  auto& rp = flow.rp;
  rp.on_cnm(0, 32);                // TR 10G, CR 7.5G
  flow.send(kMs, 150'000, 1);      // 8.75G
  rp.on_cnm(2 * kMs, 32);          // TR 8.75G, CR 6.5625G; the timer ends at 17 ms
  flow.send(3 * kMs, 150'000, 5);  // BC = 5: CR 8.75G - 2.1875G / 32 = 8.681640625G
  CHECK(rp.target_rate() == 8'750'000'000);
  CHECK(rp.exact_rate() == 8'681'640'625);
  CHECK(rp.stage() == Stage::additive_increase);
  rp.advance(17 * kMs);  // T = 1: TR 8.755G, (8.755 + 8.681640625) / 2
  CHECK(rp.target_rate() == 8'755'000'000);
  CHECK(rp.exact_rate() == 8'718'320'312.5);

  // The other way round, and hyper increase: T = 5 at 77 ms, then BC = 6.
  rp.advance(77 * kMs);
  CHECK(rp.target_rate() == 8'775'000'000);
  CHECK(rp.stage() == Stage::hyper_increase);
  flow.send(78 * kMs, 75'000, 1);
  CHECK(rp.target_rate() == 8'825'000'000);

  Flow timed;
  timed.rp.on_cnm(0, 32);
  timed.rp.advance(75 * kMs);  // T = 5: 10G - 2.5G / 32
  CHECK(timed.rp.rate() == 9'921'875'000);
  CHECK(timed.rp.stage() == Stage::additive_increase);
  timed.send(76 * kMs, 150'000, 1);  // BC = 1: TR is the line rate already
  CHECK(timed.rp.rate() == 9'960'937'500);
  timed.send(76 * kMs, 150'000, 3);
  CHECK(timed.rp.stage() == Stage::additive_increase);
}

TEST_CASE("QCN reaction point: extra fast recovery") {
  Flow flow;
  auto& rp = flow.rp;
  rp.on_cnm(0, 32);  // TR 10G, CR 7.5G
  rp.on_sent(kMs, 100'000);
  rp.on_cnm(2 * kMs, 32);  // consecutive: TR and byte counter stay, the timer restarts
  CHECK(rp.target_rate() == kLine);
  CHECK(rp.rate() == 5'625'000'000);
  CHECK(rp.next_deadline() == 17 * kMs);
  rp.on_sent(3 * kMs, 49'999);
  CHECK(rp.rate() == 5'625'000'000);
  rp.on_sent(3 * kMs, 1);  // 150 KB since the first cut
  CHECK(rp.rate() == 7'812'500'000);
  rp.on_cnm(4 * kMs, 32);  // the rate increased meanwhile
  CHECK(rp.target_rate() == 7'812'500'000);
  rp.on_sent(5 * kMs, 149'999);
  CHECK(rp.stage() == Stage::fast_recovery);
  rp.advance(19 * kMs);  // T = 1
  const double before = rp.exact_rate();
  rp.on_cnm(20 * kMs, 32);  // an increase by the timer counts as well
  CHECK(rp.exact_target_rate() == before);
  const double cut = rp.exact_rate();
  rp.on_sent(20 * kMs, 1);  // and restarts the byte counter
  CHECK(rp.exact_rate() == cut);
}

TEST_CASE("QCN reaction point: target rate reduction after the first cycle") {
  for (const bool by_timer : {false, true}) {
    CAPTURE(by_timer);
    Flow flow;
    auto& rp = flow.rp;
    for (int i = 0; i < 5; ++i) rp.on_cnm(0, 63);  // x (65/128)^5 = 0.0338
    const double low = rp.exact_rate();
    CHECK(low == doctest::Approx(10e9 * std::pow(65.0 / 128, 5)));
    CHECK(rp.target_rate() == kLine);
    by_timer ? rp.advance(15 * kMs) : rp.on_sent(kMs, 150'000);
    CHECK(rp.target_rate() == 1'250'000'000);
    CHECK(rp.exact_rate() == (1.25e9 + low) / 2);
    by_timer ? rp.on_sent(15 * kMs, 150'000) : rp.advance(15 * kMs);
    CHECK(rp.target_rate() == 1'250'000'000);
  }
  QcnParameters p = exact();
  p.rpg_min_rate = kLine / 10;
  Flow flow(p);
  for (int i = 0; i < 9; ++i) flow.rp.on_cnm(0, 63);
  flow.rp.advance(15 * kMs);  // TR is 10 CR, not more
  CHECK(flow.rp.target_rate() == kLine);
}

TEST_CASE("QCN reaction point: a cut takes at most half, and CR stays at or above the minimum rate") {
  Flow flow;
  for (int quantized = 1; quantized <= 63; ++quantized) {
    flow.rp.start(0, kLine);
    flow.rp.on_cnm(0, static_cast<uint8_t>(quantized));
    CHECK(flow.rp.exact_rate() == 10e9 * (128 - quantized) / 128);
  }
  CHECK(flow.rp.exact_rate() == 5'078'125'000);  // 63 is the most
  for (int i = 0; i < 50; ++i) flow.rp.on_cnm(0, 63);
  CHECK(flow.rp.rate() == 5'000'000);
  CHECK(flow.rp.target_rate() == kLine);

  QcnParameters steep = exact();
  steep.gd = 1.0 / 16;
  Flow half(steep);
  half.rp.on_cnm(0, 4);
  CHECK(half.rp.rate() == 7'500'000'000);
  half.rp.on_cnm(0, 63);  // 63/16 would be more than all of it
  CHECK(half.rp.rate() == 3'750'000'000);
  steep.rpg_min_dec_fac = 0.9;
  Flow gentle(steep);
  gentle.rp.on_cnm(0, 63);
  CHECK(gentle.rp.rate() == 9'000'000'000);
}

TEST_CASE("QCN reaction point: released within 1/4096 of the line rate, and starts afresh") {
  Flow flow;
  auto& rp = flow.rp;
  rp.on_cnm(0, 63);  // 4.92G below the line rate; a 2048th of that after 11 increases, 2.4M
  flow.send(kMs, 150'000, 10);
  CHECK(rp.limited());
  CHECK(rp.target_rate() == kLine);  // never more
  rp.on_sent(kMs, 150'000);
  CHECK_FALSE(rp.limited());
  CHECK(rp.rate() == kLine);
  CHECK(rp.target_rate() == kLine);
  CHECK(rp.next_deadline() == kNever);
  CHECK(rp.stage() == Stage::fast_recovery);
  rp.on_sent(kMs, 100'000);
  rp.on_cnm(kSecond, 32);
  CHECK(rp.rate() == 7'500'000'000);
  CHECK(rp.next_deadline() == kSecond + 15 * kMs);
  rp.on_sent(kSecond, 149'999);
  CHECK(rp.rate() == 7'500'000'000);
}

TEST_CASE("QCN reaction point: rpg_max_rate releases to line rate") {
  QcnParameters p = exact();
  p.rpg_max_rate = 2'000'000'000;
  Flow flow(p, 1'900'000'000);
  flow.send(0, 150'000, 5);
  CHECK(flow.rp.rate() == 1'900'000'000);
  flow.send(0, 75'000, 20);  // TR 2.0G, CR near 1.995G
  CHECK(flow.rp.limited());
  CHECK(flow.rp.target_rate() == 2'000'000'000);
  flow.send(0, 75'000, 1);  // 2.0G - 10G / 4096 = 1.99756G
  CHECK_FALSE(flow.rp.limited());
  CHECK(flow.rp.rate() == kLine);
}

TEST_CASE("QCN reaction point: a flow that starts below line rate is limited and increases after F cycles") {
  Flow flow(exact(), 1'000'000'000);
  auto& rp = flow.rp;
  CHECK(rp.limited());
  CHECK(rp.next_deadline() == 15 * kMs);
  rp.advance(75 * kMs);
  CHECK(rp.rate() == 1'000'000'000);
  rp.advance(82'500'000);  // TR 1.005G
  CHECK(rp.exact_rate() == 1'002'500'000);
  rp.start(kSecond, kLine);
  CHECK_FALSE(rp.limited());
  rp.start(kSecond, 0);
  CHECK(rp.rate() == 5'000'000);  // rpg_min_rate
}

TEST_CASE("QCN reaction point, timer: QCN-T") {
  constexpr Rate kGigabit = 1'000'000'000;
  Flow flow(qcn_t(), kGigabit / 2, kGigabit);
  auto& rp = flow.rp;
  flow.send(0, 150'000, 100);  // there is no byte counter
  CHECK(rp.rate() == 500'000'000);
  CHECK(rp.stage() == Stage::fast_recovery);
  rp.advance(5 * 2'400'000);
  CHECK(rp.rate() == 500'000'000);
  CHECK(rp.next_deadline() == 13'200'000);
  rp.advance(13'200'000);  // T = 6
  CHECK(rp.target_rate() == 500'500'000);
  CHECK(rp.rate() == 500'250'000);
  CHECK(rp.stage() == Stage::additive_increase);
  rp.advance(43'200'000 - 1);
  CHECK(rp.stage() == Stage::additive_increase);
  rp.advance(43'200'000);  // T = 31: 5 cycles of 2.4 ms, 26 of 1.2
  CHECK(rp.target_rate() == 513'000'000);
  CHECK(rp.stage() == Stage::hyper_increase);
  const double before = rp.exact_rate();
  rp.advance(44'400'000);  // T = 32: i = 1
  CHECK(rp.target_rate() == 518'000'000);
  CHECK(rp.exact_rate() == (518e6 + before) / 2);
  rp.advance(12'000'000 + 29 * 1'200'000);  // i = 2, 3
  CHECK(rp.target_rate() == 543'000'000);
  const double current = rp.exact_rate();
  rp.on_cnm(50 * kMs, 1);
  CHECK(rp.exact_target_rate() > current);  // one more, at 48 ms: the rate before this cut
  CHECK(rp.exact_rate() == rp.exact_target_rate() * 127 / 128);
  CHECK(rp.next_deadline() == 52'400'000);
  rp.on_cnm(51 * kMs, 1);  // consecutive
  CHECK(rp.exact_rate() == doctest::Approx(rp.exact_target_rate() * 127 / 128 * 127 / 128));
}

TEST_CASE("QCN reaction point, aimd: additive increase each full cycle of the byte counter") {
  QcnParameters p = exact();
  p.variant = Variant::aimd;
  Flow flow(p);
  auto& rp = flow.rp;
  rp.on_cnm(0, 32);
  CHECK(rp.rate() == 7'500'000'000);
  CHECK(rp.target_rate() == kLine);
  CHECK(rp.next_deadline() == kNever);
  CHECK(rp.stage() == Stage::additive_increase);
  for (int i = 1; i <= 20; ++i) {
    rp.on_sent(i * kMs, 149'999);
    CHECK(rp.rate() == 7'500'000'000 + (i - 1) * 5'000'000);
    rp.on_sent(i * kMs, 1);
    CHECK(rp.rate() == 7'500'000'000 + i * 5'000'000);
    CHECK(rp.target_rate() == rp.rate());
  }
  rp.advance(kSecond);
  CHECK(rp.rate() == 7'600'000'000);
  flow.send(kSecond, 150'000, 479);
  CHECK(rp.rate() == 9'995'000'000);
  CHECK(rp.limited());
  flow.send(kSecond, 150'000, 1);
  CHECK_FALSE(rp.limited());
}

TEST_CASE("QCN reaction point: counters that are off") {
  QcnParameters p = exact();
  p.rpg_time_reset = 0;
  Flow bytes(p);
  bytes.rp.on_cnm(0, 32);
  CHECK(bytes.rp.next_deadline() == kNever);
  bytes.rp.advance(3'600 * kSecond);
  CHECK(bytes.rp.rate() == 7'500'000'000);
  bytes.rp.on_sent(3'600 * kSecond, 150'000);
  CHECK(bytes.rp.rate() == 8'750'000'000);
  p = exact();
  p.rpg_byte_reset = 0;
  Flow timed(p);
  timed.rp.on_cnm(0, 32);
  timed.send(0, 1'000'000, 10);
  CHECK(timed.rp.rate() == 7'500'000'000);
  timed.rp.advance(15 * kMs);
  CHECK(timed.rp.rate() == 8'750'000'000);
}

// Additive increases add 5M for each 75 KB, so rates grow as e^(8.3 t / s) from the fifth cycle on: 1G e^0.575 after 75 ms.
TEST_CASE("QCN reaction point: hyper increase begins after five cycles of the timer, and takes the rest in milliseconds") {
  Flow flow(exact(), 1'000'000'000);
  double bytes = 0;  // bytes that the rate has allowed and that were not sent yet
  Time first = 0;
  Time now = 0;
  for (; flow.rp.limited(); now += 1'000) {
    const auto whole = static_cast<uint32_t>(bytes);
    flow.rp.on_sent(now, whole);
    if (first == 0 && flow.rp.stage() == Stage::hyper_increase) {
      first = now;
      CHECK(now == 75 * kMs);
      CHECK(static_cast<double>(flow.rp.rate()) == doctest::Approx(1e9 * std::exp(0.575)).epsilon(0.02));
    }
    bytes += flow.rp.exact_rate() / 8e6 - whole;
  }
  CHECK(now - first < 5 * kMs);
}

TEST_CASE("QCN reaction point: coarse and fine polling agree to the last bit; invariants hold") {
  ScriptReached reached;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto pick = [&](uint64_t n) { return random.next() % n; };
    QcnParameters p;
    p.variant = std::array{Variant::qcn, Variant::timer, Variant::aimd}[pick(3)];
    p.rpg_time_reset = static_cast<Time>(pick(8) == 0 ? 0 : 1 + pick(100'000));
    p.rpg_byte_reset = pick(4) == 0 ? 0 : 5'000 + pick(300'000);
    p.rpg_threshold = static_cast<uint32_t>(pick(6));
    p.hyper_threshold = static_cast<uint32_t>(pick(10));
    p.rpg_hai_rate = static_cast<Rate>(pick(200'000'000));
    p.rpg_ai_rate = static_cast<Rate>(pick(20'000'000));
    p.rpg_min_rate = static_cast<Rate>(pick(200'000'000));
    p.rpg_max_rate = pick(4) == 0 ? kLine / 2 : 0;
    p.jitter = pick(4) == 0 ? 0 : random.uniform();
    const Rate initial = pick(2) == 0 ? kLine : kLine / 8;
    Flow coarse(p, initial, kLine, seed);
    Flow fine(p, initial, kLine, seed);
    run_script(
        coarse.rp, fine.rp, kLine, p.rpg_min_rate, random, reached,
        [](QcnReactionPoint& rp, Time now, uint64_t draw) { rp.on_cnm(now, static_cast<uint8_t>(draw % 64)); },
        [](const QcnReactionPoint&, const QcnReactionPoint&) {});
  }
  CHECK(reached.releases > 100);  // the scripts reach what they should
  CHECK(reached.hyper_increases > 100);
}

TEST_CASE("QCN reaction point: scaled down 40 times it takes the same steps") {
  QcnParameters slow;
  slow.rpg_time_reset *= 40;
  slow.rpg_ai_rate /= 40;
  slow.rpg_hai_rate /= 40;
  slow.rpg_min_rate /= 40;
  Flow scaled(slow, kLine / 40, kLine / 40);
  Flow full(QcnParameters{});
  Random random(4);
  for (Time t = 0; t < kSecond; t += 20'000) {
    if (t < kSecond / 2 && random.next() % 2'000 == 0) {
      const auto quantized = static_cast<uint8_t>(random.next() % 64);
      full.rp.on_cnm(t, quantized);
      scaled.rp.on_cnm(40 * t, quantized);
    }
    const auto bytes = static_cast<uint32_t>(random.next() % 3'000);
    full.rp.on_sent(t, bytes);
    scaled.rp.on_sent(40 * t, bytes);
    REQUIRE(scaled.rp.exact_rate() * 40 == doctest::Approx(full.rp.exact_rate()).epsilon(1e-12));
    REQUIRE(scaled.rp.limited() == full.rp.limited());
  }
  CHECK_FALSE(full.rp.limited());
}

TEST_CASE("QCN reaction point: refuses parameters outside their ranges") {
  const auto refused = [](auto change, Rate line) {
    QcnParameters p;
    change(p);
    QcnReactionPoint rp;
    try {
      rp.configure(p, {.line_rate = line, .random = Random(1)});
    } catch (const weir::NativeError& error) {
      return error.code == "INVALID_CONFIG";
    }
    return false;
  };
  CHECK_FALSE(refused([](QcnParameters&) {}, kLine));
  CHECK(refused([](QcnParameters&) {}, 0));
  CHECK(refused([](QcnParameters& p) { p.gd = 2; }, kLine));
  CHECK(refused([](QcnParameters& p) { p.gd = std::nan(""); }, kLine));
  CHECK(refused([](QcnParameters& p) { p.rpg_time_reset = -1; }, kLine));
  CHECK(refused([](QcnParameters& p) { p.rpg_byte_reset = (uint64_t{1} << 31) + 1; }, kLine));
  CHECK(refused([](QcnParameters& p) { p.rpg_min_dec_fac = 1.5; }, kLine));
  CHECK(refused([](QcnParameters& p) { p.rpg_ai_rate = -1; }, kLine));
  CHECK(refused([](QcnParameters& p) { p.jitter = 1; }, kLine));
}
