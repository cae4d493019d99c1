#include "congestion/nscc_sender.h"

#include "base/native_error.h"

namespace weir {
namespace {

constexpr Time kLongAgo = -kNever / 2;
// Bits under way in the network that the increases are for.
constexpr double kReferenceBits = 100e9 * 12e-6;
// Delays above so many targets have quick adaptation at work.
constexpr double kFarAbove = 4;

}  // namespace

void NsccSender::configure(const NsccParameters& shared, const FlowTerms& terms) {
  check(shared);
  require(terms.line_rate > 0, "nscc", "the line rate must be above 0");
  require(terms.packet_bytes > 0, "nscc", "packets must have some bytes");
  parameters_ = &shared;
  line_ = static_cast<double>(terms.line_rate) / 1e9;
  packet_bytes_ = terms.packet_bytes;
  transport_window_ = terms.window;
  start(0, 0);
}

void NsccSender::start(Time, Rate) {
  grows_fast_ = adapts_next_ = false;
  average_delay_ = increase_ = 0;
  undelayed_ = unadjusted_ = came_ = ignores_ = ignored_ = 0;
  period_ends_ = kNever;
  adjusted_at_ = decreased_at_ = kLongAgo;
  base_ = parameters_->base_rtt;
  cwnd_ = most();
}

// a.
double NsccSender::scale() const { return line_ * static_cast<double>(parameters_->base_rtt) / kReferenceBits; }

void NsccSender::average(double delay, bool marked) {
  const double sample = !marked && delay > target() ? static_cast<double>(base_) / 4 : delay;
  average_delay_ += parameters_->delay_gain * (sample - average_delay_);
}

void NsccSender::increase(double packets, double delay) {
  const NsccParameters& p = *parameters_;
  const double aim = target();
  if (delay >= aim) {
    increase_ += p.fair_increase * scale() * packets;
    return;
  }
  const bool undelayed = delay < static_cast<double>(p.no_delay);
  undelayed_ = undelayed ? undelayed_ + static_cast<uint32_t>(packets) : 0;
  grows_fast_ = undelayed && (grows_fast_ || undelayed_ > cwnd_);
  if (grows_fast_) {
    cwnd_ += p.fast_increase * scale() * packets;
  } else {
    increase_ += p.alpha * scale() * packets * (aim - delay) / static_cast<double>(p.reference_rtt);
  }
}

void NsccSender::decrease(Time now) {
  const NsccParameters& p = *parameters_;
  grows_fast_ = false;
  undelayed_ = 0;
  if (average_delay_ <= target() || now - decreased_at_ <= base_) return;
  cwnd_ *= std::max(1 - p.gamma * (average_delay_ - target()) / average_delay_, 1 - p.max_decrease);
  decreased_at_ = now;
}

void NsccSender::adjust(Time now) {
  const NsccParameters& p = *parameters_;
  if (unadjusted_ <= p.adjust_packets && now - adjusted_at_ <= p.base_rtt) return;
  cwnd_ += increase_ / cwnd_;
  if (now - adjusted_at_ >= p.base_rtt) {
    cwnd_ += p.eta * scale();
    adjusted_at_ = now;
  }
  increase_ = 0;
  unadjusted_ = 0;
}

// True: quick adaptation is at work, and nothing else is to be made of what was heard.
bool NsccSender::adapts(Time now, uint32_t in_flight, bool lost, bool marked, double delay) {
  bool at_work = ignored_ < ignores_ && marked;
  if (!at_work && (period_ends_ == kNever || now > period_ends_)) {
    const bool wanted = adapts_next_ || lost || delay > kFarAbove * target();
    if (period_ends_ != kNever && wanted && came_ < most() / static_cast<double>(1u << parameters_->qa_gate)) {
      cwnd_ = std::max(1.0, static_cast<double>(came_));
      ignores_ = in_flight;
      ignored_ = 0;
      adapts_next_ = false;
      at_work = true;
    }
    came_ = 0;
    period_ends_ = now + base_ + static_cast<Time>(target());
  }
  if (at_work) {
    increase_ = 0;
    unadjusted_ = 0;
  }
  return at_work;
}

void NsccSender::on_ack(const Ack& ack) {
  came_ += ack.packets;
  unadjusted_ += ack.packets;
  ignored_ += ack.packets;
  double delay = average_delay_;
  if (ack.sent != kNever) {
    const Time rtt = std::max<Time>(1, ack.arrived - ack.sent);
    learn(rtt);
    delay = static_cast<double>(rtt - base_);
    average(delay, ack.marked);
  }
  if (adapts(ack.arrived, ack.in_flight, false, ack.marked, delay)) return;
  if (!ack.marked) {
    increase(ack.packets, delay);
  } else if (delay >= target()) {
    decrease(ack.arrived);
  }
  bound();
  adjust(ack.arrived);
  bound();
}

void NsccSender::give_up(Time now, uint32_t packets, uint32_t in_flight) {
  ignored_ += packets;
  average(static_cast<double>(parameters_->base_rtt), true);
  adapts_next_ = true;
  if (!adapts(now, in_flight, true, true, 0)) cwnd_ -= packets;
  bound();
}

void NsccSender::on_trimmed(const Trimmed& trimmed) {
  if (trimmed.sent != kNever) learn(std::max<Time>(1, trimmed.at - trimmed.sent));
  give_up(trimmed.at, trimmed.packets, trimmed.in_flight);
}

void NsccSender::on_loss(const Loss& loss) {
  if (!loss.timeout) return give_up(loss.at, 1, loss.in_flight);
  cwnd_ -= 1;
  bound();
}

}  // namespace weir
