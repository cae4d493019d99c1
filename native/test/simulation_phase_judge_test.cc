// Which messages of a graph are simulated although they are known, and what is told of how wrong memory was.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulation/phase_judge.h"

namespace weir::test {
namespace {

constexpr uint64_t kMessages = 2'000;
constexpr uint64_t kBytes = 1'000;

struct Ran {
  std::vector<uint64_t> simulated;  // which messages
  double share = 0;                 // of the bytes of those that were known
  double stretches = 0;
};

// So many messages, each a phase of its own; `known` says whether one is.
template <class Known>
Ran run(double share, Known known) {
  PhaseJudge judge(kMessages, share);
  Ran out;
  double from_memory = 0, compared = 0;
  for (uint64_t begun = 1; begun <= kMessages; ++begun) {
    if (judge.takes(begun, known(begun), from_memory + (known(begun) ? kBytes : 0))) {
      judge.took(known(begun), kBytes);
      out.simulated.push_back(begun);
      if (known(begun)) compared += kBytes;
    } else if (known(begun)) {
      from_memory += kBytes;
    }
  }
  out.share = compared / (compared + from_memory);
  LearnedReport report;
  judge.tell(report);
  out.stretches = report.stretches;
  return out;
}

constexpr auto kAlways = [](uint64_t) { return true; };

TEST_CASE("phase judge: three stretches in a run, spread over it, where no share is asked for") {
  const Ran ran = run(0, kAlways);
  CHECK(ran.stretches == 3);
  REQUIRE(ran.simulated.size() == 96);
  CHECK(ran.simulated[0] == 500);
  CHECK(ran.simulated[32] == 1'000);
  CHECK(ran.simulated[64] == 1'500);
}

TEST_CASE("phase judge: a share of what is known is simulated, and little more, in stretches all over the run") {
  for (const double share : {0.1, 0.25, 0.5}) {
    const Ran ran = run(share, kAlways);
    CHECK(ran.share >= share);
    CHECK(ran.share < share + 0.05);
    const auto first_half = std::ranges::count_if(ran.simulated, [](uint64_t message) { return message <= kMessages / 2; });
    CHECK(static_cast<double>(first_half) == doctest::Approx(0.5 * static_cast<double>(ran.simulated.size())).epsilon(0.2));
  }
  // Less than what there is anyway asks for one stretch at first, with nothing compared yet.
  CHECK(run(0.001, kAlways).stretches == 4);
}

TEST_CASE("phase judge: what is not known is not counted") {
  const Ran ran = run(0.25, [](uint64_t message) { return message % 2 == 0; });
  CHECK(ran.share >= 0.25);
  CHECK(ran.share < 0.3);
  // There is nothing to compare.
  CHECK(run(0.25, [](uint64_t) { return false; }).stretches == 3);
}

TEST_CASE("phase judge: errors of phases, and of completion times of their messages") {
  PhaseJudge judge(kMessages, 0.25);
  for (int i = 0; i < 99; ++i) judge.compare_message(1'000, 1'000, 10);
  judge.compare_message(1'000, 1'500, 10);
  judge.compare(1'000, 1'100, true);
  judge.compare(3'000, 2'900, false);
  LearnedReport report;
  judge.tell(report);
  CHECK(report.share == 0.25);
  CHECK(report.judged == 2);
  CHECK(report.judged_contended == 1);
  CHECK(report.judged_messages == 100);
  CHECK(report.judged_bytes == 1'000);
  CHECK(report.error == doctest::Approx(200.0 / 4'000));
  CHECK(report.bias == doctest::Approx(0));
  CHECK(report.worst == doctest::Approx(0.1));
  CHECK(report.contended_error == doctest::Approx(0.1));
  CHECK(report.message_error == doctest::Approx(500.0 / 100'000));
  CHECK(report.message_p99 == doctest::Approx(0).epsilon(1e-5));
  judge.compare_message(1'000, 1'500, 10);
  judge.tell(report);
  CHECK(report.message_p99 == doctest::Approx(0.5).epsilon(0.04));
}

}  // namespace
}  // namespace weir::test
