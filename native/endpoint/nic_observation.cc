#include "endpoint/nic_observation.h"

namespace weir {

const Flow& NicObservation::flow_at(uint32_t index, Time at) {
  const uint32_t group = nic().flow_table->group_of(index);
  const uint32_t number = group != kNone ? group : index;
  Flow& flow = nic().flow(number);
  flow.tell([=](auto& c) { c.advance(at); });
  nic().count_held(number);
  return flow;
}

NicObservation::SenderSample NicObservation::sender_sample(uint32_t index, Time at) {
  const Flow& flow = flow_at(index, at);
  const QueuePair& qp = nic().pairs[index];
  // A queue pair that stops at this very time has sent until now.
  const auto rate =
      static_cast<double>(qp.stopped && at <= qp.parameters.stop ? flows_.rate_limit_of(index) : flows_.allowed_rate(qp));
  return flow.controller.visit([&](const auto& c) -> SenderSample {
    const ControllerState state = c.state();
    if (rate > 0 && state.window > 0) return {rate, rate, state.alpha, state.window};
    const bool has_alpha = state.alpha_runs && (rate > 0 || flow.held);
    return {rate, flow.held ? static_cast<double>(state.target_rate) : rate, has_alpha ? state.alpha : 0, 0};
  });
}

void NicObservation::settle_counters() {
  for (int p = 0; p < kPriorities; ++p) {
    NicPriorityCounters& of = nic().by_priority(p);
    of.rx_prio_pause_transition = nic().egress.pause.ended(p);
    of.rx_prio_pause_duration = static_cast<uint64_t>(nic().egress.pause.paused_for(p, nic().now));
    of.tx_prio_pause_duration = static_cast<uint64_t>(nic().egress.pfc.stopped_for(p, nic().now));
  }
  flows_.settle();
}

}  // namespace weir
