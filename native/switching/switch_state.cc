#include "switching/switch_state.h"

#include <utility>

namespace weir {
namespace {

constexpr Time kLookAgain = 20 * kMicrosecond;

}  // namespace

SwitchState::SwitchState(SwitchParameters given, PacketPool& packets, Driver& drives, uint32_t queued, ShardLink* shard)
    : parameters(std::move(given)),
      pool(packets),
      driver(drives),
      link(shard),
      buffer(parameters.buffer, static_cast<int>(parameters.ports.size()), parameters.pfc_priorities, queued),
      forwarding(parameters.fdb_capacity, parameters.learning, parameters.ageing, parameters.ports.size()),
      balancer(parameters.hash_seed, parameters.component),
      domain(parameters, packets),
      ports(parameters.ports.size()),
      messages(static_cast<uint32_t>(parameters.ports.size())) {
  buffer.reconfigure(parameters.buffer, parameters.pfc_priorities, port_buffers(parameters), fixed_queue(parameters.trimming));
}

void SwitchState::adopt(SwitchParameters given) {
  parameters = std::move(given);
  buffer.reconfigure(parameters.buffer, parameters.pfc_priorities, port_buffers(parameters), fixed_queue(parameters.trimming));
  forwarding.reconfigure(parameters.learning, parameters.ageing);
}

void SwitchState::ask_for_wake() {
  Time next = neighbours_due;
  if (link != nullptr) {
    next = std::min(next, link->next());
    // Frames that another shard lets go may resume a peer of ours, and it does not tell us.
    if (stopped != 0 && buffer.others().occupied > 0) next = std::min(next, now + kLookAgain);
  }
  driver.wake(messages, next);
}

void SwitchState::count_learned(uint16_t of, Forwarding::Learned learned) {
  using Outcome = Forwarding::Learned::Outcome;
  if (learned.outcome == Outcome::stored) return;
  SwitchPort& port = ports[learned.outcome == Outcome::in_place ? learned.forgotten : of];
  if (port.remote) return;
  SwitchPortCounters& counters = port.counters;
  ++(learned.outcome == Outcome::in_place  ? counters.fdb_evicted
     : learned.outcome == Outcome::limited ? counters.fdb_limited
                                           : counters.fdb_full);
}

}  // namespace weir
