#include "congestion/qcn_congestion_point.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir {
namespace {

// Table 1: bytes between samples by floor(quantized / 8), for a cp_sample_base of 150 KB.
constexpr std::array<double, 8> kPeriods = {150'000, 75'000, 50'000, 37'500, 30'000, 25'000, 21'500, 18'500};

constexpr double kLargestFeedback = 63;

}  // namespace

void QcnCongestionPoint::configure(const QcnCongestionParameters* shared, Random random) {
  check(*shared);
  parameters_ = shared;
  random_ = random;
  queue_old_ = 0;
  samples_ = 0;
  bytes_left_ = period(0);
}

QcnFeedback QcnCongestionPoint::sample(int64_t queue_bytes) {
  const QcnCongestionParameters& p = *parameters_;
  QcnFeedback feedback;
  feedback.offset = queue_bytes - p.cp_queue_set_point;
  feedback.delta = queue_bytes - queue_old_;
  // w is a power of two, so these are exact, and so is the step at which the quotient reaches a whole number.
  const double w = std::ldexp(1.0, p.cp_weight);
  const double congestion = static_cast<double>(feedback.offset) + w * static_cast<double>(feedback.delta);  // -F_b
  if (congestion > 0) {
    const double range = (2 * w + 1) * static_cast<double>(p.cp_queue_set_point);
    feedback.quantized = static_cast<uint8_t>(std::min(congestion * kLargestFeedback / range, kLargestFeedback));
  }
  queue_old_ = queue_bytes;
  ++samples_;
  bytes_left_ = period(feedback.quantized);
  return feedback;
}

int64_t QcnCongestionPoint::period(uint8_t quantized) {
  const double basic = kPeriods[quantized / 8] * parameters_->cp_sample_base / kPeriods[0];
  return static_cast<int64_t>(basic * (1 + parameters_->jitter * (2 * random_.uniform() - 1)));
}

}  // namespace weir
