// The sending half of the soft NIC: what goes on the link when it falls free.
#include <algorithm>
#include <cstring>

#include "endpoint/soft_nic.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"

namespace weir {
namespace {

constexpr Time kRetry = 10 * kMicrosecond;

}  // namespace

void SoftNic::start_next() {
  if (egress_.busy(now_) || egress_.held()) return;
  const bool cnp_may_go =
      notifications_.owed() && notifications_.next_cnp() <= now_ && egress_.cnp_may_go(parameters_.cnp_priority);
  if (egress_.pfc.owed() == 0 && !cnp_may_go && !egress_.answers_may_go() && !egress_.data_waits()) return;
  if (pool_.available() == 0) {
    ++counters_.tx_no_descriptor;
    retry_at_ = now_ + kRetry;
    return;
  }
  if (egress_.pfc.owed() != 0) return depart(make_pfc());
  if (cnp_may_go) return depart(make_cnp());
  const PacketId answer = make_answer();
  if (answer != kNoPacket) return depart(answer);
  send_data();
}

void SoftNic::depart(PacketId id) { driver_.depart(0, id, egress_.send(now_, wire_bytes(pool_[id].length))); }

PacketId SoftNic::make_pfc() {
  const PacketId id = pool_.allocate();
  egress_.pfc.make(now_, parameters_.mac, pool_[id]);
  return id;
}

PacketId SoftNic::make_cnp() {
  const NotificationPoints::Cnp cnp = notifications_.take(now_);
  QueuePair& qp = pairs_[cnp.queue_pair];
  if (cnp.arrived != kNever) latencies_->answered(cnp.arrived);
  const RoceTemplate& headers = cnp.headers != nullptr ? *cnp.headers : qp.headers;
  const uint32_t destination_qp = cnp.headers != nullptr ? cnp.destination_qp : qp.parameters.remote_qpn;
  const PacketId id = pool_.allocate();
  Packet& packet = pool_[id];
  packet.reset();
  packet.priority = parameters_.cnp_priority;
  packet.length =
      headers.build_cnp(pool_.data(id), destination_qp, parameters_.cnp_dscp, parameters_.cnp_priority, cnp.partition_key);
  if (!pool_.has_payload()) classify(pool_.data(id), packet.length, packet.meta);
  ++counters_.np_cnp_sent;
  ++qp.counters.cnp_sent;
  return id;
}

PacketId SoftNic::make_answer() {
  uint8_t priority = 0;
  for (uint32_t index = egress_.take_answers(priority); index != kNone; index = egress_.take_answers(priority)) {
    QueuePair& qp = pairs_[index];
    qp.answers = false;
    if (qp.transport == nullptr || !qp.transport->control_waits()) continue;
    OutgoingPacket out;
    qp.transport->take_control(out);
    const PacketId id = pool_.allocate();
    write(id, qp, index, out, priority);
    attend(index);
    return id;
  }
  return kNoPacket;
}

void SoftNic::write(PacketId id, QueuePair& qp, uint32_t index, const OutgoingPacket& out, uint8_t priority) {
  Packet& packet = pool_[id];
  packet.reset();
  packet.priority = priority;
  const RoceTemplate& headers = out.headers != nullptr ? *out.headers : qp.headers;
  if (!pool_.has_payload()) {
    describe(packet, pool_.data(id), qp, out);
    if (priority == qp.parameters.priority) return;
    headers.set_class(pool_.data(id), parameters_.ack_dscp, priority);
    packet.meta.dscp = parameters_.ack_dscp;
    return;
  }
  seal();
  packet.meta.flow_hash = index + 1;
  const uint16_t identification = numbers_ ? qp.datagrams++ : uint16_t{0};
  packet.length = headers.build_unsealed(pool_.data(id), out.header, out.payload, out.payload_bytes, identification);
  unsealed_ = id;
  unsealed_l3_ = static_cast<uint16_t>(headers.l3_offset());
  if (priority != qp.parameters.priority) headers.set_class(pool_.data(id), parameters_.ack_dscp, priority);
  // Queue pairs of many flows have the path of an address handle in common.
  const uint32_t group = flows_->group_of(index);
  if (out.headers == nullptr || group == kNone || !parameters_.grouping.cn_tag) return;
  seal();
  packet.meta.tagged = load_be16(pool_.data(id) + 12) == kEthertypeVlan;
  insert_cn_tag(pool_, id, flows_->flow_id(group));
  packet.meta = {.flow_hash = index + 1};
}

void SoftNic::seal() {
  if (unsealed_ == kNoPacket) return;
  RoceTemplate::seal(pool_.data(unsealed_), unsealed_l3_, pool_[unsealed_].length);
  unsealed_ = kNoPacket;
}

void SoftNic::describe(Packet& packet, uint8_t* headers, const QueuePair& qp, const OutgoingPacket& out) const {
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

void SoftNic::send_data() {
  const auto next_wire_bytes = [this](uint32_t index) {
    if (index >= pairs_.size()) return stack_.next_wire_bytes(pool_, index - pairs_.size());
    const QueuePair& qp = pairs_[index];
    return wire_bytes(qp.headers.bth_offset() + (qp.transport == nullptr ? 0 : qp.transport->data_bytes()));
  };
  uint8_t priority = 0;
  for (;;) {
    const uint32_t index = egress_.take_ready(priority, next_wire_bytes);
    if (index == kNone) return;
    if (index >= pairs_.size()) return depart(make_stack_frame(index));
    QueuePair& qp = pairs_[index];
    qp.state = QueuePair::State::waiting;
    if (qp.parameters.stop <= now_) {
      stop_sending(index);
      pass_turn(index);
      continue;
    }
    // One that was reset while it was in the list begins anew; one that was destroyed leaves its place.
    const bool sends = qp.transport != nullptr && qp.started && qp.transport->data_bytes() > 0;
    const PacketId id = sends ? make_packet(index, priority) : kNoPacket;
    if (pulls() && qp.verbs() != nullptr) qp.verbs()->hold_requests(false);
    if (id == kNoPacket) {
      qp.state = QueuePair::State::idle;
      pass_turn(index);
      if (qp.transport != nullptr) attend(index);
      continue;
    }
    const bool runs = may_run(index);
    if (runs) run(id, index, priority);
    if (qp.transport->data_bytes() > 0) {
      wait(index);
    } else if (qp.converses()) {
      qp.state = QueuePair::State::idle;
    } else {
      finish(index);
    }
    // While a queue pair waits for its turn the group has been served.
    if (const uint32_t group = flows_->group_of(index); group != kNone && !flows_->waits(index)) serve(group);
    if (qp.converses()) attend(index);
    return runs ? void() : depart(id);
  }
}

// The next of a queue pair's data; kNoPacket: there turns out to be none.
PacketId SoftNic::make_packet(uint32_t index, uint8_t priority) {
  QueuePair& qp = pairs_[index];
  OutgoingPacket out;
  if (!qp.transport->take_data(now_, out)) return kNoPacket;
  const PacketId id = pool_.allocate();
  pool_.fetch_next();
  write(id, qp, index, out, priority);
  const uint32_t wire = wire_bytes(pool_[id].length);
  ++qp.counters.tx_packets;
  qp.counters.tx_bytes += out.payload_bytes;
  qp.counters.tx_wire_bytes += wire;
  account(index, out, wire);
  return id;
}

// Accounts for the packet with congestion control.
void SoftNic::account(uint32_t index, const OutgoingPacket& out, uint32_t wire_bytes) {
  const QueuePair& qp = pairs_[index];
  if (pulls() && qp.acknowledged()) {
    if (out.header.opcode == kOpcodeRcReadRequest) return ask(index, out.header.reth.dma_length);
    if (is_read_response(plain_opcode(out.header.opcode)) && responds_freely(qp, (*flows_)[index])) return;
  }
  sent(index, wire_bytes);
}

// Whether the link alone is what paces it.
bool SoftNic::keeps_up(const Flow& flow) const { return flow.rate == 0 || flow.rate >= parameters_.rate; }

// Whether what READs have asked for takes its link for longer than `at`: then the next waits, whatever this link does. (Both
// round to a ns.)
bool SoftNic::ahead(const Flow& flow, Time at) const { return pulls() && flow.limiter.release() > at + 1; }

// Whether more of the queue pair's data may follow as fast as the link takes it, with nothing that could come between.
bool SoftNic::may_run(uint32_t index) const {
  return egress_.empty() && flows_->group_of(index) == kNone && keeps_up((*flows_)[index]) && driver_.quiet_until() > now_;
}

// Puts the packet on the link, and what follows it each when the link falls free.
void SoftNic::run(PacketId id, uint32_t index, uint8_t priority) {
  const QueuePair& qp = pairs_[index];
  Flow& flow = (*flows_)[index];
  const Time until = std::min({driver_.quiet_until(), next_event() - 1, qp.parameters.stop - 1});
  depart(id);
  while (egress_.busy_until() <= until && pool_.available() > 0 && qp.transport->data_bytes() > 0) {
    now_ = egress_.busy_until();
    if (flow.changes <= now_) flow.release(now_);
    id = keeps_up(flow) && !ahead(flow, now_) ? make_packet(index, priority) : kNoPacket;
    if (id == kNoPacket) return;
    depart(id);
  }
}

void SoftNic::left(PacketId id) {
  const Packet& packet = pool_[id];
  if (packet.ingress_port != 0) {
    if (packet.ingress_port == kNoIngress) return void(++counters_.tx_slow_path);
    ++priorities_[packet.priority].tx_prio_stack_packets;
    priorities_[packet.priority].tx_prio_stack_bytes += packet.length;
  }
  if (is_flow_control(packet.meta.kind)) {
    ++(packet.meta.kind == FrameKind::pfc ? counters_.tx_pfc_frames : counters_.tx_pause_frames);
    for (uint8_t left = packet.pfc_enable; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      ++priorities_[static_cast<size_t>(__builtin_ctz(left))].tx_prio_pause;
    }
    return;
  }
  ++counters_.tx_packets;
  counters_.tx_bytes += packet.length;
  ++priorities_[packet.priority].tx_prio_packets;
  priorities_[packet.priority].tx_prio_bytes += packet.length;
}

}  // namespace weir
