#include "switching/egress_port.h"

#include <utility>

#include "wire/carried.h"

namespace weir {

void EgressPort::configure(Time now, const SwitchParameters& parameters, size_t number) {
  number_ = static_cast<uint16_t>(number);
  parameters_ = &parameters.ports[number];
  link_.set_rate(parameters_->rate);
  pfc.configure(parameters_->rate, parameters.link_pause);
  scheduler_.configure(parameters.scheduler);
  mtu_ = parameters_->mtu;
  writes_telemetry_ = parameters.telemetry && parameters_->rate > 0;
  averages_ = red_of(parameters, number).averaged;
  waits_.limited = waits_.bounded = 0;
  for (size_t p = 0; p < kPriorities; ++p) {
    queues_[p].marker = RedMarker(red_of(parameters, number));
    const Rate rate = parameters_->priority_rates[p];
    if (rate != std::exchange(rates_[p], rate)) limiters_[p].rate_changed(now, rate);
    if (rate > 0) waits_.limited = static_cast<uint8_t>(waits_.limited | 1u << p);
    if (parameters_->queue_limits[p] > 0) waits_.bounded = static_cast<uint8_t>(waits_.bounded | 1u << p);
  }
}

int EgressPort::pick(Time now, const PacketPool& pool) {
  const uint8_t held = static_cast<uint8_t>(pause.paused_mask() | limited_mask(now));
  const uint8_t ready = static_cast<uint8_t>(waits_.backlogged & ~held);
  if (ready == 0) return -1;
  if ((ready & (ready - 1)) == 0) return __builtin_ctz(ready);
  std::array<uint32_t, kPriorities> heads{};
  for (uint8_t left = waits_.backlogged; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const size_t p = static_cast<size_t>(__builtin_ctz(left));
    const Packet& head = pool[queues_[p].packets.front()];
    heads[p] = carried_wire_bytes(head.length, head.offload);
  }
  return scheduler_.pick(waits_.backlogged, held, heads);
}

// Queues whose rate limit does not let them send yet.
uint8_t EgressPort::limited_mask(Time now) const {
  uint8_t mask = 0;
  for (uint8_t left = waits_.limited; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const int p = __builtin_ctz(left);
    if (limiters_[static_cast<size_t>(p)].release() > now) mask = static_cast<uint8_t>(mask | 1u << p);
  }
  return mask;
}

Time EgressPort::next_release(Time now) const {
  Time next = kNever;
  for (uint8_t left = waits_.backlogged & limited_mask(now); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    next = std::min(next, limiters_[static_cast<size_t>(__builtin_ctz(left))].release());
  }
  return next;
}

Time EgressPort::next_wake(Time now) const {
  const Time refresh = next_wake();
  if (busy(now)) {
    // The frame on the link has been handed over; nobody need come when nothing waits behind it.
    return (waits_.backlogged | pfc.owed()) != 0 ? std::min(refresh, link_.busy_until()) : refresh;
  }
  if (pfc.owed() != 0 && waits_.held_back == 0) return now + kMicrosecond;  // only for want of a descriptor: try again
  return std::min({refresh, pause.next_resume(waits_.backlogged), next_release(now)});
}

void EgressPort::Queue::record_length(Time now, int64_t bytes) {
  if (distribution == nullptr) distribution = std::make_unique<Histogram>();
  distribution->record(static_cast<uint64_t>(bytes), static_cast<uint64_t>(now - since));
  since = now;
}

}  // namespace weir
