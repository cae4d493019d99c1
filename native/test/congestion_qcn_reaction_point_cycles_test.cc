// The lengths of the cycles that a QCN reaction point draws.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "congestion/qcn_reaction_point.h"

namespace {

using weir::QcnParameters;
using weir::QcnReactionPoint;
using weir::Random;
using weir::Rate;
using weir::Time;

constexpr Rate kLine = 10'000'000'000;

struct Flow {
  explicit Flow(const QcnParameters& p, uint64_t seed = 1) : parameters(p) {
    rp.configure(parameters, {.line_rate = kLine, .random = Random(seed)});
    rp.start(0, kLine);
  }
  QcnParameters parameters;
  QcnReactionPoint rp;
};

// Checks factors that should be uniform in [0.85, 1.15), measured with an error of up to `rounding`.
void check_uniform(const std::vector<double>& factors, double rounding) {
  const auto n = static_cast<double>(factors.size());
  double sum = 0;
  double squares = 0;
  double products = 0;
  std::array<int, 10> deciles{};
  for (size_t i = 0; i < factors.size(); ++i) {
    sum += factors[i];
    squares += (factors[i] - 1) * (factors[i] - 1);
    if (i > 0) products += (factors[i] - 1) * (factors[i - 1] - 1);
    ++deciles[static_cast<size_t>(std::clamp((factors[i] - 0.85) / 0.03, 0.0, 9.999))];
  }
  const double variance = 0.3 * 0.3 / 12;
  const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
  CHECK(*least >= 0.85 - rounding);
  CHECK(*most <= 1.15 + rounding);
  CHECK(*least < 0.852 + rounding);
  CHECK(*most > 1.148 - rounding);
  CHECK(std::abs(sum / n - 1) < 5 * std::sqrt(variance / n) + rounding);
  CHECK(squares / n == doctest::Approx(variance).epsilon(0.06));
  CHECK(std::abs(products / n) < 5 * variance / std::sqrt(n));  // a draw of its own for each
  for (const int count : deciles) CHECK(std::abs(count - n / 10) < 5 * std::sqrt(n * 0.09) + n * rounding / 0.3);
}

}  // namespace

TEST_CASE("QCN reaction point: cycles of the timer are uniform within 15%, halved after the fifth") {
  Flow flow(QcnParameters{});
  std::vector<double> full;
  std::vector<double> half;
  Time now = 0;
  for (int cut = 0; cut < 1'000; ++cut) {
    flow.rp.on_cnm(now, 63);
    for (int i = 0; i < 10 && flow.rp.limited(); ++i) {
      const Time at = flow.rp.next_deadline();
      (i < 5 ? full : half).push_back(static_cast<double>(at - now) / (i < 5 ? 15e6 : 7.5e6));
      now = at;
      flow.rp.advance(now);
    }
  }
  CHECK(full.size() == 5'000);
  check_uniform(full, 1e-6);
  check_uniform(half, 1e-6);
}

TEST_CASE("QCN reaction point: cycles of the byte counter are uniform within 15%, halved after the fifth") {
  QcnParameters p;
  p.rpg_byte_reset = 2'000;
  Flow flow(p);
  std::vector<double> full;
  std::vector<double> half;
  for (int cut = 0; cut < 500; ++cut) {
    flow.rp.on_cnm(0, 63);
    for (int i = 0; i < 10 && flow.rp.limited(); ++i) {
      const double before = flow.rp.exact_rate();
      double bytes = 0;
      for (; flow.rp.exact_rate() == before; ++bytes) flow.rp.on_sent(0, 1);
      (i < 5 ? full : half).push_back((bytes + 0.5) / (i < 5 ? 2'000 : 1'000));
    }
  }
  CHECK(full.size() == 2'500);
  check_uniform(full, 1e-3);
  check_uniform(half, 1e-3);
}

TEST_CASE("QCN reaction point: the seed decides the cycles") {
  Flow first({}, 1);
  Flow again({}, 1);
  Flow other({}, 2);
  for (Flow* flow : {&first, &again, &other}) flow->rp.on_cnm(0, 10);
  CHECK(first.rp.next_deadline() == again.rp.next_deadline());
  CHECK(first.rp.next_deadline() != other.rp.next_deadline());
}

TEST_CASE("QCN reaction point: cycles after fast recovery last ai_cycle of those in it") {
  QcnParameters p;
  p.jitter = 0;
  Time timer = 0;
  uint32_t bytes = 0;
  SUBCASE("a quarter") {
    p.ai_cycle = 0.25;
    timer = 3'750'000;
    bytes = 37'500;
  }
  SUBCASE("half, by default") {
    timer = 7'500'000;
    bytes = 75'000;
  }
  SUBCASE("all") {
    p.ai_cycle = 1;
    timer = 15'000'000;
    bytes = 150'000;
  }
  Flow flow(p);
  flow.rp.start(0, 1'000'000'000);
  for (int i = 0; i < 5; ++i) flow.rp.on_sent(0, 150'000);
  CHECK(flow.rp.rate() == 1'000'000'000);
  flow.rp.on_sent(0, bytes - 1);
  CHECK(flow.rp.rate() == 1'000'000'000);
  flow.rp.on_sent(0, 1);  // the first beyond fast recovery: TR 1.005 G, CR half the way
  CHECK(flow.rp.rate() == 1'002'500'000);
  flow.rp.advance(75'000'000);  // cycles of the timer are full ones until five of them are over
  CHECK(flow.rp.next_deadline() == 75'000'000 + timer);
}
