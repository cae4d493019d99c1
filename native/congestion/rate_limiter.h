// Base of DCQCN's and QCN's reaction points: a current rate and a target rate, between a floor and the line rate, and
// how a limiter starts and lets go. A limiter is either off (the line rate is all there is) or limited.
//
// Release: when an increase brings the current rate to within 1/4096 of rpg_max_rate (or of the line rate), the limiter is off.
// The current rate closes half the distance each time and would never arrive. Hardware arrives because its rates have a
// granularity (DCQCN's counts Mb/s); here the resolution is relative to the line rate, because rates may be scaled down on the
// wire and a scaled run must release after the same number of steps.
#pragma once

#include <algorithm>

#include "base/describe.h"
#include "base/native_error.h"
#include "congestion/congestion_control.h"

namespace weir {

// `P`: parameters, among them rpg_max_rate, rpg_min_rate and rpg_min_dec_fac.
template <class P>
class RateLimiter : public CongestionControl {
 public:
  using Parameters = P;
  using Stage = IncreaseStage;
  static constexpr double kReleaseResolution = 1.0 / 4096;

  // The current rate in bit/s, rounded down; the line rate when off.
  Rate rate() const { return static_cast<Rate>(current_rate_); }
  // The target rate in bit/s, rounded down.
  Rate target_rate() const { return static_cast<Rate>(target_rate_); }
  bool limited() const { return limited_; }
  // Full precision, for comparison.
  double exact_rate() const { return current_rate_; }
  double exact_target_rate() const { return target_rate_; }

 protected:
  // The limiter is then off.
  void configure(const P& shared, const FlowTerms& terms, const char* whose) {
    check(shared);
    require(terms.line_rate > 0, whose, "the line rate must be above 0");
    parameters_ = &shared;
    line_rate_ = static_cast<double>(terms.line_rate);
    let_go();
  }
  // The rate at which the limiter lets go.
  double release_rate() const {
    const double maximum = static_cast<double>(parameters_->rpg_max_rate);
    return (maximum > 0 ? std::min(maximum, line_rate_) : line_rate_) - line_rate_ * kReleaseResolution;
  }
  void hold(double initial_rate) {
    limited_ = true;
    current_rate_ = target_rate_ = std::clamp(initial_rate, floor_rate(), line_rate_);
  }
  void let_go() {
    limited_ = false;
    current_rate_ = target_rate_ = line_rate_;
  }
  // Takes `part` off the current rate.
  void lower(double part) {
    const double least = std::max(parameters_->rpg_min_dec_fac * current_rate_, floor_rate());
    current_rate_ = std::max(current_rate_ * (1 - part), least);
  }

  const P* parameters_ = nullptr;
  double line_rate_ = 0;
  double current_rate_ = 0;
  double target_rate_ = 0;
  bool limited_ = false;

 private:
  double floor_rate() const { return std::min(std::max(static_cast<double>(parameters_->rpg_min_rate), 1.0), line_rate_); }
};

}  // namespace weir
