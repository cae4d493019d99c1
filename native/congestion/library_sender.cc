#include "congestion/library_sender.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/native_error.h"

namespace weir {
namespace {

size_t units(const Library& library) {
  return (library.algorithm->flow_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
}

weir_cc_event of_type(weir_cc_event_type type) {
  weir_cc_event event{};
  event.type = type;
  return event;
}

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

void LibrarySender::configure(const LibraryParameters& shared, const FlowTerms& terms) {
  check(shared);
  require(terms.line_rate > 0, "congestion control of a library", "the line rate must be above 0");
  library_ = &loaded_library(shared);
  memory_ = std::make_unique<std::max_align_t[]>(units(*library_));
  scale_ = shared.scale;
  refused_ = terms.refused;
  line_rate_ = terms.line_rate;
  most_ = terms.window;
  answer_ = {};
  now_ = 0;
  take({});
}

void LibrarySender::start(Time now, Rate initial_rate) {
  std::memset(memory_.get(), 0, units(*library_) * sizeof(std::max_align_t));
  answer_ = {};
  now_ = scenario_time(now);
  const weir_cc_flow terms{.now = now_,
                           .line_rate = static_cast<double>(line_rate_) * scale_,
                           .initial_rate = static_cast<double>(initial_rate) * scale_,
                           .window = most_,
                           .reserved = 0};
  weir_cc_answer answer = answer_;
  {
    InLibrary in(*library_);
    library_->algorithm->start(memory_.get(), library_->values.data(), &terms, &answer);
  }
  take(answer);
}

void LibrarySender::on_sent(Time now, uint32_t wire_bytes) {
  advance(now);
  weir_cc_event event = of_type(WEIR_CC_SENT);
  event.bytes = wire_bytes;
  tell(now, event);
}

void LibrarySender::on_ack(const Ack& ack) {
  advance(ack.arrived);
  weir_cc_event event = of_type(WEIR_CC_ACK);
  event.rtt = ack.sent == kNever || ack.sent >= ack.arrived ? 0 : scenario_time(ack.arrived - ack.sent);
  event.packets = ack.packets;
  event.marked = ack.marked ? 1u : 0u;
  event.in_flight = ack.in_flight;
  tell(ack.arrived, event);
}

void LibrarySender::on_loss(const Loss& loss) {
  advance(loss.at);
  weir_cc_event event = of_type(WEIR_CC_LOSS);
  event.in_flight = loss.in_flight;
  event.timeout = loss.timeout ? 1u : 0u;
  tell(loss.at, event);
}

// Version 1 has no such event, and is told of a loss.
void LibrarySender::on_trimmed(const Trimmed& trimmed) {
  if (library_->algorithm->version == 1) return on_loss({.in_flight = trimmed.in_flight, .at = trimmed.at});
  advance(trimmed.at);
  weir_cc_event event = of_type(WEIR_CC_NACK);
  event.packets = trimmed.packets;
  event.in_flight = trimmed.in_flight;
  tell(trimmed.at, event);
}

void LibrarySender::on_cnp(Time now) {
  advance(now);
  tell(now, of_type(WEIR_CC_CNP));
}

void LibrarySender::advance(Time now) {
  while (timer_ <= now) {
    const Time at = timer_;
    now_ = std::max(now_, answer_.timer);
    answer_.timer = 0;
    timer_ = kNever;
    tell(at, of_type(WEIR_CC_TIMER));
  }
}

void LibrarySender::tell(Time now, weir_cc_event event) {
  event.now = now_ = std::max(now_, scenario_time(now));
  weir_cc_answer answer = answer_;
  {
    InLibrary in(*library_);
    library_->algorithm->event(memory_.get(), library_->values.data(), &event, &answer);
  }
  take(answer);
}

void LibrarySender::take(const weir_cc_answer& answer) {
  const bool late = answer.timer != 0 && answer.timer < now_;
  if (refused_ != nullptr && (!is_amount(answer.rate) || !is_amount(answer.window) || late)) ++*refused_;
  if (is_amount(answer.rate)) answer_.rate = answer.rate;
  if (is_amount(answer.window)) answer_.window = answer.window;
  if (!late && answer.timer != answer_.timer) {
    answer_.timer = answer.timer == 0 ? 0 : std::max(answer.timer, now_ + WEIR_CC_LEAST_TIMER);
  }

  const double wall = answer_.rate / scale_;
  limited_ = wall > 0 && wall < static_cast<double>(line_rate_);
  rate_ = limited_ ? static_cast<Rate>(wall) : line_rate_;
  window_ = answer_.window == 0 ? most_ : static_cast<uint32_t>(std::clamp<double>(answer_.window, 1, most_));
  const double timer = std::ceil(static_cast<double>(answer_.timer) * scale_);
  timer_ = answer_.timer == 0 || timer >= static_cast<double>(kNever) ? kNever : static_cast<Time>(timer);
}

}  // namespace weir
