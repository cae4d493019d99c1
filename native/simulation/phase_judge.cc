#include "simulation/phase_judge.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace weir {
namespace {

// Stretches of a run that are simulated to be compared, and the part of all messages that each is; but so many at least, if that
// is not too large a part of a short run.
constexpr uint64_t kPlanned = 3;
constexpr uint64_t kStretchPart = 1'500;
constexpr uint64_t kLeastStretch = 32;
constexpr uint64_t kShortRunPart = 20;
// What distributions of parts are counted in.
constexpr double kMillionth = 1e-6;

// The end of the bucket that holds it, or the largest value.
double percentile(const Histogram& histogram, double quantile) {
  uint64_t seen = 0;
  for (int i = 0; i + 1 < Histogram::kBuckets; ++i) {
    seen += histogram.count_at(i);
    if (static_cast<double>(seen) < quantile * static_cast<double>(histogram.total())) continue;
    return static_cast<double>(std::min(histogram.max(), Histogram::lower_bound(i + 1)));
  }
  return static_cast<double>(histogram.max());
}

}  // namespace

PhaseJudge::PhaseJudge(uint64_t messages, double share) : messages_(messages), share_(share) {}

bool PhaseJudge::takes(uint64_t begun, bool known, double from_memory) {
  if (left_ == 0) {
    const bool due = planned_ < kPlanned && begun >= (planned_ + 1) * messages_ / (kPlanned + 1);
    const bool wanted = known && sampled_ < share_ * (sampled_ + from_memory);
    if (due) ++planned_;
    if (due || wanted) {
      left_ = std::max(messages_ / kStretchPart, std::min(kLeastStretch, messages_ / kShortRunPart + 1));
      ++stretches_;
    }
  }
  return left_ > 0;
}

void PhaseJudge::took(bool known, uint64_t bytes) {
  if (left_ > 0) --left_;
  if (known) sampled_ += static_cast<double>(bytes);
}

void PhaseJudge::Sum::add(double length, double difference) {
  lengths += length;
  differences += std::abs(difference);
  ++count;
}

void PhaseJudge::compare(Time length, Time foretold, bool contended) {
  const auto took = static_cast<double>(length), difference = static_cast<double>(foretold - length);
  phases_.add(took, difference);
  if (contended) contended_.add(took, difference);
  signed_ += difference;
  worst_ = std::max(worst_, std::abs(difference) / std::max(1.0, took));
}

void PhaseJudge::compare_message(Time took, Time foretold, uint64_t bytes) {
  const auto length = static_cast<double>(took), difference = static_cast<double>(foretold - took);
  completions_.add(length, difference);
  bytes_ += static_cast<double>(bytes);
  parts_.record(static_cast<uint64_t>(std::llround(std::abs(difference) / std::max(1.0, length) / kMillionth)));
}

void PhaseJudge::tell(LearnedReport& report) const {
  report.judged = phases_.count;
  report.judged_messages = completions_.count;
  report.judged_bytes = bytes_;
  report.share = share_;
  report.stretches = stretches_;
  report.error = phases_.mean();
  report.bias = phases_.lengths > 0 ? signed_ / phases_.lengths : 0;
  report.worst = worst_;
  report.judged_contended = contended_.count;
  report.contended_error = contended_.mean();
  report.message_error = completions_.mean();
  report.message_p99 = completions_.count > 0 ? kMillionth * percentile(parts_, 0.99) : 0;
}

}  // namespace weir
