#include "congestion/dctcp_sender.h"

#include <algorithm>
#include <cmath>

namespace weir {

DctcpSender::DctcpSender(const DctcpParameters& parameters, uint32_t most)
    : g_(std::ldexp(1.0, -parameters.shift_g)),
      min_window_(std::min(parameters.min_window, most)),
      most_(most),
      cwnd_(std::min(parameters.initial_window, most)),
      alpha_(parameters.alpha_on_init) {}

void DctcpSender::on_ack(const Acknowledgement& ack) {
  if (ack.packets == 0) return;
  acknowledged_ += ack.packets;
  window_packets_ += ack.packets;
  if (ack.echo) window_echoes_ += ack.packets;
  if (acknowledged_ >= window_until_) {
    const double marked = static_cast<double>(window_echoes_) / static_cast<double>(window_packets_);
    alpha_ = (1 - g_) * alpha_ + g_ * marked;
    window_packets_ = window_echoes_ = 0;
    window_until_ = acknowledged_ + ack.in_flight;
  }
  if (!ack.echo) {
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

// What was sent before a loss says nothing that is not known.
void DctcpSender::on_loss(uint32_t in_flight) {
  if (acknowledged_ < loss_until_) return;
  shrink(cwnd_ / 2, in_flight);
  loss_until_ = cut_until_;
}

void DctcpSender::on_timeout(uint32_t in_flight) {
  const bool sent_again = acknowledged_ + 1 < loss_until_;
  const double ssthresh = ssthresh_;
  shrink(cwnd_ / 2, in_flight);
  if (sent_again) ssthresh_ = ssthresh;
  cwnd_ = 1;
  loss_until_ = cut_until_;
}

}  // namespace weir
