#include "endpoint/soft_nic.h"

#include <algorithm>

#include "switching/forwarding.h"
#include "wire/icrc.h"

namespace weir {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr Time kTick = 1'024;  // of the timing wheel; order within a tick is exact
constexpr uint32_t kMaxPayload = 4'096;
constexpr Time kRetry = 10 * kMicrosecond;

bool carries_request(uint8_t opcode) { return opcode <= kOpcodeRcWriteOnlyImmediate; }
bool first_of_write(uint8_t opcode) {
  return opcode == kOpcodeRcWriteFirst || opcode == kOpcodeRcWriteOnly || opcode == kOpcodeRcWriteOnlyImmediate;
}
// Of a request: the others are the first and middle packets.
bool last_of_message(uint8_t opcode) {
  return opcode != kOpcodeRcSendFirst && opcode != kOpcodeRcSendMiddle && opcode != kOpcodeRcWriteFirst &&
         opcode != kOpcodeRcWriteMiddle;
}

}  // namespace

SoftNic::SoftNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool)
    : parameters_(parameters),
      pool_(pool),
      wheel_(static_cast<uint32_t>(queue_pairs.size()), kTick),
      link_(parameters.rate),
      receive_buffer_(parameters.receive_buffer),
      cnp_queue_(queue_pairs.size()),
      windows_(queue_pairs.size()),
      payload_(kMaxPayload) {
  scheduler_.configure(parameters_.scheduler);
  pfc_.configure(parameters_.rate);
  for (size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<uint8_t>(i);
  queue_pairs_.reserve(queue_pairs.size());
  for (const QueuePairParameters& qp : queue_pairs) {
    queue_pairs_.emplace_back(qp);
    queue_pairs_.back().reaction_point.configure(&parameters_.reaction_point, parameters_.rate);
    if (qp.start != kNever) wheel_.schedule(static_cast<uint32_t>(queue_pairs_.size() - 1), qp.start);
  }
}

void SoftNic::reconfigure(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs) {
  const NicParameters before = parameters_;
  parameters_ = parameters;  // reaction points and the scheduler refer to it
  parameters_.rate = before.rate;
  parameters_.mac = before.mac;
  parameters_.first_qpn = before.first_qpn;
  parameters_.receive_buffer = before.receive_buffer;
  for (uint32_t i = 0; i < queue_pairs_.size(); ++i) {
    queue_pairs_[i].parameters.rate_cap = queue_pairs[i].rate_cap;
    repace(i);
  }
}

Rate SoftNic::allowed_rate(const QueuePair& qp) const {
  if (qp.state == QueuePair::State::idle || qp.state == QueuePair::State::finished) return 0;
  Rate rate = parameters_.rate;
  if (parameters_.dcqcn) rate = std::min(rate, qp.reaction_point.rate());
  if (qp.parameters.rate_cap > 0) rate = std::min(rate, qp.parameters.rate_cap);
  return std::max<Rate>(rate, 1);
}

uint32_t SoftNic::find_qp(uint32_t qpn) const {
  const uint32_t index = qpn - parameters_.first_qpn;
  return index < queue_pairs_.size() ? index : kNone;
}

// ---- receiving ----

SoftNic::Disposition SoftNic::receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal) {
  advance(now);
  ++counters_.rx_packets;
  counters_.rx_bytes += length;
  const int priority = parameters_.priority_map.priority(meta);
  NicPriorityCounters& by_priority = priorities_[static_cast<size_t>(priority)];
  ++by_priority.rx_prio_packets;
  by_priority.rx_prio_bytes += length;
  // A fragment is well formed; it is only not for us to reassemble.
  if (refusal != Refusal::none && refusal != Refusal::ip_fragment) return ++counters_.drop_malformed, Disposition::consumed;
  if (meta.destination_mac != parameters_.mac && !Forwarding::is_group(meta.destination_mac)) {
    return ++counters_.drop_not_for_us, Disposition::consumed;
  }
  if (meta.kind == FrameKind::other) return ++counters_.rx_punted, Disposition::punt;
  if (!receive_buffer_.unlimited()) {
    if (!receive_buffer_.add(now_, priority, length)) return ++by_priority.rx_prio_buf_discard, Disposition::consumed;
    if (receive_buffer_.above_xoff(priority) && (parameters_.pfc_priorities >> priority & 1) != 0 && !pfc_.stopped(priority)) {
      pfc_.stop(priority);
      if (in_flight_ == kNoPacket) start_next();
    }
  }
  if (!icrc_ok(data, meta)) return ++counters_.rx_icrc_encapsulated, Disposition::consumed;
  const uint32_t index = find_qp(meta.destination_qp);
  if (index == kNone) return ++counters_.drop_unknown_qp, Disposition::consumed;
  if (meta.kind == FrameKind::cnp) {
    QueuePair& qp = queue_pairs_[index];
    if (!parameters_.dcqcn) return ++counters_.rp_cnp_ignored, Disposition::consumed;
    ++counters_.rp_cnp_handled;
    ++qp.counters.cnp_handled;
    qp.reaction_point.on_cnp(now_);
    repace(index);
  } else if (carries_request(meta.opcode)) {
    receive_data(index, length, meta);
  } else {
    ++counters_.drop_unsupported_opcode;
  }
  return Disposition::consumed;
}

void SoftNic::obey(int priority, uint16_t quanta) {
  ++priorities_[static_cast<size_t>(priority)].rx_prio_pause;
  pause_.apply(priority, quanta, now_, parameters_.rate);
}

void SoftNic::receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
  advance(now);
  ++counters_.rx_pfc_frames;
  for (uint8_t left = enable & parameters_.pfc_priorities; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const int priority = __builtin_ctz(left);
    obey(priority, quanta[static_cast<size_t>(priority)]);
  }
  if (in_flight_ == kNoPacket) start_next();
}

void SoftNic::receive_pause(Time now, uint16_t quanta) {
  advance(now);
  ++counters_.rx_pause_frames;
  for (int priority = 0; priority < kPriorities; ++priority) obey(priority, quanta);
  if (in_flight_ == kNoPacket) start_next();
}

void SoftNic::receive_data(uint32_t index, uint32_t length, const PacketMeta& meta) {
  QueuePair& qp = queue_pairs_[index];
  if (meta.ecn == 3) {
    ++counters_.np_ecn_marked_roce_packets;
    ++qp.counters.ecn_marked;
    if (parameters_.dcqcn) {
      expire_windows(now_);  // after skip_to() some may have ended that advance() has not come to yet
      const bool opens = !qp.notification_point.active();
      if (qp.notification_point.on_marked(now_, parameters_.cnp_interval)) owe_cnp(index);
      if (opens && qp.notification_point.active()) windows_[(window_head_ + window_count_++) % windows_.size()] = index;
    }
  }
  const SequenceCheck::Verdict verdict = qp.sequence.observe(meta.psn);
  if (verdict.duplicate) {
    ++counters_.duplicate_request;
    ++qp.counters.duplicate;
    return;
  }
  if (verdict.missing > 0) ++counters_.out_of_sequence;
  qp.counters.lost += verdict.missing;
  ++qp.counters.rx_packets;
  qp.counters.rx_bytes += meta.payload_length;
  qp.counters.rx_wire_bytes += wire_bytes(length);
  if (first_of_write(meta.opcode)) ++counters_.rx_write_requests;
  if (last_of_message(meta.opcode)) ++qp.counters.rx_messages;
}

void SoftNic::check_receive_buffer() {
  receive_buffer_.advance(now_);
  for (uint8_t left = pfc_.stopped_mask(); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const int priority = __builtin_ctz(left);
    if (receive_buffer_.below_xon(priority)) pfc_.resume(priority);
  }
}

void SoftNic::owe_cnp(uint32_t index) {
  if (queue_pairs_[index].cnps_owed++ == 0) cnp_queue_[(cnp_head_ + cnp_count_++) % cnp_queue_.size()] = index;
  if (in_flight_ == kNoPacket) start_next();
}

// Windows all last N, so the ring is in order of their ends.
void SoftNic::expire_windows(Time at) {
  while (window_count_ > 0) {
    const uint32_t index = windows_[window_head_];
    NotificationPoint& np = queue_pairs_[index].notification_point;
    if (np.window_end() > at) return;
    window_head_ = (window_head_ + 1) % windows_.size();
    --window_count_;
    const bool marked = np.expire(parameters_.cnp_interval);
    if (np.active()) windows_[(window_head_ + window_count_++) % windows_.size()] = index;
    if (marked) owe_cnp(index);
  }
}

// ---- time ----

Time SoftNic::next_deadline() const {
  Time next = std::min({wheel_.next_deadline(), pfc_.next_deadline(), retry_at_, receive_buffer_.next_deadline()});
  if (window_count_ > 0) next = std::min(next, queue_pairs_[windows_[window_head_]].notification_point.window_end());
  if (in_flight_ != kNoPacket) return std::min(next, in_flight_ends_);
  const uint8_t waiting = static_cast<uint8_t>(backlogged_ | (cnp_count_ > 0 ? 1u << parameters_.cnp_priority : 0u));
  return std::min(next, pause_.next_resume(waiting));
}

void SoftNic::advance(Time now) {
  for (Time at = next_deadline(); at <= now; at = next_deadline()) {
    now_ = std::max(now_, at);
    step(at);
  }
  now_ = std::max(now_, now);
}

// Handles everything due at `at`. now_ is later than `at` only after skip_to(): then sending happens at now_.
void SoftNic::step(Time at) {
  if (in_flight_ != kNoPacket && in_flight_ends_ <= now_) {
    departed_.push(pool_, in_flight_);
    in_flight_ = kNoPacket;
  }
  retry_at_ = kNever;
  pause_.advance(now_);
  pfc_.advance(now_);
  check_receive_buffer();
  expire_windows(at);
  for (uint32_t index = wheel_.pop_due(now_); index != TimingWheel::kNone; index = wheel_.pop_due(now_)) due(index);
  if (in_flight_ == kNoPacket) start_next();
}

void SoftNic::due(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  if (qp.state == QueuePair::State::idle) begin(qp);
  if (qp.parameters.stop <= now_) return finish(qp);
  qp.reaction_point.advance(now_);
  const Rate rate = allowed_rate(qp);
  if (rate != qp.paced_rate) {
    qp.pacer.rate_changed(now_, rate);
    qp.paced_rate = rate;
  }
  if (qp.pacer.release() <= now_) {
    push_ready(index);
  } else {
    wait(index);
  }
}

void SoftNic::begin(QueuePair& qp) {
  const bool alone = active_++ == 0;
  const Rate later = parameters_.initial_rate > 0 ? parameters_.initial_rate : parameters_.rate;
  qp.state = QueuePair::State::waiting;
  qp.reaction_point.start(now_, parameters_.line_rate_start && alone ? parameters_.rate : later);
  qp.pacer.reset(now_);
  qp.paced_rate = allowed_rate(qp);
}

void SoftNic::finish(QueuePair& qp) {
  qp.state = QueuePair::State::finished;
  --active_;
}

// Back into the wheel until the next packet's release, or until the rate may rise or the QP must stop before then.
void SoftNic::wait(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  qp.state = QueuePair::State::waiting;
  const Time rises = parameters_.dcqcn ? qp.reaction_point.next_deadline() : kNever;
  wheel_.schedule(index, std::min({qp.pacer.release(), rises, qp.parameters.stop}));
}

// The rate of a QP has changed while its next packet waits.
void SoftNic::repace(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  if (qp.state != QueuePair::State::waiting) return;
  const Rate rate = allowed_rate(qp);
  qp.pacer.rate_changed(now_, rate);
  qp.paced_rate = rate;
  wait(index);
}

void SoftNic::push_ready(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  qp.state = QueuePair::State::ready;
  qp.next_ready = kNone;
  ReadyList& list = ready_[qp.parameters.priority];
  if (list.head == kNone) {
    list.head = index;
  } else {
    queue_pairs_[list.tail].next_ready = index;
  }
  list.tail = index;
  backlogged_ = static_cast<uint8_t>(backlogged_ | 1u << qp.parameters.priority);
}

// ---- sending ----

void SoftNic::start_next() {
  PacketId id = kNoPacket;
  const bool cnp_may_go = cnp_count_ > 0 && (pause_.paused_mask() >> parameters_.cnp_priority & 1) == 0;
  if (pfc_.owed() != 0 || cnp_may_go || backlogged_ != 0) {
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
    id = make_data();
  }
  if (id == kNoPacket) return;
  in_flight_ = id;
  in_flight_ends_ = link_.finish(now_, wire_bytes(pool_[id].length));
}

PacketId SoftNic::make_pfc() {
  const PacketId id = pool_.allocate();
  Packet& packet = pool_[id];
  packet = Packet{};
  packet.meta.kind = FrameKind::pfc;
  packet.meta.source_mac = parameters_.mac;
  packet.length = kMinimumFrame;
  packet.pfc_enable = pfc_.take(now_, packet.pfc_xoff);
  ++counters_.tx_pfc_frames;
  for (uint8_t left = packet.pfc_enable; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    ++priorities_[static_cast<size_t>(__builtin_ctz(left))].tx_prio_pause;
  }
  return id;
}

PacketId SoftNic::make_cnp() {
  const uint32_t index = cnp_queue_[cnp_head_];
  QueuePair& qp = queue_pairs_[index];
  cnp_head_ = (cnp_head_ + 1) % cnp_queue_.size();
  --cnp_count_;
  if (--qp.cnps_owed > 0) cnp_queue_[(cnp_head_ + cnp_count_++) % cnp_queue_.size()] = index;
  const PacketId id = pool_.allocate();
  Packet& packet = pool_[id];
  packet = Packet{};
  packet.priority = parameters_.cnp_priority;
  packet.length = qp.headers.build_cnp(pool_.data(id), qp.parameters.remote_qpn, parameters_.cnp_dscp, parameters_.cnp_priority);
  ++counters_.np_cnp_sent;
  ++qp.counters.cnp_sent;
  sent(packet);
  return id;
}

uint32_t SoftNic::next_wire_bytes(const QueuePair& qp) {
  const uint32_t payload = qp.stream.next_payload();
  const uint32_t reth = qp.stream.next_is_first() && qp.parameters.stream.operation == Operation::write ? kRethHeader : 0;
  return wire_bytes(qp.headers.bth_offset() + kBthHeader + reth + ((payload + 3) & ~3u) + kIcrc);
}

PacketId SoftNic::make_data() {
  for (;;) {
    std::array<uint32_t, kPriorities> heads{};
    for (uint8_t left = backlogged_; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
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
    if (qp.parameters.stop <= now_ || qp.stream.finished()) {
      finish(qp);
      continue;
    }
    const MessageStream::Segment segment = qp.stream.next();
    DataHeader header{};
    header.opcode = segment.opcode;
    header.destination_qp = qp.parameters.remote_qpn;
    header.psn = segment.psn;
    header.ack_request = segment.last;
    header.has_reth = segment.first && qp.parameters.stream.operation == Operation::write;
    header.virtual_address = qp.parameters.remote_address;
    header.rkey = qp.parameters.remote_key;
    header.dma_length = segment.message_bytes;
    const PacketId id = pool_.allocate();
    Packet& packet = pool_[id];
    packet = Packet{};
    packet.priority = static_cast<uint8_t>(priority);
    packet.length = qp.headers.build_data(pool_.data(id), header, payload_.data(), segment.payload_bytes);
    const uint32_t wire = wire_bytes(packet.length);
    ++qp.counters.tx_packets;
    qp.counters.tx_bytes += segment.payload_bytes;
    qp.counters.tx_wire_bytes += wire;
    sent(packet);
    qp.reaction_point.on_sent(now_, wire);
    qp.paced_rate = allowed_rate(qp);
    qp.pacer.sent(now_, wire, qp.paced_rate);
    if (qp.stream.finished()) {
      finish(qp);
    } else {
      wait(index);
    }
    return id;
  }
}

void SoftNic::sent(const Packet& packet) {
  ++counters_.tx_packets;
  counters_.tx_bytes += packet.length;
  ++priorities_[packet.priority].tx_prio_packets;
  priorities_[packet.priority].tx_prio_bytes += packet.length;
}

void SoftNic::settle_counters() {
  for (int p = 0; p < kPriorities; ++p) {
    priorities_[static_cast<size_t>(p)].rx_prio_pause_duration = static_cast<uint64_t>(pause_.paused_for(p, now_));
  }
  counters_.rp_cur_flows = 0;
  if (!parameters_.dcqcn) return;
  for (const QueuePair& qp : queue_pairs_) {
    if (allowed_rate(qp) > 0 && qp.reaction_point.limited()) ++counters_.rp_cur_flows;
  }
}

}  // namespace weir
