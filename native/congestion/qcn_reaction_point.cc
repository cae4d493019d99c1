#include "congestion/qcn_reaction_point.h"

#include <algorithm>

namespace weir {
namespace {

using Variant = QcnParameters::Variant;

static_assert(sizeof(QcnReactionPoint) <= 64);

bool uses_timer(const QcnParameters& p) { return p.variant != Variant::aimd && p.rpg_time_reset > 0; }
bool uses_byte_counter(const QcnParameters& p) { return p.variant != Variant::timer && p.rpg_byte_reset > 0; }

}  // namespace

void QcnReactionPoint::configure(const QcnParameters& shared, const FlowTerms& terms) {
  RateLimiter::configure(shared, terms, "QCN reaction point");
  random_ = terms.random;
  release();
}

void QcnReactionPoint::start(Time now, Rate initial_rate) {
  release();
  const double initial = static_cast<double>(initial_rate);
  if (initial >= release_rate()) return;
  start_limiter(initial);
  start_timer(now);
}

void QcnReactionPoint::on_cnm(Time now, uint8_t quantized_feedback) {
  advance(now);
  if (quantized_feedback == 0) return;
  const QcnParameters& p = *parameters_;
  if (!limited_) start_limiter(line_rate_);
  const bool increased = timer_cycles_ != 0 || byte_cycles_ != 0;
  timer_cycles_ = byte_cycles_ = 0;
  hyper_increases_ = 0;
  if (increased) {
    target_rate_ = current_rate_;
    start_byte_counter();
  }
  lower(p.gd * quantized_feedback);
  start_timer(now);
}

void QcnReactionPoint::on_sent(Time now, uint32_t wire_bytes) {
  advance(now);
  if (!limited_ || !uses_byte_counter(*parameters_)) return;
  if (wire_bytes < bytes_left_) {
    bytes_left_ -= wire_bytes;
    return;
  }
  const Stage in = stage();
  ++byte_cycles_;
  start_byte_counter();
  increase(in);
}

void QcnReactionPoint::advance(Time now) {
  while (timer_at_ <= now && limited_) {
    const Time at = timer_at_;
    const Stage in = stage();
    ++timer_cycles_;
    start_timer(at);
    increase(in);
  }
}

QcnReactionPoint::Stage QcnReactionPoint::stage() const {
  const QcnParameters& p = *parameters_;
  if (p.variant == Variant::aimd) return Stage::additive_increase;
  if (std::max(timer_cycles_, byte_cycles_) < p.rpg_threshold) return Stage::fast_recovery;
  const bool bytes_agree = p.variant == Variant::timer || byte_cycles_ >= p.rpg_threshold;
  return timer_cycles_ >= timer_threshold() && bytes_agree ? Stage::hyper_increase : Stage::additive_increase;
}

// H.
uint32_t QcnReactionPoint::timer_threshold() const { return std::max(parameters_->rpg_threshold, parameters_->hyper_threshold); }

// Starts all but the timer, which a cut would start once more.
void QcnReactionPoint::start_limiter(double initial_rate) {
  hold(initial_rate);
  start_byte_counter();
}

void QcnReactionPoint::release() {
  let_go();
  timer_at_ = kNever;
  bytes_left_ = 0;
  timer_cycles_ = byte_cycles_ = 0;
  hyper_increases_ = 0;
}

void QcnReactionPoint::start_timer(Time now) {
  const QcnParameters& p = *parameters_;
  timer_at_ = uses_timer(p) ? now + cycle(static_cast<double>(p.rpg_time_reset), timer_cycles_) : kNever;
}

void QcnReactionPoint::start_byte_counter() {
  const QcnParameters& p = *parameters_;
  if (uses_byte_counter(p)) bytes_left_ = static_cast<uint32_t>(cycle(static_cast<double>(p.rpg_byte_reset), byte_cycles_));
}

// The length of a counter's next cycle, in its unit.
int64_t QcnReactionPoint::cycle(double full, uint32_t completed) {
  const QcnParameters& p = *parameters_;
  const bool shorter = p.variant != Variant::aimd && completed >= p.rpg_threshold;
  const double jittered = (shorter ? full * p.ai_cycle : full) * (1 + p.jitter * (2 * random_.uniform() - 1));
  return std::max<int64_t>(static_cast<int64_t>(jittered), 1);
}

// A cycle was completed, and counted, in the stage `in`.
void QcnReactionPoint::increase(Stage in) {
  const QcnParameters& p = *parameters_;
  if (p.variant == Variant::aimd) {
    current_rate_ = target_rate_ = std::min(current_rate_ + static_cast<double>(p.rpg_ai_rate), line_rate_);
  } else {
    double step = 0;
    if (in == Stage::additive_increase) step = static_cast<double>(p.rpg_ai_rate);
    if (in == Stage::hyper_increase) {
      if (hyper_increases_ < UINT16_MAX) ++hyper_increases_;
      step = hyper_increases_ * static_cast<double>(p.rpg_hai_rate);
    }
    if ((timer_cycles_ == 1 || byte_cycles_ == 1) && target_rate_ > 10 * current_rate_) {
      target_rate_ /= 8;
    } else {
      target_rate_ = std::min(target_rate_ + step, line_rate_);
    }
    current_rate_ = (target_rate_ + current_rate_) / 2;
  }
  if (current_rate_ >= release_rate()) release();
}

}  // namespace weir
