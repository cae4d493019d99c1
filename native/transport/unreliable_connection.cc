#include "transport/unreliable_connection.h"

#include <algorithm>
#include <cstring>

#include "transport/psn.h"

namespace weir {

void UnreliableConnection::enter(QueuePairState from, const QueueAttributes& attributes) {
  if (state_ != QueuePairState::rts) {
    attributes_ = attributes;
    expected_ = attributes.receive_psn & kPsnMask;
    message_ = RequestKind::none;
    return;
  }
  attributes_.access = attributes.access;
  if (from == QueuePairState::rts) return;
  psn_ = attributes.send_psn & kPsnMask;
  sends_.start(psn_, 0);
  sent_ = 0;
}

void UnreliableConnection::stop() {
  UnacknowledgedSends::stop();
  sends_.stop();
  sent_ = 0;
}

bool UnreliableConnection::serves(const SendWork& work) const {
  return work.length <= kMaxMessage && !has_response(work.opcode) && work.opcode != WorkOpcode::send_invalidate;
}

// ---- what goes out ----

uint32_t UnreliableConnection::payload_now() const { return std::min(attributes_.path_mtu, work().length - sent_); }

uint8_t UnreliableConnection::opcode_now() const {
  const bool last = work().length - sent_ <= attributes_.path_mtu;
  return kOpcodeUnreliable | packet_opcode(work().opcode, sent_ == 0, last);
}

uint32_t UnreliableConnection::data_bytes() const {
  if (state_ != QueuePairState::rts || !more() || !(begins() || sent_ > 0)) return 0;
  return packet_length(opcode_now(), payload_now());
}

bool UnreliableConnection::take_data(Time, OutgoingPacket& out) {
  const SendWork& work = this->work();
  out.payload_bytes = payload_now();
  if (out.payload_bytes > 0) {
    out.payload = context_.memory.read(work.local_key, attributes_.domain, work.local_address + sent_, out.payload_bytes);
    if (out.payload == nullptr) return sent_ = 0, refuse_message(WorkStatus::local_protection_error), false;
  }
  out.header.opcode = opcode_now();
  out.header.destination_qp = attributes_.remote_qpn;
  out.header.partition_key = attributes_.partition_key;
  out.header.psn = psn_;
  out.header.reth = {work.remote_address, work.remote_key, work.length};
  out.header.immediate = work.immediate;
  sent_ += out.payload_bytes;
  const bool whole = sent_ == work.length;
  out.header.solicited = whole && needs_receive(work.opcode) && (work.flags & kSolicited) != 0;
  psn_ = psn_add(psn_, 1);
  if (!whole) return true;
  sent_ = 0;
  take_whole();
  return true;
}

// ---- what comes in ----

// A packet that does not fit is dropped with the rest of its message; it was valid all the same.
bool UnreliableConnection::receive(Time, const uint8_t* frame, const PacketMeta& meta) {
  if (!may_receive()) return ++context_.counters.drop_wrong_state, false;
  if (fails_by(meta)) return true;
  const uint8_t* packet = frame + meta.bth_offset;
  const Bth bth = load_bth(packet);
  if (!admits(bth.partition_key)) return ++context_.counters.drop_partition_key, false;
  const uint32_t headers = kBthHeader + extension_length(bth.opcode);
  const Piece piece{opcode_shape(bth.opcode & kOpcodeOperation), packet + kBthHeader, packet + headers, meta.payload_length,
                    bth.solicited};
  const bool gap = bth.psn != expected_;
  context_.counters.out_of_sequence += gap;
  if (gap || piece.opcode.first) message_ = RequestKind::none;
  expected_ = psn_add(bth.psn, 1);
  const bool begins = piece.opcode.first;
  const uint32_t length = piece.length;
  bool good = begins || message_ == piece.opcode.kind;
  good &= piece.opcode.last ? length <= attributes_.path_mtu && (begins || length > 0) : length == attributes_.path_mtu;
  if (begins) offset_ = 0;
  if (!good || !(piece.opcode.kind == RequestKind::send ? take_send(piece) : take_write(piece))) {
    message_ = RequestKind::none;
    ++context_.counters.drop_message;
    return true;
  }
  offset_ += length;
  message_ = piece.opcode.last ? RequestKind::none : piece.opcode.kind;
  received_.count(length, headers + length + meta.pad_count, piece.opcode.last);
  return true;
}

bool UnreliableConnection::take_send(const Piece& piece) {
  if (receives_.empty()) return false;
  const ReceiveWork& work = receives_.front();
  if (piece.length > work.length - std::min(offset_, work.length)) return false;
  if (piece.length > 0 &&
      !context_.memory.write(work.local_key, attributes_.domain, work.local_address + offset_, piece.payload, piece.length)) {
    receives_.retire({.status = WorkStatus::local_protection_error}, qpn_, context_.completions);
    return fail(WorkStatus::success), false;
  }
  if (!piece.opcode.last) return receives_.hold(), true;
  const bool immediate = (piece.opcode.extensions & kHasImmediate) != 0;
  receives_.retire({.flags = immediate ? kWithImmediate : uint8_t{0},
                    .bytes = offset_ + piece.length,
                    .immediate = immediate ? load_be32(piece.extension) : 0,
                    .solicited = piece.solicited},
                   qpn_, context_.completions);
  return true;
}

bool UnreliableConnection::take_write(const Piece& piece) {
  const bool first = piece.opcode.first;
  if (first) {
    ++context_.counters.rx_write_requests;
    write_ = load_reth(piece.extension);
  }
  if ((attributes_.access & kRemoteWrite) == 0) return false;
  const uint64_t remaining = uint64_t{write_.dma_length} - offset_;
  if (piece.opcode.last ? piece.length != remaining : piece.length >= remaining) return false;
  const bool immediate = (piece.opcode.extensions & kHasImmediate) != 0;
  if (immediate && receives_.empty()) return false;
  // All of it is checked at the first packet, and again what each touches: the region may go away in the middle.
  const uint32_t checked = first ? write_.dma_length : piece.length;
  if (checked > 0) {
    uint8_t* to =
        context_.memory.find(write_.rkey, attributes_.domain, write_.virtual_address + offset_, checked, kRemoteWrite, qpn_);
    if (to == nullptr) return false;
    if (piece.length > 0) std::memcpy(to, piece.payload, piece.length);
  }
  if (!immediate) return true;
  receives_.retire({.opcode = WorkOpcode::write_immediate,
                    .flags = kWithImmediate,
                    .bytes = write_.dma_length,
                    .immediate = load_be32(piece.extension + (first ? kRethHeader : 0)),
                    .solicited = piece.solicited},
                   qpn_, context_.completions);
  return true;
}

}  // namespace weir
