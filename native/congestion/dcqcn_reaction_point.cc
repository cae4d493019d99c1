#include "congestion/dcqcn_reaction_point.h"

#include <algorithm>

namespace weir {

void DcqcnReactionPoint::configure(const DcqcnParameters& shared, const FlowTerms& terms) {
  RateLimiter::configure(shared, terms, "DCQCN reaction point");
  release();
  alpha_ = shared.initial_alpha_value;
  alpha_at_ = started_ = kNever;
}

void DcqcnReactionPoint::start(Time now, Rate initial_rate) {
  release();
  start_alpha(now);
  const double initial = static_cast<double>(initial_rate);
  if (initial < release_rate()) start_limiter(now, initial);
}

void DcqcnReactionPoint::on_cnp(Time now) {
  advance(now);
  if (!limited_) {
    const double override_rate = static_cast<double>(parameters_->rate_to_set_on_first_cnp);
    start_limiter(now, override_rate > 0 ? override_rate : line_rate_);
  }
  if (parameters_->form == DcqcnParameters::Form::paper) {
    cut(now);
    alpha_ = (1 - parameters_->g) * alpha_ + parameters_->g;
    alpha_at_ = now + parameters_->dce_tcp_rtt;
  } else {
    cnp_in_alpha_slot_ = true;
    if (alpha_at_ == kNever) alpha_at_ = slot_end(parameters_->dce_tcp_rtt, now);
    if (cut_at_ == kNever) cut_at_ = slot_end(parameters_->rate_reduce_monitor_period, now);
  }
}

void DcqcnReactionPoint::on_sent(Time now, uint32_t wire_bytes) {
  advance(now);
  if (!limited_ || parameters_->rpg_byte_reset == 0) return;
  byte_count_ += wire_bytes;
  while (limited_ && byte_count_ >= parameters_->rpg_byte_reset) {
    byte_count_ -= parameters_->rpg_byte_reset;
    ++byte_expirations_;
    if (parameters_->increase_restarts_counters) start_rate_timer(now);
    increase();
  }
}

void DcqcnReactionPoint::advance(Time now) {
  while (limited_) {
    const Time at = std::min({alpha_at_, cut_at_, rate_timer_at_});
    if (at > now || at == kNever) return;
    if (at == alpha_at_) {
      end_alpha_period();
    } else if (at == cut_at_) {
      cut_at_ = kNever;
      cut(at);
    } else {
      if (parameters_->rpg_time_reset == 0) {  // switched off meanwhile
        rate_timer_at_ = kNever;
        continue;
      }
      rate_timer_at_ += parameters_->rpg_time_reset;
      ++timer_expirations_;
      if (parameters_->increase_restarts_counters) byte_count_ = 0;
      increase();
    }
  }
  while (alpha_at_ <= now && parameters_->alpha_decays_at_line_rate) end_alpha_period();
}

Time DcqcnReactionPoint::next_deadline() const { return std::min(cut_at_, rate_timer_at_); }

DcqcnReactionPoint::Stage DcqcnReactionPoint::stage() const {
  const uint32_t threshold = parameters_->rpg_threshold;
  if (parameters_->stage_by_increases) {
    const uint64_t increases = uint64_t{timer_expirations_} + byte_expirations_;
    if (increases <= threshold) return Stage::fast_recovery;
    return increases > 2 * uint64_t{threshold} ? Stage::hyper_increase : Stage::additive_increase;
  }
  if (std::max(timer_expirations_, byte_expirations_) <= threshold) return Stage::fast_recovery;
  return std::min(timer_expirations_, byte_expirations_) > threshold ? Stage::hyper_increase : Stage::additive_increase;
}

void DcqcnReactionPoint::start_limiter(Time now, double initial_rate) {
  hold(initial_rate);
  if (!parameters_->alpha_decays_at_line_rate || started_ == kNever) start_alpha(now);
  restart_increase(now);
}

void DcqcnReactionPoint::release() {
  let_go();
  rate_timer_at_ = cut_at_ = kNever;
  timer_expirations_ = byte_expirations_ = 0;
  byte_count_ = 0;
}

void DcqcnReactionPoint::start_alpha(Time now) {
  started_ = now;
  alpha_ = parameters_->initial_alpha_value;
  alpha_at_ = now + parameters_->dce_tcp_rtt;
  cnp_in_alpha_slot_ = false;
}

void DcqcnReactionPoint::restart_increase(Time now) {
  timer_expirations_ = byte_expirations_ = 0;
  byte_count_ = 0;
  start_rate_timer(now);
}

void DcqcnReactionPoint::start_rate_timer(Time now) {
  rate_timer_at_ = parameters_->rpg_time_reset > 0 ? now + parameters_->rpg_time_reset : kNever;
}

void DcqcnReactionPoint::cut(Time now) {
  const DcqcnParameters& p = *parameters_;
  // The cut that starts the limiter needs no case of its own: start_limiter has set R_T = R_C.
  if (p.clamp_tgt_rate || byte_expirations_ != 0 || (p.clamp_tgt_rate_after_time_inc && timer_expirations_ != 0)) {
    target_rate_ = current_rate_;
  }
  lower(alpha_ * p.rate_decrease_factor);
  restart_increase(now);
}

// i, where hyper increase scales.
double DcqcnReactionPoint::hyper_step() const {
  const uint64_t threshold = parameters_->rpg_threshold;
  if (!parameters_->stage_by_increases) return static_cast<double>(std::min(timer_expirations_, byte_expirations_) - threshold);
  return static_cast<double>(uint64_t{timer_expirations_} + byte_expirations_ - 2 * threshold);
}

void DcqcnReactionPoint::increase() {
  const DcqcnParameters& p = *parameters_;
  const Stage now_in = stage();
  double step = 0;
  if (now_in == Stage::additive_increase) step = static_cast<double>(p.rpg_ai_rate);
  if (now_in == Stage::hyper_increase) step = static_cast<double>(p.rpg_hai_rate) * (p.hyper_increase_scales ? hyper_step() : 1);
  if (p.increase_raises_rate && now_in != Stage::fast_recovery) {
    current_rate_ = std::min(current_rate_ + step, line_rate_);
    target_rate_ = std::max(target_rate_, current_rate_);
  } else {
    target_rate_ = std::min(target_rate_ + step, line_rate_);
    current_rate_ = (target_rate_ + current_rate_) / 2;
  }
  if (current_rate_ >= release_rate() && cut_at_ == kNever) release();
}

void DcqcnReactionPoint::end_alpha_period() {
  const double g = parameters_->g;
  alpha_ = (1 - g) * alpha_ + (cnp_in_alpha_slot_ ? g : 0);
  cnp_in_alpha_slot_ = false;
  if (alpha_ < kAlphaEpsilon) {
    alpha_ = 0;
    alpha_at_ = kNever;
  } else {
    alpha_at_ += parameters_->dce_tcp_rtt;
  }
}

// The end of the slot of length `period` that `now` lies in, in a train that began with alpha.
Time DcqcnReactionPoint::slot_end(Time period, Time now) const { return started_ + ((now - started_) / period + 1) * period; }

}  // namespace weir
