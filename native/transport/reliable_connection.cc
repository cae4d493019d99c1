#include "transport/reliable_connection.h"

#include "transport/aeth.h"
#include "wire/telemetry.h"

namespace weir {
namespace {

constexpr Time kFreeze = 10 * kMillisecond;  // freeze of REPS after a timeout

}  // namespace

ReliableConnection::ReliableConnection(uint32_t qpn, const TransportContext& context, uint32_t send_depth, uint32_t receive_depth,
                                       SharedReceives* shared)
    : VerbsTransport(qpn, context, send_depth, receive_depth, shared),
      requester_(attributes_, context_, sends_),
      completer_(qpn, attributes_, context_, sends_, requester_, received_),
      responder_(qpn, attributes_, context_, receives_, received_) {}

void ReliableConnection::stop() {
  sends_.stop();
  requester_.stop();
  responder_.stop();
}

void ReliableConnection::enter(QueuePairState from, const QueueAttributes& attributes) {
  if (state_ != QueuePairState::rts) {
    attributes_ = attributes;
    attributes_.window = packets_in_flight(attributes);
    attributes_.informs = acknowledges_each(attributes);
    attributes_.echoes |= attributes_.informs;
    if (state_ == QueuePairState::rtr) responder_.start();
    return;
  }
  // All else is settled: the responder is at work with it.
  attributes_.access = attributes.access;
  attributes_.min_rnr_timer = attributes.min_rnr_timer;
  const bool was_rts = from == QueuePairState::rts;
  if (was_rts && send_queue_ == SendQueueState::runs) return;
  attributes_.timeout = attributes.timeout;
  attributes_.retry_count = attributes.retry_count;
  attributes_.rnr_retry = attributes.rnr_retry;
  if (was_rts) return;
  attributes_.send_psn = attributes.send_psn;
  attributes_.max_rd_atomic = attributes.max_rd_atomic;
  const bool marks = attributes_.recovery == LossRecovery::selective_repeat || attributes_.informs;
  sends_.start(attributes_.send_psn & kPsnMask, marks ? attributes_.window : 0);
  if (attributes_.spraying != Spraying::none) {
    const Time freeze = stretched(kFreeze, attributes_.time_scale);
    sends_.entropy = std::make_unique<Entropy>(attributes_.spraying, attributes_.entropies, freeze,
                                               Random(attributes_.send_psn, attributes_.remote_qpn, qpn_));
  }
  requester_.start();
  completer_.start();
}

bool ReliableConnection::serves(const SendWork& work) const {
  if (work.opcode > WorkOpcode::fetch_add) return false;
  const bool atomic = work.opcode == WorkOpcode::compare_swap || work.opcode == WorkOpcode::fetch_add;
  return atomic ? work.length == 8 : work.length <= kMaxMessage;
}

bool ReliableConnection::receive(Time now, const uint8_t* frame, const PacketMeta& meta) {
  if (!may_receive()) return ++context_.counters.drop_wrong_state, false;
  changed_ = true;
  if (fails_by(meta)) return true;
  const uint8_t* packet = frame + meta.bth_offset;
  const Bth bth = load_bth(packet);
  if (!admits(bth.partition_key)) return ++context_.counters.drop_partition_key, false;
  const uint32_t headers = kBthHeader + extension_length(bth.opcode);
  const uint8_t* const telemetry = has_telemetry(bth.opcode) ? packet + telemetry_offset(bth.opcode) : nullptr;
  if (!is_response(plain_opcode(bth.opcode))) {
    if (telemetry != nullptr) responder_.take_telemetry(telemetry);
    if (!responder_.receive(bth, packet, headers + meta.payload_length + bth.pad_count, meta.ecn == 3)) {
      fail(WorkStatus::success);
    }
    return true;
  }
  if (state_ != QueuePairState::rts) return ++context_.counters.drop_wrong_state, false;
  if (telemetry != nullptr) completer_.take_telemetry(telemetry);
  const WorkStatus status =
      completer_.receive(now, bth, packet + kBthHeader, packet + headers, meta.payload_length, meta.ecn == 3);
  if (status != WorkStatus::success) fail(status);
  return true;
}

void ReliableConnection::receive_trimmed(Time now, const uint8_t* frame, const PacketMeta& meta) {
  const RequestKind kind = opcode_shape(plain_opcode(meta.opcode)).kind;
  const bool response = is_read_response(plain_opcode(meta.opcode));
  if (!response && kind != RequestKind::send && kind != RequestKind::write) return;
  if (!may_receive() || (response && state_ != QueuePairState::rts)) return void(++context_.counters.drop_wrong_state);
  if (!admits(load_bth(frame + meta.bth_offset).partition_key)) return void(++context_.counters.drop_partition_key);
  changed_ = true;
  response ? completer_.receive_trimmed(now, meta.psn) : responder_.receive_trimmed(meta.psn);
}

void ReliableConnection::take_control(OutgoingPacket& out) {
  changed_ = true;
  responder_.take_control(out);
  if (attributes_.spraying != Spraying::none) {
    answer_entropy_ = static_cast<uint16_t>((answer_entropy_ + 1) % attributes_.entropies);
    out.header.entropy = answer_entropy_;
  }
  address(out);
}

// Responses that wait are still sent when the queue pair has failed: the last of them says why.
bool ReliableConnection::responder_next() const {
  if (!responder_.has_data()) return false;
  return !responded_last_ || !requests() || requester_.data_bytes(begins()) == 0;
}

// Asked for several times for each packet, and seldom different.
uint32_t ReliableConnection::data_bytes() const {
  if (changed_) {
    changed_ = false;
    const uint32_t bytes = responder_next() ? responder_.data_bytes() : requests() ? requester_.data_bytes(begins()) : 0;
    data_bytes_ = static_cast<uint16_t>(bytes);
  }
  return data_bytes_;
}

bool ReliableConnection::take_data(Time now, OutgoingPacket& out) {
  data_bytes();  // the requester chooses by this
  changed_ = true;
  responded_last_ = responder_next();
  if (responded_last_) {
    if (!responder_.take_data(out)) return fail(WorkStatus::success), false;
  } else {
    uint64_t failed = 0;
    if (!requester_.take(now, out, failed)) {
      return fail(completer_.blame(failed, WorkStatus::local_protection_error)), false;
    }
    completer_.sent(now);
  }
  address(out);
  return true;
}

void ReliableConnection::address(OutgoingPacket& out) const {
  out.header.destination_qp = attributes_.remote_qpn;
  out.header.partition_key = attributes_.partition_key;
}

void ReliableConnection::advance(Time now) {
  if (state_ != QueuePairState::rts) return;
  changed_ = true;
  const WorkStatus status = completer_.advance(now);
  if (status != WorkStatus::success) fail(status);
}

}  // namespace weir
