#include "congestion/hpcc_sender.h"

#include "base/native_error.h"

namespace weir {
namespace {

// Bytes or ns in which nothing that wraps is believed any more.
constexpr double kFar = 0x1p31;

}  // namespace

void HpccSender::configure(const HpccParameters& shared, const FlowTerms& terms) {
  check(shared);
  require(terms.line_rate > 0, "hpcc", "the line rate must be above 0");
  parameters_ = &shared;
  line_rate_ = static_cast<double>(terms.line_rate);
  last_ = std::make_unique<Telemetry>();
  start(0, terms.line_rate);
}

void HpccSender::start(Time, Rate initial_rate) {
  const double rate = std::clamp(static_cast<double>(initial_rate), 1.0, line_rate_);
  reference_ = window_ = std::max(1.0, rate * static_cast<double>(parameters_->base_rtt) / 8e9);
  utilisation_ = 1;
  last_->hops = 0;
  heard_at_ = 0;
  acknowledged_ = updates_at_ = 0;
  packet_bytes_ = stage_ = 0;
}

// False: there is nothing to compare with.
bool HpccSender::measure(const Ack& ack) {
  const Telemetry& now = *ack.telemetry;
  const auto base_rtt = static_cast<double>(parameters_->base_rtt);
  const auto since = static_cast<double>(ack.arrived - heard_at_);
  if (now.hops == 0 || now.hops != last_->hops || since >= kFar) return false;
  double busiest = -1;
  double tau = 0;
  for (uint32_t i = 0; i < now.hops; ++i) {
    const TelemetryHop& hop = now.hop[i];
    const TelemetryHop& before = last_->hop[i];
    const auto rate = static_cast<double>(hop.rate);
    const double time = hop.time - before.time;
    const double bytes = hop.sent - before.sent;
    if (time == 0 || since * rate / 8e9 >= kFar) return false;
    const double queue = std::min(hop.queue, before.queue);
    const double used = queue * 8e9 / (rate * base_rtt) + std::min(1.0, bytes * 8e9 / (time * rate));
    if (used <= busiest) continue;
    busiest = used;
    tau = std::min(time, base_rtt);
  }
  utilisation_ = (1 - tau / base_rtt) * utilisation_ + tau / base_rtt * busiest;
  return true;
}

void HpccSender::on_ack(const Ack& ack) {
  const HpccParameters& p = *parameters_;
  acknowledged_ += ack.packets;
  if (ack.telemetry == nullptr || ack.packets == 0) return;
  const bool measured = measure(ack);
  *last_ = *ack.telemetry;
  heard_at_ = ack.arrived;
  const bool full = static_cast<int32_t>(acknowledged_ - updates_at_) > 0;
  if (measured) {
    const bool scales = utilisation_ >= p.eta || stage_ >= p.max_stage;
    const double next = reference_ * (scales ? p.eta / utilisation_ : 1) + static_cast<double>(p.additive_increase);
    window_ = std::clamp(next, 1.0, most());
    if (full) {
      stage_ = scales ? 0 : stage_ + 1;
      reference_ = window_;
    }
  }
  if (full) updates_at_ = acknowledged_ + ack.in_flight;
}

}  // namespace weir
