// Alpha of the DCQCN reaction point of a flow at line rate, by both readings: trajectories computed by hand from equations 1
// to 3.
#include <doctest/doctest.h>

#include <algorithm>

#include "congestion/dcqcn_reaction_point.h"

namespace {

using weir::DcqcnParameters;
using weir::DcqcnReactionPoint;
using weir::kMicrosecond;
using weir::kNever;
using weir::kSecond;
using weir::Rate;
using weir::Time;

constexpr Rate kLine = 40'000'000'000;
constexpr Time kUs = kMicrosecond;

// A reaction point that starts at line rate at time 0.
struct Flow {
  explicit Flow(const DcqcnParameters& p = {}) : parameters(p) {
    rp.configure(parameters, {.line_rate = kLine});
    rp.start(0, kLine);
  }
  DcqcnParameters parameters;
  DcqcnReactionPoint rp;
};

// The n-th value of equation (2) from `alpha` on, one multiplication for each K.
double decayed(double alpha, int periods, double g = 1.0 / 256) {
  for (int i = 0; i < periods; ++i) alpha = (1 - g) * alpha;
  return alpha;
}

}  // namespace

// g = 1/2 and K = 55 us keep all numbers exact. CNPs after 4 and after 40 periods.
TEST_CASE("reaction point: alpha decays at line rate from the start, and no release brings it back") {
  DcqcnParameters p;
  p.g = 0.5;
  Flow flow(p);
  auto& rp = flow.rp;
  rp.advance(4 * 55 * kUs - 1);
  CHECK(rp.alpha() == 0.125);  // periods ended at 55, 110, 165 us
  CHECK(rp.next_deadline() == kNever);
  rp.on_cnp(4 * 55 * kUs);  // the fourth ends first: alpha 1/16; R_C = 40G (1 - 1/32); then alpha = 1/32 + 1/2
  CHECK(rp.target_rate() == kLine);
  CHECK(rp.rate() == 38'750'000'000);
  CHECK(rp.alpha() == 0.53125);

  // The gap of 1.25G halves each 55 us, and is 40G / 4096 after the 7th: 220 + 385 = 605 us.
  rp.advance(604 * kUs);
  CHECK(rp.limited());
  CHECK(rp.alpha() == 0.53125 / 64);
  rp.advance(605 * kUs);
  CHECK_FALSE(rp.limited());
  CHECK(rp.alpha() == 0.53125 / 128);
  CHECK(rp.next_deadline() == kNever);
  rp.advance(660 * kUs);
  CHECK(rp.alpha() == 0.53125 / 256);

  rp.on_cnp(2200 * kUs);  // 220 + 36 x 55: alpha is 2^-36 of what it was, less than 1e-9, so 0: no cut
  CHECK(rp.limited());
  CHECK(rp.rate() == kLine);
  CHECK(rp.alpha() == 0.5);
  rp.on_cnp(2210 * kUs);  // no period in between: 40G (1 - 1/4)
  CHECK(rp.rate() == 30'000'000'000);
  CHECK(rp.alpha() == 0.75);
}

TEST_CASE("reaction point: the same CNPs where a flow at line rate has no alpha: each limiter starts with 1") {
  DcqcnParameters p;
  p.g = 0.5;
  p.alpha_decays_at_line_rate = false;
  Flow flow(p);
  auto& rp = flow.rp;
  rp.advance(4 * 55 * kUs - 1);
  CHECK(rp.alpha() == 1.0);
  rp.on_cnp(4 * 55 * kUs);
  CHECK(rp.rate() == 20'000'000'000);
  CHECK(rp.alpha() == 1.0);
  rp.advance(220 * kUs + 11 * 55 * kUs);  // the gap of 20G has halved 11 times
  CHECK_FALSE(rp.limited());
  CHECK(rp.alpha() == 1.0);
  rp.on_cnp(2200 * kUs);
  CHECK(rp.rate() == 20'000'000'000);
  rp.on_cnp(2210 * kUs);
  CHECK(rp.rate() == 10'000'000'000);
}

TEST_CASE(
    "reaction point: at line rate alpha is caught up to the bit of what each K would have made of it, and costs no deadline") {
  for (const int periods : {1, 5, 181, 909, 5000, 1'000'000}) {
    CAPTURE(periods);
    Flow rare, often;
    for (int i = 1; i <= std::min(periods, 10'000); ++i) {
      often.rp.on_sent(i * 55 * kUs, 1'106);
      REQUIRE(often.rp.next_deadline() == kNever);
    }
    const Time at = periods * 55 * kUs;
    often.rp.advance(at);
    rare.rp.advance(at);
    const double due = decayed(1, periods);
    CHECK(rare.rp.alpha() == (due < DcqcnReactionPoint::kAlphaEpsilon ? 0 : due));
    CHECK(often.rp.alpha() == rare.rp.alpha());
    rare.rp.on_cnp(at);
    CHECK(rare.rp.exact_rate() == 40e9 * (1 - (due < DcqcnReactionPoint::kAlphaEpsilon ? 0 : due) * 0.5));
  }
}

// Figure 13(a) of the paper turns on this: g = 1/16, and a sender that has had the link for itself.
TEST_CASE("reaction point: who has been alone for 50 ms is not cut by the CNPs that halve a newcomer") {
  DcqcnParameters p;
  p.g = 1.0 / 16;
  Flow first(p), second(p);
  second.rp.start(50'000 * kUs, kLine);
  for (int i = 0; i < 4; ++i) {
    first.rp.on_cnp((50'010 + 50 * i) * kUs);
    second.rp.on_cnp((50'010 + 50 * i) * kUs);
  }
  CHECK(second.rp.rate() == 2'500'000'000);
  // 909 periods leave less than 1e-9 of alpha, which is 0; n CNPs bring it to 1 - (15/16)^n: 1/16, 31/256, 721/4096.
  const double cuts = (1 - 1.0 / 32) * (1 - 31.0 / 512) * (1 - 721.0 / 8192);
  CHECK(first.rp.exact_rate() == doctest::Approx(40e9 * cuts).epsilon(1e-12));
}

TEST_CASE("reaction point: alpha starts with the flow, with its first CNP where it was never started, and anew with each start") {
  DcqcnParameters p;
  p.g = 0.5;
  DcqcnReactionPoint rp;
  rp.configure(p, {.line_rate = kLine});
  rp.advance(kSecond);
  CHECK(rp.alpha() == 1.0);
  rp.on_cnp(kSecond);
  CHECK(rp.rate() == kLine / 2);
  rp.advance(2 * kSecond);
  CHECK(rp.alpha() == 0.0);
  rp.start(2 * kSecond, kLine);
  CHECK(rp.alpha() == 1.0);
  rp.advance(2 * kSecond + 55 * kUs);
  CHECK(rp.alpha() == 0.5);
}

TEST_CASE("reaction point: switched over while it is not limited") {
  DcqcnParameters p;
  p.g = 0.5;
  p.alpha_decays_at_line_rate = false;
  Flow flow(p);
  auto& [parameters, rp] = flow;
  rp.advance(100 * kUs);
  CHECK(rp.alpha() == 1.0);
  parameters.alpha_decays_at_line_rate = true;  // as if it always had
  rp.advance(110 * kUs);
  CHECK(rp.alpha() == 0.25);
  parameters.alpha_decays_at_line_rate = false;
  CHECK(rp.alpha() == 1.0);
  rp.on_cnp(120 * kUs);
  CHECK(rp.rate() == kLine / 2);
}
