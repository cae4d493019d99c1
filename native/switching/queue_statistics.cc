#include "switching/queue_statistics.h"

#include <memory>
#include <utility>

namespace weir {

void QueueStatistics::keep_distribution(uint16_t port, int priority) {
  state_.ports[port].egress.queue(priority).distribution = std::make_unique<Histogram>();
}

const Histogram& QueueStatistics::distribution(uint16_t port, int priority) {
  EgressPort::Queue& queue = state_.ports[port].egress.queue(priority);
  queue.note_length(state_.now, state_.buffer.egress_bytes(port, priority), state_.keeps_all);
  return *queue.distribution;
}

void QueueStatistics::repeat_distribution(uint16_t port, int priority, Histogram& before, uint64_t part, uint64_t whole) {
  const Histogram now = distribution(port, priority), began = before;
  state_.ports[port].egress.queue(priority).distribution->add(now, began, part, whole);
  before.add(now, began, part, whole);
}

int64_t QueueStatistics::take_peak(uint16_t port, int priority) {
  return std::exchange(state_.ports[port].egress.queue(priority).peak, state_.buffer.egress_bytes(port, priority));
}

void QueueStatistics::reset_distributions() {
  for (SwitchPort& port : state_.ports) {
    for (EgressPort::Queue& queue : port.egress.queues()) {
      if (queue.distribution != nullptr) queue.distribution->reset();
      queue.since = state_.now;
    }
  }
}

void QueueStatistics::settle_counters() {
  for (SwitchPort& port : state_.ports) {
    for (int p = 0; p < kPriorities; ++p) {
      SwitchPriorityCounters& counters = port.egress.queue(p).counters;
      counters.pfc_rx_transitions = port.egress.pause.ended(p);
      counters.pfc_rx_pause_duration = static_cast<uint64_t>(port.egress.pause.paused_for(p, state_.now));
      counters.pfc_tx_pause_duration = static_cast<uint64_t>(port.egress.pfc.stopped_for(p, state_.now));
    }
  }
}

}  // namespace weir
