// The rules of rate increase that Mellanox's overview has in the place of QCN's, each by itself and together.
#include <doctest/doctest.h>

#include "base/native_error.h"
#include "congestion/dcqcn_reaction_point.h"

namespace {

using weir::DcqcnParameters;
using weir::DcqcnReactionPoint;
using weir::kMicrosecond;
using weir::kNever;
using weir::Rate;
using weir::Time;
using Stage = DcqcnReactionPoint::Stage;

constexpr Rate kLine = 40'000'000'000;
constexpr Time kUs = kMicrosecond;
constexpr uint32_t kByteReset = 10'000'000;

// State after two CNPs at time 0: R_T 20 Gb/s, R_C 10 Gb/s, both counters at their start.
struct Flow {
  explicit Flow(const DcqcnParameters& p) : parameters(p) {
    rp.configure(parameters, {.line_rate = kLine});
    rp.start(0, kLine);
    rp.on_cnp(0);
    rp.on_cnp(0);
  }
  DcqcnParameters parameters;
  DcqcnReactionPoint rp;
};

// Steps of 1 and 4 Gb/s; the timer 55 us, the byte counter 10 MB.
DcqcnParameters large_steps(uint32_t threshold) {
  DcqcnParameters p;
  p.rpg_threshold = threshold;
  p.rpg_ai_rate = 1'000'000'000;
  p.rpg_hai_rate = 4'000'000'000;
  return p;
}

}  // namespace

TEST_CASE("reaction point, increase_restarts_counters: time and bytes count since the previous increase") {
  DcqcnParameters p;
  SUBCASE("by default they do not") {
    Flow flow(p);
    flow.rp.on_sent(30 * kUs, kByteReset);  // BC = 1: (20 + 10) / 2
    CHECK(flow.rp.rate() == 15'000'000'000);
    CHECK(flow.rp.next_deadline() == 55 * kUs);
    flow.rp.on_sent(40 * kUs, 9'000'000);
    flow.rp.on_sent(56 * kUs, 1'000'000);  // T = 1: 17.5; BC = 2: 18.75
    CHECK(flow.rp.rate() == 18'750'000'000);
  }
  SUBCASE("each restarts the other") {
    p.increase_restarts_counters = true;
    Flow flow(p);
    auto& rp = flow.rp;
    rp.on_sent(30 * kUs, kByteReset);  // BC = 1: (20 + 10) / 2; the timer restarts
    CHECK(rp.rate() == 15'000'000'000);
    CHECK(rp.next_deadline() == 85 * kUs);
    rp.on_sent(40 * kUs, 9'000'000);
    rp.advance(85 * kUs - 1);
    CHECK(rp.rate() == 15'000'000'000);
    rp.advance(85 * kUs);  // T = 1: (20 + 15) / 2; the 9 MB are forgotten
    CHECK(rp.rate() == 17'500'000'000);
    CHECK(rp.next_deadline() == 140 * kUs);
    rp.on_sent(86 * kUs, kByteReset - 1);
    CHECK(rp.rate() == 17'500'000'000);
    rp.on_sent(87 * kUs, 1);  // BC = 2: (20 + 17.5) / 2
    CHECK(rp.rate() == 18'750'000'000);
    CHECK(rp.next_deadline() == 142 * kUs);
    rp.on_sent(88 * kUs, 14'000'000);  // BC = 3: (20 + 18.75) / 2; 4 MB were sent since
    CHECK(rp.rate() == 19'375'000'000);
    rp.on_sent(89 * kUs, 5'999'999);
    CHECK(rp.rate() == 19'375'000'000);
    rp.on_sent(90 * kUs, 1);  // BC = 4: (20 + 19.375) / 2
    CHECK(rp.rate() == 19'687'500'000);
    CHECK(rp.next_deadline() == 145 * kUs);
    rp.on_sent(91 * kUs, 9'000'000);
    rp.on_cnp(100 * kUs);  // a cut restarts both, as ever
    CHECK(rp.exact_target_rate() == 19'687'500'000);
    CHECK(rp.next_deadline() == 155 * kUs);
    const double cut = rp.exact_rate();
    rp.on_sent(101 * kUs, kByteReset - 1);
    CHECK(rp.exact_rate() == cut);
  }
  SUBCASE("a timer that is off stays off") {
    p.increase_restarts_counters = true;
    p.rpg_time_reset = 0;
    Flow flow(p);
    flow.rp.on_sent(1 * kUs, kByteReset);
    CHECK(flow.rp.rate() == 15'000'000'000);
    CHECK(flow.rp.next_deadline() == kNever);
  }
}

TEST_CASE("reaction point, stage_by_increases: F increases of either counter recover, the next F are additive, then hyper") {
  DcqcnParameters p = large_steps(2);
  p.stage_by_increases = true;
  SUBCASE("step i of hyper increase is the i-th of its phase") {
    Flow flow(p);
    auto& rp = flow.rp;
    rp.advance(55 * kUs);  // T = 1, the first: (20 + 10) / 2
    CHECK(rp.rate() == 15'000'000'000);
    rp.on_sent(60 * kUs, kByteReset);  // BC = 1, the second: (20 + 15) / 2
    CHECK(rp.rate() == 17'500'000'000);
    CHECK(rp.stage() == Stage::fast_recovery);
    rp.on_sent(61 * kUs, kByteReset);  // BC = 2, the third: R_T 21; (21 + 17.5) / 2. By counters it would recover.
    CHECK(rp.stage() == Stage::additive_increase);
    CHECK(rp.target_rate() == 21'000'000'000);
    CHECK(rp.rate() == 19'250'000'000);
    rp.advance(110 * kUs);  // T = 2, the fourth: R_T 22; (22 + 19.25) / 2
    CHECK(rp.stage() == Stage::additive_increase);
    CHECK(rp.rate() == 20'625'000'000);
    rp.advance(165 * kUs);  // T = 3, the fifth: R_T 22 + 1 x 4; (26 + 20.625) / 2. By counters it would be additive.
    CHECK(rp.stage() == Stage::hyper_increase);
    CHECK(rp.target_rate() == 26'000'000'000);
    CHECK(rp.exact_rate() == 23'312'500'000);
    rp.advance(220 * kUs);  // T = 4, the sixth: R_T 26 + 2 x 4; (34 + 23.3125) / 2
    CHECK(rp.target_rate() == 34'000'000'000);
    CHECK(rp.exact_rate() == 28'656'250'000);
    rp.on_cnp(221 * kUs);
    CHECK(rp.exact_target_rate() == 28'656'250'000);
    CHECK(rp.stage() == Stage::fast_recovery);
    const double cut = rp.exact_rate();
    rp.advance(276 * kUs);  // the first again
    CHECK(rp.exact_rate() == (28'656'250'000 + cut) / 2);
  }
  SUBCASE("one counter alone comes to hyper increase") {
    p.hyper_increase_scales = false;
    p.rpg_byte_reset = 0;
    Flow flow(p);
    flow.rp.advance(4 * 55 * kUs);  // 15, 17.5; R_T 21, 22: 19.25, 20.625
    CHECK(flow.rp.stage() == Stage::additive_increase);
    CHECK(flow.rp.rate() == 20'625'000'000);
    flow.rp.advance(6 * 55 * kUs);  // R_T 26, 30: 23.3125, 26.65625
    CHECK(flow.rp.stage() == Stage::hyper_increase);
    CHECK(flow.rp.target_rate() == 30'000'000'000);
    CHECK(flow.rp.exact_rate() == 26'656'250'000);
  }
  SUBCASE("a cut still asks which of the counters there were") {
    p.clamp_tgt_rate = false;
    Flow flow(p);
    CHECK(flow.rp.target_rate() == kLine);  // consecutive cuts
    flow.rp.on_cnp(60 * kUs);               // T = 1 alone does not clamp
    CHECK(flow.rp.target_rate() == kLine);
    flow.rp.on_sent(61 * kUs, kByteReset);
    const double before = flow.rp.exact_rate();
    flow.rp.on_cnp(62 * kUs);
    CHECK(flow.rp.exact_target_rate() == before);
  }
}

TEST_CASE("reaction point, increase_raises_rate: beyond fast recovery the current rate rises by a constant") {
  DcqcnParameters p = large_steps(1);
  p.increase_raises_rate = true;
  p.hyper_increase_scales = false;
  Flow flow(p);
  auto& rp = flow.rp;
  rp.advance(55 * kUs);  // T = 1: (20 + 10) / 2
  CHECK(rp.rate() == 15'000'000'000);
  rp.advance(110 * kUs);  // T = 2: + 1, and the target rate stays above
  CHECK(rp.rate() == 16'000'000'000);
  CHECK(rp.target_rate() == 20'000'000'000);
  rp.on_sent(111 * kUs, kByteReset);  // BC = 1: + 1
  CHECK(rp.rate() == 17'000'000'000);
  rp.on_sent(112 * kUs, kByteReset);  // BC = 2, T = 2: + 4, and the target rate follows
  CHECK(rp.stage() == Stage::hyper_increase);
  CHECK(rp.rate() == 21'000'000'000);
  CHECK(rp.target_rate() == 21'000'000'000);
  rp.advance(165 * kUs);  // T = 3: + 4
  CHECK(rp.rate() == 25'000'000'000);
  CHECK(rp.target_rate() == 25'000'000'000);
  rp.advance(3 * 55 * kUs + 3 * 55 * kUs);  // 29, 33, 37
  CHECK(rp.rate() == 37'000'000'000);
  CHECK(rp.limited());
  rp.advance(385 * kUs);  // 41 is beyond the line rate
  CHECK(rp.rate() == kLine);
  CHECK_FALSE(rp.limited());

  p.hyper_increase_scales = true;
  CHECK_THROWS_AS(rp.configure(p, {.line_rate = kLine}), weir::NativeError);
}

TEST_CASE("reaction point: the overview's three rules together, in slots") {
  DcqcnParameters p = large_steps(1);
  p.form = DcqcnParameters::Form::slotted;
  p.dce_tcp_rtt = 10 * kUs;
  p.rate_reduce_monitor_period = 40 * kUs;
  p.rpg_time_reset = 100 * kUs;
  p.g = 0.25;
  p.alpha_decays_at_line_rate = false;
  p.hyper_increase_scales = false;
  p.increase_restarts_counters = p.stage_by_increases = p.increase_raises_rate = true;
  DcqcnReactionPoint rp;
  rp.configure(p, {.line_rate = kLine});
  rp.start(0, kLine);
  rp.on_cnp(0);
  rp.advance(40 * kUs);  // alpha: 1, 0.75, 0.5625, 0.421875; 40G (1 - 0.2109375)
  CHECK(rp.exact_rate() == 31'562'500'000);
  CHECK(rp.target_rate() == kLine);
  rp.on_sent(90 * kUs, kByteReset);  // the first, by bytes: (40 + 31.5625) / 2
  CHECK(rp.exact_rate() == 35'781'250'000);
  CHECK(rp.next_deadline() == 190 * kUs);
  rp.on_sent(150 * kUs, kByteReset - 1);
  rp.advance(190 * kUs);  // the second, by time: + 1
  CHECK(rp.stage() == Stage::additive_increase);
  CHECK(rp.exact_rate() == 36'781'250'000);
  CHECK(rp.target_rate() == kLine);
  rp.on_sent(200 * kUs, 1);  // one byte since
  CHECK(rp.exact_rate() == 36'781'250'000);
  rp.on_cnp(285 * kUs);   // due at 320 us, which holds the release back
  rp.advance(290 * kUs);  // the third: + 4 would be beyond the line rate
  CHECK(rp.limited());
  CHECK(rp.exact_rate() == kLine);
  CHECK(rp.exact_target_rate() == kLine);
}
