#include "link/pfc.h"

#include <algorithm>

namespace weir {

void PfcSender::stop(int priority, Time now) {
  if (!stopped(priority)) since_[static_cast<size_t>(priority)] = now;
  stopped_ = static_cast<uint8_t>(stopped_ | 1 << priority);
  owed_ = static_cast<uint8_t>(owed_ | 1 << priority);
}

void PfcSender::resume(int priority, Time now) {
  total_[static_cast<size_t>(priority)] = stopped_for(priority, now);
  stopped_ = static_cast<uint8_t>(stopped_ & ~(1 << priority));
  owed_ = static_cast<uint8_t>(owed_ | 1 << priority);
  refresh_at_[static_cast<size_t>(priority)] = kNever;
  find_next();
}

void PfcSender::clear(Time now) {
  for (int p = 0; p < kPriorities; ++p) {
    if (stopped(p)) resume(p, now);
  }
  owed_ = 0;
}

uint8_t PfcSender::take(Time now, uint8_t& xoff) {
  const uint8_t enable = owed_;
  xoff = static_cast<uint8_t>(enable & stopped_);
  for (int p = 0; p < kPriorities; ++p) {
    if ((xoff >> p & 1) != 0) refresh_at_[static_cast<size_t>(p)] = now + lifetime_ / 2;
  }
  owed_ = 0;
  find_next();
  return enable;
}

void PfcSender::make(Time now, uint64_t source_mac, Packet& packet) {
  packet.reset();
  packet.meta.kind = link_ ? FrameKind::pause : FrameKind::pfc;
  packet.meta.source_mac = source_mac;
  packet.length = kMinimumFrame;
  packet.pfc_quanta = quanta_;
  packet.pfc_enable = take(now, packet.pfc_xoff);
  if (!link_) return;
  packet.pfc_enable = 0xff;
  packet.pfc_xoff = stopped_ != 0 ? 0xff : 0;
}

void PfcSender::refresh(Time now) {
  for (int p = 0; p < kPriorities; ++p) {
    if (refresh_at_[static_cast<size_t>(p)] > now) continue;
    owed_ = static_cast<uint8_t>(owed_ | 1 << p);
    refresh_at_[static_cast<size_t>(p)] = kNever;
  }
  find_next();
}

void PfcSender::find_next() { next_refresh_ = *std::min_element(refresh_at_.begin(), refresh_at_.end()); }

void PauseState::apply(int priority, uint16_t quanta, Time now, Rate rate) {
  advance(now);
  const size_t p = static_cast<size_t>(priority);
  const bool was = (paused_ >> priority & 1) != 0;
  const Time until = now + pause_time(quanta, rate);
  if (until > now) {
    if (!was) since_[p] = now;
    until_[p] = until;
    paused_ = static_cast<uint8_t>(paused_ | 1 << priority);
  } else if (was) {
    total_[p] += now - since_[p];
    ++ended_[p];
    paused_ = static_cast<uint8_t>(paused_ & ~(1 << priority));
  }
}

void PauseState::end(Time now) {
  for (uint8_t left = paused_; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const size_t p = static_cast<size_t>(__builtin_ctz(left));
    if (until_[p] > now) continue;
    total_[p] += until_[p] - since_[p];
    ++ended_[p];
    paused_ = static_cast<uint8_t>(paused_ & ~(1 << p));
  }
}

Time PauseState::next_resume(uint8_t priorities) const {
  Time next = kNever;
  for (uint8_t left = paused_ & priorities; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    next = std::min(next, until_[static_cast<size_t>(__builtin_ctz(left))]);
  }
  return next;
}

Time PauseState::paused_for(int priority, Time now) const {
  const size_t p = static_cast<size_t>(priority);
  if ((paused_ >> priority & 1) == 0) return total_[p];
  return total_[p] + std::min(now, until_[p]) - since_[p];
}

}  // namespace weir
