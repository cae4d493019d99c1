#include "congestion/swift_sender.h"

#include <cmath>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr Time kNotDecreased = -kNever / 2;

}  // namespace

void SwiftSender::configure(const SwiftParameters& shared, const FlowTerms& terms) {
  check(shared);
  require(terms.line_rate > 0, "swift", "the line rate must be above 0");
  parameters_ = &shared;
  line_rate_ = static_cast<double>(terms.line_rate);
  most_ = terms.window;
  start(0, 0);
}

void SwiftSender::start(Time, Rate) {
  const SwiftParameters& p = *parameters_;
  fs_alpha_ = static_cast<double>(p.fs_range) / (1 / std::sqrt(p.fs_min_cwnd) - 1 / std::sqrt(p.fs_max_cwnd));
  fs_beta_ = -fs_alpha_ / std::sqrt(p.fs_max_cwnd);
  rtt_ = 0;
  decreased_at_ = kNotDecreased;
  packet_bytes_ = timeouts_ = 0;
  cwnd_ = std::min(std::clamp(p.initial_window, p.min_cwnd, p.max_cwnd), most_);
}

double SwiftSender::target(double cwnd) const {
  const SwiftParameters& p = *parameters_;
  const double scaling = std::clamp(fs_alpha_ / std::sqrt(cwnd) + fs_beta_, 0.0, static_cast<double>(p.fs_range));
  return static_cast<double>(p.base_target) + static_cast<double>(p.hop_scaling) * p.hops + scaling;
}

void SwiftSender::set(Time now, double cwnd) {
  const SwiftParameters& p = *parameters_;
  const double next = std::min(std::clamp(cwnd, p.min_cwnd, p.max_cwnd), most_);
  if (next < cwnd_) decreased_at_ = now;
  cwnd_ = next;
}

void SwiftSender::on_ack(const Ack& ack) {
  const SwiftParameters& p = *parameters_;
  timeouts_ = 0;
  if (ack.sent == kNever) return;
  rtt_ = std::max<Time>(1, ack.arrived - ack.sent);
  const auto delay = static_cast<double>(rtt_);
  const double aim = target(cwnd_);
  if (delay < aim) {
    set(ack.arrived, cwnd_ + p.ai * ack.packets / std::max(cwnd_, 1.0));
  } else if (may_decrease(ack.arrived)) {
    set(ack.arrived, cwnd_ * std::max(1 - p.beta * (delay - aim) / delay, 1 - p.max_mdf));
  }
}

void SwiftSender::on_loss(const Loss& loss) {
  const SwiftParameters& p = *parameters_;
  timeouts_ = loss.timeout ? timeouts_ + 1 : 0;
  if (loss.timeout && timeouts_ >= p.retx_reset_threshold) {
    set(loss.at, p.min_cwnd);
  } else if (may_decrease(loss.at)) {
    set(loss.at, cwnd_ * (1 - p.max_mdf));
  }
}

Rate SwiftSender::rate() const {
  return static_cast<Rate>(std::min(packet_bytes_ * 8e9 * cwnd_ / static_cast<double>(rtt_), line_rate_));
}

}  // namespace weir
