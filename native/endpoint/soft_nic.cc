#include "endpoint/soft_nic.h"

#include "base/native_error.h"
#include "endpoint/nic_pauses.h"
#include "wire/carried.h"

namespace weir {

SoftNic::SoftNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool,
                 Driver& driver, CompletionSink* completions)
    : receiver_(NicSetup{parameters, queue_pairs, pool, driver, completions}) {
  flows().make();
  apply_parameters();
  const PauseStorm& storm = parameters.pause_storm;
  if (storm.priorities != 0) nic().storm_at = storm.start;
  events().schedule_itself(state().next_event());
}

void SoftNic::reconfigure(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs) {
  require(queue_pairs.size() == nic().pairs.streams(), "NIC", "the number of queue pairs cannot change");
  check(parameters, queue_pairs, nic().pool);
  const bool same_flows = nic().parameters.same_flows(parameters);
  if (!same_flows) flows().settle();
  const NicParameters before = nic().parameters;
  nic().parameters = parameters;  // flows and the scheduler refer to it
  nic().parameters.rate = before.rate;
  nic().parameters.mac = before.mac;
  nic().parameters.first_qpn = before.first_qpn;
  nic().parameters.receive_buffer = before.receive_buffer;
  nic().parameters.stack_queue = before.stack_queue;
  nic().parameters.verbs_queue_pairs = before.verbs_queue_pairs;
  nic().parameters.vlan = before.vlan;
  nic().parameters.listener = before.listener;
  if (same_flows) {
    nic().flow_table->take_parameters();
  } else {
    flows().make();
  }
  apply_parameters();
  NicPauses(nic()).keep_to_storm();
  for (uint32_t i = 0; i < nic().pairs.streams(); ++i) {
    QueuePairParameters& own = nic().pairs[i].parameters;
    own.rate_cap = queue_pairs[i].rate_cap;
    nic().flow_table->set_cap(i, own.rate_cap);
    if (own.path.destination_mac != queue_pairs[i].path.destination_mac)
      flows().redirect_stream(i, queue_pairs[i].path.destination_mac);
  }
  if (!nic().hears(kHearsCnps)) nic().notifications.clear();
  nic().notifications.shorten(nic().now + nic().parameters.cnp_interval);
  for (uint32_t i = 0; i < nic().pairs.size(); ++i) flows().repace_pair(i);
  events().end();
}

void SoftNic::apply_parameters() {
  nic().notifications.limit(nic().now, nic().parameters.cnp_nic_interval);
  const PauseStorm& storm = nic().parameters.pause_storm;
  nic().egress.pfc.configure(nic().parameters.rate, nic().parameters.link_pause,
                             storm.priorities != 0 ? storm.quanta : kMaxPauseQuanta);
}

void SoftNic::wake(uint32_t what, Time at) {
  const uint32_t pairs = nic().pairs.size();
  if (what == nic().itself) return events().wake(at);
  const bool of_flow = what < nic().timer(0);
  if (of_flow && what >= pairs && what >= nic().flow_table->size()) return;  // a group of before a reload
  const uint32_t index = of_flow ? what : what - nic().timer(0);
  Time& wanted = of_flow ? nic().flow(index).wakes : nic().pairs[index].timer_wakes;
  if (wanted != at) return;
  events().begin(at, of_flow ? index : NicEvents::kAll);
  wanted = kNever;
  if (what < pairs) {
    flows().line_up_pair(index);
  } else if (of_flow) {
    flows().serve_group(index);
  } else if (nic().pairs[index].transport != nullptr) {
    nic().pairs[index].transport->advance(nic().now);
    receiver_.hear_acknowledgements(index, nic().now);
    flows().attend_to_pair(index);
  }
  events().end();
}

void SoftNic::hold(bool held) {
  nic().egress.hold(held);
  events().end();
}

void SoftNic::receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
  events().begin(now);
  ++nic().counters.rx_pfc_frames;
  const uint8_t obeyed = nic().parameters.link_pause ? uint8_t{0} : nic().parameters.pfc_priorities;
  for (uint8_t left = enable & obeyed; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const int priority = __builtin_ctz(left);
    NicPauses(nic()).obey(priority, quanta[static_cast<size_t>(priority)]);
  }
  events().end();
}

void SoftNic::receive_pause(Time now, uint16_t quanta) {
  events().begin(now);
  ++nic().counters.rx_pause_frames;
  for (int priority = 0; priority < kPriorities; ++priority) NicPauses(nic()).obey(priority, quanta);
  events().end();
}

void SoftNic::end_pauses(Time now) {
  events().begin(now, NicEvents::kAll);
  NicPauses(nic()).forget_all();
  events().end();
}

void SoftNic::programs_have_room() {
  nic().awaited = 0;
  NicPauses(nic()).resume_peer();
  events().end();
}

void SoftNic::send_for_stack(Time now, PacketId id) {
  events().begin(now);
  Packet& packet = nic().pool[id];
  nic().counters.stack_tx_packets += carried_frames(packet);
  packet.priority = nic().parameters.priority_map.priority(packet.meta);
  packet.ingress_port = kFromStack;
  const uint32_t queue = StackQueues::queue_of(packet.priority, packet.meta.flow_hash);
  nic().priorities[packet.priority].tx_prio_stack_discard += nic().stack.push(nic().pool, queue, id);
  if (!nic().stack.empty(queue)) flows().line_up_stack(queue);
  events().end();
}

void SoftNic::post(Time now, uint32_t index, uint32_t word, uint64_t bytes) {
  events().begin(now, NicEvents::kAll);
  const bool begins = static_cast<ReliableStream&>(*nic().pairs[index].transport).post(now, word, bytes);
  if (begins) {
    flows().line_up_pair(index);
  } else {
    flows().attend_to_pair(index);
  }
  events().end();
}

void SoftNic::close(Time now, uint32_t index) {
  nic().pairs[index].transport->close();
  if (!nic().pairs[index].parameters.serves()) return;
  events().begin(now, NicEvents::kAll);
  flows().attend_to_pair(index);
  events().end();
}

}  // namespace weir
