#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/native_error.h"
#include "base/random.h"
#include "congestion/dcqcn_reaction_point.h"
#include "test/reaction_point_script.h"

namespace {

using weir::DcqcnParameters;
using weir::DcqcnReactionPoint;
using weir::kMicrosecond;
using weir::kNever;
using weir::kSecond;
using weir::Random;
using weir::Rate;
using weir::Time;
using weir::test::run_script;
using weir::test::ScriptReached;
using Stage = DcqcnReactionPoint::Stage;

constexpr Rate kLine = 40'000'000'000;
constexpr Time kUs = kMicrosecond;

// A reaction point that starts at line rate at time 0.
struct Flow {
  explicit Flow(const DcqcnParameters& p = {}, Rate initial = kLine) : parameters(p) {
    rp.configure(parameters, {.line_rate = kLine});
    rp.start(0, initial);
  }
  DcqcnParameters parameters;
  DcqcnReactionPoint rp;
};

DcqcnParameters slotted() {
  DcqcnParameters p;
  p.form = DcqcnParameters::Form::slotted;
  p.dce_tcp_rtt = 10 * kUs;
  p.rate_reduce_monitor_period = 40 * kUs;
  p.rpg_time_reset = 100 * kUs;
  p.rpg_byte_reset = 0;
  p.rpg_threshold = 1;
  p.rpg_ai_rate = 1'000'000'000;
  p.rpg_hai_rate = 4'000'000'000;
  p.hyper_increase_scales = false;
  p.g = 0.25;
  p.alpha_decays_at_line_rate = false;
  p.clamp_tgt_rate = false;
  p.clamp_tgt_rate_after_time_inc = true;
  return p;
}

}  // namespace

TEST_CASE("reaction point: unlimited until the first CNP, which cuts at once") {
  Flow flow;
  auto& rp = flow.rp;
  rp.on_sent(10 * kUs, 50'000'000);
  CHECK_FALSE(rp.limited());
  CHECK(rp.rate() == kLine);
  CHECK(rp.next_deadline() == kNever);
  rp.on_cnp(11 * kUs);
  CHECK(rp.limited());
  CHECK(rp.target_rate() == kLine);
  CHECK(rp.rate() == 20'000'000'000);  // 40G (1 - 1/2)
  CHECK(rp.alpha() == 1.0);            // (255/256) 1 + 1/256
  CHECK(rp.next_deadline() == 66 * kUs);
}

TEST_CASE("reaction point, paper form: two cuts, fast recovery x5, additive, hyper by both counters, cut with a decayed alpha") {
  Flow flow;
  auto& rp = flow.rp;
  rp.on_cnp(1 * kUs);   // R_T 40G, R_C 20G, alpha 1
  rp.on_cnp(51 * kUs);  // R_T 20G, R_C 10G, alpha 1; all timers restart: next at 106 us
  CHECK(rp.target_rate() == 20'000'000'000);
  CHECK(rp.rate() == 10'000'000'000);

  rp.advance(106 * kUs - 1);
  CHECK(rp.rate() == 10'000'000'000);
  CHECK(rp.alpha() == 1.0);
  rp.advance(106 * kUs);  // T = 1: (20 + 10) / 2; one alpha period without a CNP
  CHECK(rp.rate() == 15'000'000'000);
  CHECK(rp.alpha() == 255.0 / 256);
  rp.advance(161 * kUs);  // T = 2: (20 + 15) / 2
  CHECK(rp.rate() == 17'500'000'000);
  rp.advance(216 * kUs);  // T = 3: (20 + 17.5) / 2
  CHECK(rp.rate() == 18'750'000'000);
  rp.advance(271 * kUs);  // T = 4: (20 + 18.75) / 2
  CHECK(rp.rate() == 19'375'000'000);
  rp.advance(326 * kUs);  // T = 5 = F, the fifth iteration: (20 + 19.375) / 2
  CHECK(rp.rate() == 19'687'500'000);
  CHECK(rp.target_rate() == 20'000'000'000);
  CHECK(rp.stage() == Stage::fast_recovery);
  rp.advance(381 * kUs);  // T = 6: R_T 20.04; (20.04 + 19.6875) / 2
  CHECK(rp.target_rate() == 20'040'000'000);
  CHECK(rp.rate() == 19'863'750'000);
  CHECK(rp.stage() == Stage::additive_increase);

  rp.on_sent(382 * kUs, 9'999'999);  // one byte short
  CHECK(rp.rate() == 19'863'750'000);
  rp.on_sent(383 * kUs, 1);  // BC = 1, min(6, 1) <= 5: additive; R_T 20.08; (20.08 + 19.86375) / 2
  CHECK(rp.target_rate() == 20'080'000'000);
  CHECK(rp.rate() == 19'971'875'000);
  rp.on_sent(384 * kUs, 40'000'000);  // BC = 2..5: R_T 20.12, 20.16, 20.20, 20.24
  // R_C: (20.12 + 19.971875) / 2 = 20.0459375; (20.16 + 20.0459375) / 2 = 20.10296875;
  //      (20.20 + 20.10296875) / 2 = 20.151484375; (20.24 + 20.151484375) / 2 = 20.1957421875
  CHECK(rp.target_rate() == 20'240'000'000);
  CHECK(rp.exact_rate() == 20'195'742'187.5);
  CHECK(rp.stage() == Stage::additive_increase);
  rp.on_sent(385 * kUs, 10'000'000);  // BC = 6, T = 6: hyper, i = 6 - 5 = 1: R_T 20.44; (20.44 + 20.1957421875) / 2
  CHECK(rp.target_rate() == 20'440'000'000);
  CHECK(rp.exact_rate() == 20'317'871'093.75);
  CHECK(rp.stage() == Stage::hyper_increase);
  rp.on_sent(386 * kUs, 10'000'000);  // BC = 7, T = 6: i = 1: R_T 20.64; (20.64 + 20.31787109375) / 2
  CHECK(rp.target_rate() == 20'640'000'000);
  CHECK(rp.exact_rate() == 20'478'935'546.875);
  rp.advance(436 * kUs);  // T = 7, BC = 7: i = 2: R_T 21.04; (21.04 + 20.478935546875) / 2
  CHECK(rp.target_rate() == 21'040'000'000);
  CHECK(rp.exact_rate() == 20'759'467'773.4375);

  rp.on_sent(437 * kUs, 4'000'000);  // towards BC = 8
  rp.on_cnp(440 * kUs);              // alpha periods ended at 106, 161, ..., 436 us: 7 of them
  const double alpha = std::pow(255.0 / 256, 7);
  CHECK(rp.exact_target_rate() == 20'759'467'773.4375);
  CHECK(rp.exact_rate() == doctest::Approx(20'759'467'773.4375 * (1 - alpha / 2)).epsilon(1e-14));
  CHECK(rp.alpha() == doctest::Approx(alpha * 255 / 256 + 1.0 / 256).epsilon(1e-14));
  CHECK(rp.stage() == Stage::fast_recovery);
  CHECK(rp.next_deadline() == 495 * kUs);
  const double after_cut = rp.exact_rate();
  rp.on_sent(441 * kUs, 9'999'999);  // the byte counter restarted too
  CHECK(rp.exact_rate() == after_cut);
  CHECK(rp.stage() == Stage::fast_recovery);
  CHECK(rp.exact_target_rate() == 20'759'467'773.4375);
}

TEST_CASE("reaction point: constant hyper increase") {
  DcqcnParameters p;
  p.rpg_threshold = 1;
  p.hyper_increase_scales = false;
  Flow flow(p);
  auto& rp = flow.rp;
  rp.on_cnp(0);
  rp.on_cnp(0);               // R_T 20G, R_C 10G
  rp.on_sent(0, 30'000'000);  // BC = 1: 15G; BC = 2, 3: additive, R_T 20.04, 20.08
  CHECK(rp.target_rate() == 20'080'000'000);
  rp.advance(55 * kUs);   // T = 1: still additive, R_T 20.12
  rp.advance(110 * kUs);  // T = 2, BC = 3: hyper, R_T 20.32
  CHECK(rp.target_rate() == 20'320'000'000);
  rp.advance(165 * kUs);  // T = 3, BC = 3: hyper, still 200 Mb/s
  CHECK(rp.target_rate() == 20'520'000'000);
}

TEST_CASE("reaction point: released within 1/4096 of the line rate; without alpha there, it starts afresh") {
  DcqcnParameters p;
  p.alpha_decays_at_line_rate = false;
  Flow flow(p);
  auto& rp = flow.rp;
  rp.on_cnp(0);  // R_T 40G; after n expirations R_C = 40G (1 - 2^-(n+1)): 1 - 2^-12 at n = 11
  rp.advance(10 * 55 * kUs);
  CHECK(rp.limited());
  CHECK(rp.exact_rate() == 40e9 * (1 - 1.0 / 2048));
  CHECK(rp.alpha() < 1);
  rp.advance(11 * 55 * kUs);
  CHECK_FALSE(rp.limited());
  CHECK(rp.rate() == kLine);
  CHECK(rp.target_rate() == kLine);
  CHECK(rp.alpha() == 1.0);
  CHECK(rp.next_deadline() == kNever);
  rp.on_cnp(kSecond);
  CHECK(rp.rate() == kLine / 2);
  CHECK(rp.next_deadline() == kSecond + 55 * kUs);
}

TEST_CASE("reaction point: rpg_max_rate releases to line rate") {
  DcqcnParameters p;
  p.rpg_max_rate = 10'000'000'000;
  Flow flow(p);
  flow.rp.on_cnp(0);
  flow.rp.on_cnp(0);
  flow.rp.on_cnp(0);  // R_T 10G, R_C 5G; released at 10G - 40G / 4096 = 9.990G
  CHECK(flow.rp.rate() == 5'000'000'000);
  flow.rp.advance(5 * 55 * kUs);  // 10G - 156.25M
  CHECK(flow.rp.rate() == 9'843'750'000);
  flow.rp.advance(6 * 55 * kUs);  // R_T 10.04; (10.04 + 9.84375) / 2 = 9.941875
  CHECK(flow.rp.rate() == 9'941'875'000);
  flow.rp.advance(7 * 55 * kUs);  // R_T 10.08; 10.0109375 > 10
  CHECK_FALSE(flow.rp.limited());
  CHECK(flow.rp.rate() == kLine);
}

TEST_CASE("reaction point: a flow that starts below line rate is limited and increases after F expirations") {
  Flow flow({}, 4'000'000'000);
  auto& rp = flow.rp;
  CHECK(rp.limited());
  CHECK(rp.rate() == 4'000'000'000);
  rp.advance(275 * kUs);
  CHECK(rp.rate() == 4'000'000'000);
  CHECK(rp.alpha() == doctest::Approx(std::pow(255.0 / 256, 5)).epsilon(1e-14));
  rp.advance(330 * kUs);  // T = 6: R_T 4.04; (4.04 + 4) / 2
  CHECK(rp.rate() == 4'020'000'000);
  rp.start(400 * kUs, kLine);
  CHECK_FALSE(rp.limited());
  CHECK(rp.rate() == kLine);
  rp.start(400 * kUs, 0);
  CHECK(rp.rate() == 1'000'000);  // rpg_min_rate
}

TEST_CASE("reaction point: floors of a cut") {
  DcqcnParameters p;
  p.rpg_min_rate = 3'000'000'000;
  p.rpg_min_dec_fac = 0.8;
  Flow flow(p);
  flow.rp.on_cnp(0);
  CHECK(flow.rp.rate() == 32'000'000'000);  // not 20G: 0.8 of 40G
  for (int i = 0; i < 100; ++i) flow.rp.on_cnp(0);
  CHECK(flow.rp.rate() == 3'000'000'000);
  CHECK(flow.rp.target_rate() == 3'000'000'000);
}

TEST_CASE("reaction point: rpg_gd and rate_to_set_on_first_cnp") {
  DcqcnParameters p;
  p.rate_decrease_factor = 0.25;
  p.rate_to_set_on_first_cnp = 8'000'000'000;
  Flow flow(p);
  flow.rp.on_cnp(0);
  CHECK(flow.rp.target_rate() == 8'000'000'000);
  CHECK(flow.rp.rate() == 6'000'000'000);  // 8G (1 - 1/4)
  flow.rp.on_cnp(0);                       // only the first
  CHECK(flow.rp.rate() == 4'500'000'000);
}

TEST_CASE("reaction point: target rate without clamp_tgt_rate") {
  DcqcnParameters p;
  p.clamp_tgt_rate = false;
  SUBCASE("timer increases do not count by themselves") {
    Flow flow(p);
    flow.rp.on_cnp(0);
    flow.rp.on_cnp(0);  // consecutive cuts keep R_T
    CHECK(flow.rp.target_rate() == kLine);
    flow.rp.on_cnp(60 * kUs);  // T = 1
    CHECK(flow.rp.target_rate() == kLine);
    flow.rp.on_sent(61 * kUs, 10'000'000);  // BC = 1
    const double before = flow.rp.exact_rate();
    flow.rp.on_cnp(62 * kUs);
    CHECK(flow.rp.exact_target_rate() == before);
  }
  SUBCASE("with clamp_tgt_rate_after_time_inc they do") {
    p.clamp_tgt_rate_after_time_inc = true;
    Flow flow(p);
    flow.rp.on_cnp(0);  // R_C 20G
    flow.rp.on_cnp(0);  // R_C 10G
    CHECK(flow.rp.target_rate() == kLine);
    flow.rp.on_cnp(60 * kUs);  // T = 1 at 55 us: (40 + 10) / 2
    CHECK(flow.rp.target_rate() == 25'000'000'000);
  }
}

TEST_CASE("reaction point, slotted form: cuts at slot ends, alpha once per slot, boundaries") {
  Flow flow(slotted());
  auto& rp = flow.rp;
  rp.on_cnp(5 * kUs);  // slots start here: alpha ends at 15, 25, ...; reduce at 45, 85, 125, ...; rate timer at 105
  CHECK(rp.limited());
  CHECK(rp.rate() == kLine);
  CHECK(rp.next_deadline() == 45 * kUs);
  rp.advance(15 * kUs);  // 0.75 1 + 0.25
  CHECK(rp.alpha() == 1.0);
  rp.advance(35 * kUs);  // 0.75^2
  CHECK(rp.alpha() == 0.5625);
  rp.on_cnp(43 * kUs);
  rp.on_cnp(44 * kUs);  // counts once
  CHECK(rp.rate() == kLine);
  rp.advance(45 * kUs);  // alpha first: 0.75 0.5625 + 0.25 = 0.671875; then 40G (1 - 0.3359375)
  CHECK(rp.alpha() == 0.671875);
  CHECK(rp.rate() == 26'562'500'000);
  CHECK(rp.target_rate() == kLine);
  CHECK(rp.next_deadline() == 145 * kUs);  // the rate timer, restarted by the cut

  rp.on_cnp(85 * kUs);  // on the boundary: belongs to [85, 125) and, for alpha, to [85, 95)
  const double alpha_85 = 0.671875 * 0.75 * 0.75 * 0.75 * 0.75;
  CHECK(rp.alpha() == alpha_85);
  CHECK(rp.rate() == 26'562'500'000);
  CHECK(rp.next_deadline() == 125 * kUs);
  rp.advance(125 * kUs);
  const double alpha_125 = (alpha_85 * 0.75 + 0.25) * 0.75 * 0.75 * 0.75;
  CHECK(rp.alpha() == alpha_125);
  const double cut = 26'562'500'000 * (1 - alpha_125 * 0.5);
  CHECK(rp.exact_rate() == cut);
  CHECK(rp.target_rate() == kLine);  // no increase since the last cut
  rp.advance(225 * kUs);             // T = 1 = F: fast recovery
  CHECK(rp.exact_rate() == (40e9 + cut) / 2);
  CHECK(rp.next_deadline() == 325 * kUs);
  rp.on_cnp(230 * kUs);  // slot [205, 245)
  rp.advance(245 * kUs);
  CHECK(rp.exact_target_rate() == (40e9 + cut) / 2);  // T != 0: the target follows
}

TEST_CASE("reaction point, slotted form: where alpha decays at line rate, slots start with the flow and keep their phase") {
  DcqcnParameters p = slotted();
  p.alpha_decays_at_line_rate = true;
  Flow flow(p);
  auto& rp = flow.rp;
  rp.on_cnp(25 * kUs);  // alpha slots end at 10, 20, ...: two are over; reduce slots at 40, 80, ...
  CHECK(rp.alpha() == 0.5625);
  CHECK(rp.next_deadline() == 40 * kUs);
  rp.advance(40 * kUs);  // alpha at 30: 0.75 0.5625 + 0.25 = 0.671875, at 40: 0.50390625; 40G (1 - 0.251953125)
  CHECK(rp.alpha() == 0.50390625);
  CHECK(rp.rate() == 29'921'875'000);
  rp.advance(10'000 * kUs);
  CHECK_FALSE(rp.limited());
  CHECK(rp.alpha() == 0.0);
  rp.on_cnp(10'003 * kUs);
  rp.advance(10'010 * kUs);
  CHECK(rp.alpha() == 0.25);
  CHECK(rp.cut_at() == 10'040 * kUs);
}

TEST_CASE("reaction point, slotted form: a due cut holds the release back") {
  DcqcnParameters p = slotted();
  p.rpg_time_reset = 15 * kUs;
  Flow flow(p);
  flow.rp.on_cnp(0);
  flow.rp.advance(39 * kUs);  // two increases at line rate have passed
  CHECK(flow.rp.limited());
  flow.rp.advance(40 * kUs);  // alpha 1 at 10 us, then 0.75^3 = 0.421875 at 40 us: 40G (1 - 0.2109375)
  CHECK(flow.rp.rate() == 31'562'500'000);
}

TEST_CASE("reaction point: alpha goes to exactly 0 when idle, and slots keep their phase") {
  DcqcnParameters p = slotted();
  p.rpg_ai_rate = 0;
  p.clamp_tgt_rate = true;
  p.rpg_time_reset = 0;
  Flow flow(p);
  flow.rp.on_cnp(5 * kUs);
  flow.rp.advance(45 * kUs);
  flow.rp.advance(3600 * kSecond);
  CHECK(flow.rp.limited());
  CHECK(flow.rp.alpha() == 0.0);
  CHECK(flow.rp.next_deadline() == kNever);
  flow.rp.on_cnp(3600 * kSecond + 3 * kUs);
  CHECK(flow.rp.next_deadline() == 3600 * kSecond + 5 * kUs);  // 5 us + k 40 us
  flow.rp.advance(3600 * kSecond + 5 * kUs);
  CHECK(flow.rp.alpha() == 0.25);

  DcqcnParameters stuck;
  stuck.rpg_time_reset = 0;
  Flow paper(stuck, 4'000'000'000);
  paper.rp.advance(3600 * kSecond);
  CHECK(paper.rp.alpha() == 0.0);
  paper.rp.on_cnp(3600 * kSecond);  // no cut at alpha 0, then alpha = g
  CHECK(paper.rp.rate() == 4'000'000'000);
  CHECK(paper.rp.alpha() == 1.0 / 256);
  paper.rp.advance(3600 * kSecond + 55 * kUs);
  CHECK(paper.rp.alpha() == 255.0 / 65536);
}

TEST_CASE("reaction point: coarse and fine polling agree to the last bit; invariants hold") {
  ScriptReached reached;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto pick = [&](uint64_t n) { return random.next() % n; };
    DcqcnParameters p;
    if (pick(2) == 0) p.form = DcqcnParameters::Form::slotted;
    p.rpg_time_reset = static_cast<Time>(1 + pick(100'000));
    p.rpg_byte_reset = pick(4) == 0 ? 0 : 5'000 + pick(1'000'000);
    p.rpg_threshold = static_cast<uint32_t>(1 + pick(5));
    p.g = 1.0 / static_cast<double>(uint64_t{1} << pick(9));
    p.dce_tcp_rtt = static_cast<Time>(1 + pick(60'000));
    p.rate_reduce_monitor_period = static_cast<Time>(1 + pick(60'000));
    p.rpg_min_rate = static_cast<Rate>(pick(1'000'000'000));
    p.clamp_tgt_rate = pick(2) == 0;
    p.clamp_tgt_rate_after_time_inc = pick(2) == 0;
    p.hyper_increase_scales = pick(2) == 0;
    p.alpha_decays_at_line_rate = pick(2) == 0;
    p.increase_restarts_counters = pick(2) == 0;
    p.stage_by_increases = pick(2) == 0;
    p.increase_raises_rate = !p.hyper_increase_scales && pick(2) == 0;
    p.rpg_max_rate = pick(4) == 0 ? 20'000'000'000 : 0;
    Flow coarse(p, pick(2) == 0 ? kLine : kLine / 8);
    Flow fine(p, coarse.rp.rate());
    run_script(
        coarse.rp, fine.rp, kLine, p.rpg_min_rate, random, reached,
        [](DcqcnReactionPoint& rp, Time now, uint64_t) { rp.on_cnp(now); },
        [](const DcqcnReactionPoint& one, const DcqcnReactionPoint& other) {
          REQUIRE(one.alpha() == other.alpha());
          REQUIRE(one.alpha() >= 0);
          REQUIRE(one.alpha() <= 1);
        });
  }
  CHECK(reached.releases > 100);  // the scripts reach what they should
  CHECK(reached.hyper_increases > 100);
}

TEST_CASE("reaction point: scaled down 40 times it takes the same steps") {
  DcqcnParameters slow;
  slow.rpg_time_reset *= 40;
  slow.dce_tcp_rtt *= 40;
  slow.rpg_ai_rate /= 40;
  slow.rpg_hai_rate /= 40;
  slow.rpg_min_rate /= 40;
  DcqcnReactionPoint rp;
  rp.configure(slow, {.line_rate = kLine / 40});
  rp.start(0, kLine / 40);
  Flow full;
  for (Time t = 0; t < 3000 * kUs; t += 7 * kUs) {
    if (t % (49 * kUs) == 0 && t < 800 * kUs) {
      full.rp.on_cnp(t);
      rp.on_cnp(40 * t);
    }
    full.rp.on_sent(t, 30'000);
    rp.on_sent(40 * t, 30'000);
    REQUIRE(rp.exact_rate() * 40 == doctest::Approx(full.rp.exact_rate()).epsilon(1e-12));
    REQUIRE(rp.limited() == full.rp.limited());
  }
}

TEST_CASE("reaction point: refuses parameters that would hang or diverge") {
  const auto refused = [](auto change, Rate line) {
    DcqcnParameters p;
    change(p);
    DcqcnReactionPoint rp;
    try {
      rp.configure(p, {.line_rate = line});
    } catch (const weir::NativeError& error) {
      return error.code == "INVALID_CONFIG";
    }
    return false;
  };
  CHECK_FALSE(refused([](DcqcnParameters&) {}, kLine));
  CHECK(refused([](DcqcnParameters&) {}, 0));
  CHECK(refused([](DcqcnParameters& p) { p.g = 0; }, kLine));
  CHECK(refused([](DcqcnParameters& p) { p.g = std::nan(""); }, kLine));
  CHECK(refused([](DcqcnParameters& p) { p.dce_tcp_rtt = 0; }, kLine));
  CHECK(refused([](DcqcnParameters& p) { p.rpg_min_dec_fac = 1.5; }, kLine));
  CHECK(refused([](DcqcnParameters& p) { p.rpg_ai_rate = -1; }, kLine));
  const auto no_slot = [](DcqcnParameters& p) {
    p.form = DcqcnParameters::Form::slotted;
    p.rate_reduce_monitor_period = 0;
  };
  CHECK(refused(no_slot, kLine));
}
