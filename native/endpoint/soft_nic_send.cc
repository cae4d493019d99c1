// The sending half of the soft NIC: what goes on the link when it falls free, and how fast it is sent.
#include <algorithm>
#include <cstring>

#include "endpoint/soft_nic.h"

namespace weir {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr Time kRetry = 10 * kMicrosecond;

}  // namespace

// False: there is nowhere to send to yet.
bool SoftNic::begin(QueuePair& qp) {
  if (qp.unresolved()) return false;
  const bool alone = active_++ == 0;
  qp.started = true;
  const Rate later = parameters_.initial_rate > 0 ? parameters_.initial_rate : parameters_.rate;
  qp.state = QueuePair::State::waiting;
  const Rate first = parameters_.line_rate_start && alone ? parameters_.rate : later;
  qp.reaction_point.start(now_, first);
  if (const uint32_t flow = flow_of(qp); flow != kNone) start_flow(flow, first);
  qp.pacer.reset(now_);
  qp.paced_rate = allowed_rate(qp);
  if (qp.stream != nullptr) qp.stream->begin(now_);
  return true;
}

// Where a stream leads has been found, or is elsewhere now.
void SoftNic::redirect(uint32_t index, uint64_t mac) {
  QueuePair& qp = queue_pairs_[index];
  qp.parameters.path.destination_mac = mac;
  unbind(index);
  bind(index);
  if (!qp.started) schedule(index, std::max(qp.parameters.start, now_));
}

void SoftNic::start_next() {
  if (held_) return;
  PacketId id = kNoPacket;
  const bool cnp_may_go = notifications_.owed() && (pause_.paused_mask() >> parameters_.cnp_priority & 1) == 0;
  const bool answer_may_go = (answering_ & ~pause_.paused_mask()) != 0;
  if (pfc_.owed() != 0 || cnp_may_go || answer_may_go || backlogged_ != 0) {
    if (pool_.available() == 0) {
      ++counters_.tx_no_descriptor;
      retry_at_ = now_ + kRetry;
      return;
    }
  }
  if (pfc_.owed() != 0) {
    id = make_pfc();
  } else if (cnp_may_go) {
    id = make_cnp();
  } else {
    if (answer_may_go) id = make_answer();
    if (id == kNoPacket) id = make_data();
  }
  if (id == kNoPacket) return;
  sending_ = true;
  busy_until_ = link_.finish(now_, wire_bytes(pool_[id].length));
  if (driver_ != nullptr) {
    driver_->depart(0, id, busy_until_);
  } else {
    pool_[id].departs = busy_until_;
    departing_.push(pool_, id);
  }
}

PacketId SoftNic::make_pfc() {
  const PacketId id = pool_.allocate();
  Packet& packet = pool_[id];
  packet.reset();
  packet.meta.kind = FrameKind::pfc;
  packet.meta.source_mac = parameters_.mac;
  packet.length = kMinimumFrame;
  packet.pfc_enable = pfc_.take(now_, packet.pfc_xoff);
  return id;
}

PacketId SoftNic::make_cnp() {
  const NotificationPoints::Cnp cnp = notifications_.take();
  QueuePair& qp = queue_pairs_[cnp.queue_pair];
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

// One of the highest priority that may send.
PacketId SoftNic::make_answer() {
  for (uint8_t left = static_cast<uint8_t>(answering_ & ~pause_.paused_mask()); left != 0;) {
    const int priority = 31 - __builtin_clz(left);
    ReadyList& list = answers_[static_cast<size_t>(priority)];
    const uint32_t index = list.head;
    QueuePair& qp = queue_pairs_[index];
    list.head = qp.next_answer;
    if (list.head == kNone) {
      list.tail = kNone;
      answering_ = static_cast<uint8_t>(answering_ & ~(1u << priority));
      left = static_cast<uint8_t>(left & ~(1u << priority));
    }
    qp.answers = false;
    if (qp.transport == nullptr || !qp.transport->control_waits()) continue;
    OutgoingPacket out;
    qp.transport->take_control(out);
    const PacketId id = pool_.allocate();
    write(id, qp, out, static_cast<uint8_t>(priority));
    attend(index);
    return id;
  }
  return kNoPacket;
}

void SoftNic::write(PacketId id, QueuePair& qp, OutgoingPacket& out, uint8_t priority) {
  Packet& packet = pool_[id];
  packet.reset();
  packet.priority = priority;
  if (pool_.has_payload()) {
    const RoceTemplate& headers = out.headers != nullptr ? *out.headers : qp.headers;
    packet.length = headers.build_data(pool_.data(id), out.header, out.payload, out.payload_bytes);
    // Queue pairs of many flows have the path in common.
    if (out.headers != nullptr) tag(id, qp);
  } else {
    describe(packet, pool_.data(id), qp, out);
  }
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
  // The bitmap of a NAK is read as if it were a header.
  if (out.header.opcode == kOpcodeRcAcknowledge && out.payload_bytes > 0) {
    std::memcpy(headers + packet.meta.bth_offset + kBthHeader + kAethHeader, out.payload, out.payload_bytes);
  }
}

uint32_t SoftNic::next_wire_bytes(const QueuePair& qp) {
  const uint32_t bytes = qp.transport == nullptr ? 0 : qp.transport->data_bytes();
  return wire_bytes(qp.headers.bth_offset() + bytes);
}

PacketId SoftNic::make_data() {
  for (;;) {
    // Lengths matter only between several.
    std::array<uint32_t, kPriorities> heads{};
    for (uint8_t left = (backlogged_ & (backlogged_ - 1)) != 0 ? backlogged_ : uint8_t{0}; left != 0;
         left = static_cast<uint8_t>(left & (left - 1))) {
      const size_t p = static_cast<size_t>(__builtin_ctz(left));
      heads[p] = next_wire_bytes(queue_pairs_[ready_[p].head]);
    }
    const int priority = scheduler_.pick(backlogged_, pause_.paused_mask(), heads);
    if (priority < 0) return kNoPacket;
    ReadyList& list = ready_[static_cast<size_t>(priority)];
    const uint32_t index = list.head;
    QueuePair& qp = queue_pairs_[index];
    list.head = qp.next_ready;
    if (list.head == kNone) {
      list.tail = kNone;
      backlogged_ = static_cast<uint8_t>(backlogged_ & ~(1u << priority));
    }
    qp.state = QueuePair::State::waiting;
    if (qp.parameters.stop <= now_) {
      finish(qp);
      pass_turn(index);
      continue;
    }
    OutgoingPacket out;
    // One that was reset while it was in the list begins anew.
    const bool sends = qp.transport != nullptr && qp.started && qp.transport->data_bytes() > 0;
    if (!sends || !qp.transport->take_data(now_, out)) {
      qp.state = QueuePair::State::idle;
      pass_turn(index);
      attend(index);
      continue;
    }
    const PacketId id = pool_.allocate();
    write(id, qp, out, static_cast<uint8_t>(priority));
    const uint32_t wire = wire_bytes(pool_[id].length);
    ++qp.counters.tx_packets;
    qp.counters.tx_bytes += out.payload_bytes;
    qp.counters.tx_wire_bytes += wire;
    const bool governs = governed(index);
    if (governs) {
      turn_taken(index, wire);
    } else {
      qp.reaction_point.on_sent(now_, wire);
      count_limited(qp);
      qp.paced_rate = allowed_rate(qp);
      qp.pacer.sent(now_, wire, qp.paced_rate);
    }
    if (qp.transport->data_bytes() > 0) {
      if (governs) {
        line_up(index);
      } else {
        wait(index);
      }
    } else if (qp.converses()) {
      qp.state = QueuePair::State::idle;
    } else {
      finish(qp);
    }
    if (governs) serve_flow(flows_->of(index));
    attend(index);
    return id;
  }
}

void SoftNic::left(PacketId id) {
  const Packet& packet = pool_[id];
  if (packet.ingress_port == kNoIngress) return;
  if (packet.meta.kind == FrameKind::pfc) {
    ++counters_.tx_pfc_frames;
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

SoftNic::SenderSample SoftNic::sender_sample(uint32_t index, Time at) {
  QueuePair& qp = queue_pairs_[index];
  if (const ReactionPoint* point = flow_at(index, at); point != nullptr) {
    const double allowed = static_cast<double>(allowed_rate(qp));
    return {allowed, point->rate.limited() ? static_cast<double>(point->rate.target_rate()) : allowed, 0};
  }
  if (qp.stream != nullptr && qp.stream->dctcp() != nullptr) {
    const double window = qp.stream->dctcp()->window();
    return {window, window, qp.stream->dctcp()->alpha()};
  }
  qp.reaction_point.advance(at);
  count_limited(qp);
  const double rate = static_cast<double>(allowed_rate(qp));
  if (!dcqcn()) return {rate, rate, 0};
  if (qp.reaction_point.limited()) {
    return {rate, static_cast<double>(qp.reaction_point.target_rate()), qp.reaction_point.alpha()};
  }
  const bool has_alpha = rate > 0 && parameters_.reaction_point.alpha_decays_at_line_rate;
  return {rate, rate, has_alpha ? qp.reaction_point.alpha() : 0};
}

}  // namespace weir
