#include "endpoint/sender.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"
#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"

namespace weir {
namespace {

constexpr Time kRetry = 10 * kMicrosecond;

}  // namespace

void Sender::start_next() {
  if (nic().egress.busy(nic().now) || nic().egress.held()) return;
  const bool cnp_may_go = nic().notifications.owed() && nic().notifications.next_cnp() <= nic().now &&
                          nic().egress.cnp_may_go(nic().parameters.cnp_priority);
  if (nic().egress.pfc.owed() == 0 && !cnp_may_go && !nic().egress.answers_may_go() && !nic().egress.data_waits()) return;
  if (nic().pool.available() == 0) {
    ++nic().counters.tx_no_descriptor;
    nic().retry_at = nic().now + kRetry;
    return;
  }
  if (nic().egress.pfc.owed() != 0) return depart(make_pfc());
  if (cnp_may_go) return depart(make_cnp());
  const PacketId answer = make_answer();
  if (answer != kNoPacket) return depart(answer);
  send_data();
}

void Sender::expire_windows(Time at) {
  nic().notifications.expire(at, nic().parameters.cnp_interval);
  if (nic().notifications.owed()) start_next();
}

void Sender::depart(PacketId id) { nic().driver.depart(0, id, nic().egress.send(nic().now, wire_bytes(nic().pool[id].length))); }

PacketId Sender::make_pfc() {
  const PacketId id = nic().pool.allocate();
  nic().egress.pfc.make(nic().now, nic().parameters.mac, nic().pool[id]);
  return id;
}

PacketId Sender::make_cnp() {
  const NotificationPoints::Cnp cnp = nic().notifications.take(nic().now);
  QueuePair& qp = nic().pairs[cnp.queue_pair];
  if (cnp.arrived != kNever) nic().latencies->answered(cnp.arrived);
  const RoceTemplate& headers = cnp.headers != nullptr ? *cnp.headers : qp.headers;
  const uint32_t destination_qp = cnp.headers != nullptr ? cnp.destination_qp : qp.parameters.remote_qpn;
  const PacketId id = nic().pool.allocate();
  Packet& packet = nic().pool[id];
  packet.reset();
  packet.priority = nic().parameters.cnp_priority;
  packet.length = headers.build_cnp(nic().pool.data(id), destination_qp, nic().parameters.cnp_dscp, nic().parameters.cnp_priority,
                                    cnp.partition_key);
  if (!nic().pool.has_payload()) classify(nic().pool.data(id), packet.length, packet.meta);
  ++nic().counters.np_cnp_sent;
  ++qp.counters.cnp_sent;
  return id;
}

PacketId Sender::make_answer() {
  uint8_t priority = 0;
  for (uint32_t index = nic().egress.take_answers(priority); index != kNone; index = nic().egress.take_answers(priority)) {
    QueuePair& qp = nic().pairs[index];
    qp.answers = false;
    if (qp.transport == nullptr || !qp.transport->control_waits()) continue;
    OutgoingPacket out;
    qp.transport->take_control(out);
    const PacketId id = nic().pool.allocate();
    write_packet(id, qp, index, out, priority);
    flows_.attend_to_pair(index);
    return id;
  }
  return kNoPacket;
}

void Sender::write_packet(PacketId id, QueuePair& qp, uint32_t index, const OutgoingPacket& out, uint8_t priority) {
  Packet& packet = nic().pool[id];
  packet.reset();
  packet.priority = priority;
  const RoceTemplate& headers = out.headers != nullptr ? *out.headers : qp.headers;
  if (!nic().pool.has_payload()) {
    describe_packet(packet, nic().pool.data(id), qp, out);
    if (priority == qp.parameters.priority) return;
    headers.set_class(nic().pool.data(id), nic().parameters.ack_dscp, priority);
    packet.meta.dscp = nic().parameters.ack_dscp;
    return;
  }
  seal();
  packet.meta.flow_hash = index + 1;
  const uint16_t identification = nic().numbers_datagrams ? qp.datagrams++ : uint16_t{0};
  packet.length = headers.build_unsealed(nic().pool.data(id), out.header, out.payload, out.payload_bytes, identification);
  nic().unsealed = id;
  nic().unsealed_l3 = static_cast<uint16_t>(headers.l3_offset());
  if (priority != qp.parameters.priority) headers.set_class(nic().pool.data(id), nic().parameters.ack_dscp, priority);
  // Queue pairs of many flows have the path of an address handle in common.
  const uint32_t group = nic().flow_table->group_of(index);
  if (out.headers == nullptr || group == kNone || !nic().parameters.grouping.cn_tag) return;
  seal();
  packet.meta.tagged = load_be16(nic().pool.data(id) + 12) == kEthertypeVlan;
  insert_cn_tag(nic().pool, id, nic().flow_table->flow_id(group));
  packet.meta = {.flow_hash = index + 1};
}

void Sender::seal() {
  if (nic().unsealed == kNoPacket) return;
  if (nic().pool.has_icrc())
    RoceTemplate::seal(nic().pool.data(nic().unsealed), nic().unsealed_l3, nic().pool[nic().unsealed].length);
  nic().unsealed = kNoPacket;
}

void Sender::describe_packet(Packet& packet, uint8_t* headers, const QueuePair& qp, const OutgoingPacket& out) const {
  packet.length = qp.headers.build_headers(headers, out.header, out.payload_bytes);
  packet.meta = qp.shape;
  packet.meta.destination_qp = out.header.destination_qp;
  packet.meta.psn = out.header.psn;
  packet.meta.opcode = out.header.opcode;
  packet.meta.payload_length = static_cast<uint16_t>(out.payload_bytes);
  packet.meta.pad_count = static_cast<uint8_t>(-out.payload_bytes & 3);
  packet.meta.ack_request = out.header.ack_request;
  packet.meta.becn = out.header.becn;
  if (out.header.entropy != 0) take_source_port(headers, packet.meta);
  // The bitmap of a NAK is read as if it were a header.
  if (out.header.opcode == kOpcodeRcAcknowledge && out.payload_bytes > 0) {
    std::memcpy(headers + packet.meta.bth_offset + kBthHeader + kAethHeader, out.payload, out.payload_bytes);
  }
}

void Sender::send_data() {
  const auto next_wire_bytes = [this](uint32_t index) {
    if (index >= nic().pairs.size()) return nic().stack.next_wire_bytes(nic().pool, index - nic().pairs.size());
    const QueuePair& qp = nic().pairs[index];
    return wire_bytes(qp.headers.bth_offset() + (qp.transport == nullptr ? 0 : qp.transport->data_bytes()));
  };
  uint8_t priority = 0;
  for (;;) {
    const uint32_t index = nic().egress.take_ready(priority, next_wire_bytes);
    if (index == kNone) return;
    if (index >= nic().pairs.size()) return depart(make_stack_frame(index));
    QueuePair& qp = nic().pairs[index];
    qp.state = QueuePair::State::waiting;
    if (qp.parameters.stop <= nic().now) {
      flows_.stop_sending(index);
      flows_.pass_turn(index);
      continue;
    }
    // One that was reset while it was in the list begins anew; one that was destroyed leaves its place.
    const bool sends = qp.transport != nullptr && qp.started && qp.transport->data_bytes() > 0;
    const PacketId id = sends ? make_packet(index, priority) : kNoPacket;
    if (nic().pulls() && qp.verbs() != nullptr) qp.verbs()->hold_requests(false);
    if (id == kNoPacket) {
      qp.state = QueuePair::State::idle;
      flows_.pass_turn(index);
      if (qp.transport != nullptr) flows_.attend_to_pair(index);
      continue;
    }
    may_run(index) ? send_run(id, index, priority) : depart(id);
    if (qp.transport->data_bytes() > 0) {
      flows_.wait_for_flow(index);
    } else if (qp.converses()) {
      qp.state = QueuePair::State::idle;
    } else {
      flows_.finish_sending(index);
    }
    // While a queue pair waits for its turn the group has been served.
    if (const uint32_t group = nic().flow_table->group_of(index); group != kNone && !nic().flow_table->waits(index))
      flows_.serve_group(group);
    if (qp.converses()) flows_.attend_to_pair(index);
    return;
  }
}

// The next of a queue pair's data; kNoPacket: there turns out to be none.
PacketId Sender::make_packet(uint32_t index, uint8_t priority) {
  QueuePair& qp = nic().pairs[index];
  OutgoingPacket out;
  if (!qp.transport->take_data(nic().now, out)) return kNoPacket;
  const PacketId id = nic().pool.allocate();
  nic().pool.fetch_next();
  write_packet(id, qp, index, out, priority);
  const uint32_t wire = wire_bytes(nic().pool[id].length);
  ++qp.counters.tx_packets;
  qp.counters.tx_bytes += out.payload_bytes;
  qp.counters.tx_wire_bytes += wire;
  charge_flow(index, out, wire);
  return id;
}

// Accounts for the packet with congestion control.
void Sender::charge_flow(uint32_t index, const OutgoingPacket& out, uint32_t wire_bytes) {
  const QueuePair& qp = nic().pairs[index];
  if (nic().pulls() && qp.acknowledged()) {
    if (out.header.opcode == kOpcodeRcReadRequest) return flows_.count_read_request(index, out.header.reth.dma_length);
    if (is_read_response(plain_opcode(out.header.opcode)) && flows_.responds_freely(qp, nic().flow(index))) return;
  }
  flows_.count_packet(index, wire_bytes);
}

// Whether the link alone is what paces it.
bool Sender::keeps_up(const Flow& flow) const { return flow.rate == 0 || flow.rate >= nic().parameters.rate; }

// Whether what READs have asked for takes its link for longer than `at`: then the next waits, whatever this link does. (Both
// round to a ns.)
bool Sender::reads_are_ahead(const Flow& flow, Time at) const { return nic().pulls() && flow.limiter.release() > at + 1; }

// Whether more of the queue pair's data may follow as fast as the link takes it, with nothing that could come between.
bool Sender::may_run(uint32_t index) const {
  return nic().egress.empty() && nic().flow_table->group_of(index) == kNone && keeps_up(nic().flow(index)) &&
         nic().driver.quiet_until() > nic().now;
}

// Puts the packet on the link, and what follows it each when the link falls free.
void Sender::send_run(PacketId id, uint32_t index, uint8_t priority) {
  const QueuePair& qp = nic().pairs[index];
  Flow& flow = nic().flow(index);
  const Time until = std::min({nic().driver.quiet_until(), nic().next_event() - 1, qp.parameters.stop - 1});
  depart(id);
  while (nic().egress.busy_until() <= until && nic().pool.available() > 0 && qp.transport->data_bytes() > 0) {
    nic().now = nic().egress.busy_until();
    if (flow.changes <= nic().now) flow.release(nic().now);
    id = keeps_up(flow) && !reads_are_ahead(flow, nic().now) ? make_packet(index, priority) : kNoPacket;
    if (id == kNoPacket) return;
    depart(id);
  }
}

PacketId Sender::make_stack_frame(uint32_t index) {
  const uint32_t queue = index - nic().pairs.size();
  const PacketId id = nic().stack.take(nic().pool, queue);
  const uint32_t group = nic().flow_table->group_of(index);
  if (group != kNone && nic().parameters.grouping.cn_tag) insert_cn_tag(nic().pool, id, nic().flow_table->flow_id(group));
  if (group != kNone) flows_.count_packet_of_group(group, index, wire_bytes(nic().pool[id].length));
  nic().pool[id].meta.flow_hash = 0;  // its port would take this for a queue pair
  nic().stack.state(queue) = StackQueues::State::idle;
  if (!nic().stack.empty(queue)) {
    flows_.line_up_stack(queue);
  } else if (group != kNone) {
    flows_.serve_group(group);
  }
  return id;
}

void Sender::count_left(PacketId id) {
  const Packet& packet = nic().pool[id];
  if (packet.ingress_port != 0) {
    if (packet.ingress_port == kNoIngress) return void(++nic().counters.tx_slow_path);
    ++nic().priorities[packet.priority].tx_prio_stack_packets;
    nic().priorities[packet.priority].tx_prio_stack_bytes += packet.length;
  }
  if (is_flow_control(packet.meta.kind)) {
    ++(packet.meta.kind == FrameKind::pfc ? nic().counters.tx_pfc_frames : nic().counters.tx_pause_frames);
    for (uint8_t left = packet.pfc_enable; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      ++nic().priorities[static_cast<size_t>(__builtin_ctz(left))].tx_prio_pause;
    }
    return;
  }
  ++nic().counters.tx_packets;
  nic().counters.tx_bytes += packet.length;
  ++nic().priorities[packet.priority].tx_prio_packets;
  nic().priorities[packet.priority].tx_prio_bytes += packet.length;
}

}  // namespace weir
