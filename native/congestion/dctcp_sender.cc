#include "congestion/dctcp_sender.h"

#include <algorithm>
#include <cmath>

namespace weir {

void DctcpSender::configure(const DctcpParameters& shared, const FlowTerms& terms) {
  check(shared);
  parameters_ = &shared;
  most_ = terms.window;
  start(0, 0);
}

void DctcpSender::start(Time, Rate) {
  const DctcpParameters& p = *parameters_;
  g_ = std::ldexp(1.0, -p.shift_g);
  min_window_ = std::min<double>(p.min_window, most_);
  cwnd_ = std::min<double>(p.initial_window, most_);
  ssthresh_ = std::numeric_limits<double>::infinity();
  alpha_ = p.alpha_on_init;
  acknowledged_ = window_until_ = cut_until_ = loss_until_ = 0;
  window_packets_ = window_echoes_ = 0;
}

void DctcpSender::on_ack(const Ack& ack) {
  acknowledged_ += ack.packets;
  window_packets_ += ack.packets;
  if (ack.marked) window_echoes_ += ack.packets;
  if (acknowledged_ >= window_until_) {
    const double marked = static_cast<double>(window_echoes_) / static_cast<double>(window_packets_);
    alpha_ = (1 - g_) * alpha_ + g_ * marked;
    window_packets_ = window_echoes_ = 0;
    window_until_ = acknowledged_ + ack.in_flight;
  }
  if (!ack.marked) {
    if (ack.wanted >= window()) grow(ack.packets);
  } else if (!cut_before()) {
    shrink(cwnd_ * (1 - alpha_ / 2), ack.in_flight);
  }
}

void DctcpSender::grow(double packets) {
  const double slow = std::clamp(ssthresh_ - cwnd_, 0.0, packets);
  cwnd_ += slow;
  cwnd_ = std::min(cwnd_ + (packets - slow) / cwnd_, most_);
}

void DctcpSender::shrink(double to, uint32_t in_flight) {
  cwnd_ = ssthresh_ = std::max(to, min_window_);
  cut_until_ = acknowledged_ + in_flight + 1;
}

// A loss among packets that were sent before the last loss says nothing new, unless the timer ends.
void DctcpSender::on_loss(const Loss& loss) {
  if (!loss.timeout && acknowledged_ < loss_until_) return;
  const bool sent_again = acknowledged_ + 1 < loss_until_;
  const double ssthresh = ssthresh_;
  shrink(cwnd_ / 2, loss.in_flight);
  loss_until_ = cut_until_;
  if (!loss.timeout) return;
  if (sent_again) ssthresh_ = ssthresh;
  cwnd_ = 1;
}

}  // namespace weir
