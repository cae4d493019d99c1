#include "congestion/timely_sender.h"

#include <algorithm>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr double kLeastLeft = 0.5;  // part of the rate left at least after one update

}  // namespace

void TimelySender::configure(const TimelyParameters& shared, const FlowTerms& terms) {
  check(shared);
  require(terms.line_rate > 0, "timely", "the line rate must be above 0");
  parameters_ = &shared;
  line_rate_ = static_cast<double>(terms.line_rate);
  start(0, terms.line_rate);
}

void TimelySender::start(Time now, Rate initial_rate) {
  rate_ = std::clamp(static_cast<double>(initial_rate), 1.0, line_rate_);
  rtt_diff_ = 0;
  previous_rtt_ = -1;
  updated_at_ = now;
  completed_ = 0;
  packet_bytes_ = 0;
  falling_ = 0;
}

void TimelySender::on_ack(const Ack& ack) {
  const TimelyParameters& p = *parameters_;
  completed_ += uint64_t{ack.packets} * packet_bytes_;
  if (ack.sent == kNever || completed_ < p.segment || ack.arrived - updated_at_ < p.min_rtt) return;
  completed_ = 0;
  updated_at_ = ack.arrived;
  const double rtt = std::max(0.0, static_cast<double>(ack.arrived - ack.sent) - packet_bytes_ * 8e9 / line_rate_);
  if (previous_rtt_ < 0) previous_rtt_ = rtt;
  rtt_diff_ = (1 - p.alpha) * rtt_diff_ + p.alpha * (rtt - previous_rtt_);
  previous_rtt_ = rtt;
  falling_ = rtt_diff_ < 0 ? falling_ + 1 : 0;
  const double least = std::min(std::max(static_cast<double>(p.min_rate), 1.0), line_rate_);
  rate_ = std::clamp(std::max(updated(rtt, gradient()), rate_ * kLeastLeft), least, line_rate_);
}

double TimelySender::updated(double rtt, double gradient) const {
  const TimelyParameters& p = *parameters_;
  const auto delta = static_cast<double>(p.delta);
  const auto t_low = static_cast<double>(p.t_low);
  const auto t_high = static_cast<double>(p.t_high);
  if (rtt < t_low) return rate_ + delta;
  if (rtt > t_high) return rate_ * (1 - p.beta * (1 - t_high / rtt));
  if (p.patched) {
    const double weight = std::clamp(2 * gradient + 0.5, 0.0, 1.0);
    return (1 - weight) * delta + rate_ * (1 - p.beta * weight * (rtt - t_low) / t_low);
  }
  if (gradient > 0) return rate_ * (1 - p.beta * gradient);
  return rate_ + (falling_ >= p.hai_threshold ? p.hai_step : 1) * delta;
}

}  // namespace weir
