// The part of the soft NIC that sends for the host's own network stack: the kernel's ARP, ICMP, TCP, UDP, ... share priorities,
// pauses, flows and the link with its queue pairs.
#include "endpoint/soft_nic.h"
#include "wire/carried.h"
#include "wire/qcn.h"

namespace weir {

void SoftNic::send_for_stack(Time now, PacketId id) {
  catch_up(now);
  Packet& packet = pool_[id];
  counters_.stack_tx_packets += carried_frames(packet);
  packet.priority = parameters_.priority_map.priority(packet.meta);
  packet.ingress_port = kFromStack;
  const uint32_t queue = StackQueues::queue_of(packet.priority, packet.meta.flow_hash);
  priorities_[packet.priority].tx_prio_stack_discard += stack_.push(pool_, queue, id);
  if (!stack_.empty(queue)) line_up_stack(queue);
  go_on();
}

// The queue is not empty: puts it where it has to wait.
void SoftNic::line_up_stack(uint32_t queue) {
  if (stack_.state(queue) != StackQueues::State::idle) return;
  const uint32_t index = pairs_.size() + queue;
  flows_->bind_stack(index, StackQueues::priority_of(queue), now_);
  const uint32_t group = flows_->group_of(index);
  if (group == kNone) return let_go(index);
  start_flow(group, parameters_.rate);
  stack_.state(queue) = StackQueues::State::waiting;
  flows_->join(index);
  serve(group);
}

// There are other flows. A queue that is in its priority's list stays there.
void SoftNic::line_up_stacks() {
  for (uint32_t queue = 0; queue < stack_.size(); ++queue) {
    if (stack_.state(queue) != StackQueues::State::waiting) continue;
    stack_.state(queue) = StackQueues::State::idle;
    line_up_stack(queue);
  }
}

PacketId SoftNic::make_stack_frame(uint32_t index) {
  const uint32_t queue = index - pairs_.size();
  const PacketId id = stack_.take(pool_, queue);
  const uint32_t group = flows_->group_of(index);
  if (group != kNone && parameters_.grouping.cn_tag) insert_cn_tag(pool_, id, flows_->flow_id(group));
  if (group != kNone) sent_of_group(group, index, wire_bytes(pool_[id].length));
  pool_[id].meta.flow_hash = 0;  // its port would take this for a queue pair
  stack_.state(queue) = StackQueues::State::idle;
  if (!stack_.empty(queue)) {
    line_up_stack(queue);
  } else if (group != kNone) {
    serve(group);
  }
  return id;
}

}  // namespace weir
