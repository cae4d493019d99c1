#include "transport/responder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/aeth.h"

namespace weir {
namespace {

constexpr uint32_t kMostBytes = 1u << 31;  // of a message (9.3.3.1)

}  // namespace

void Responder::start() {
  expected_ = attributes_.receive_psn & kPsnMask;
  sequence_ = 0;
  nak_sent_ = false;
  message_ = RequestKind::none;
  responses_.start(attributes_.max_dest_rd_atomic, attributes_.path_mtu);
  executed_.start(attributes_.max_dest_rd_atomic);
  marked_ = discarded_marked_ = false;
  early_ = selective() ? std::make_unique<ReorderBuffer>(context_.payload ? attributes_.path_mtu : 0) : nullptr;
}

void Responder::stop() {
  responses_.stop();
  executed_.stop();
  early_.reset();
}

bool Responder::receive(const Bth& bth, const uint8_t* packet, uint32_t length, bool marked) {
  marked &= attributes_.echo_congestion;
  const int32_t ahead = psn_distance(bth.psn, expected_);
  if (ahead > 0) return early(bth, packet, length, marked), true;
  marked_ = marked;
  if (ahead < 0) {
    ++context_.counters.duplicate_request;
    ++received_.duplicates;
    repeat(bth, request_opcode(bth.opcode), packet + kBthHeader);
    return true;
  }
  marked_ |= std::exchange(discarded_marked_, false);
  if (!execute(bth, packet, length)) return false;
  if (early_ == nullptr) return true;
  // What came early follows, as far as it goes; a receive that is missing stops it.
  bool followed = false;
  while (const uint32_t kept = early_->length(expected_)) {
    const uint32_t psn = expected_;
    marked_ = early_->marked(psn);
    early_->drop(psn);
    const uint8_t* bytes = early_->bytes(psn);
    if (!execute(load_bth(bytes), bytes, kept)) return false;
    if (psn == expected_) break;
    followed = true;
  }
  if (followed) acknowledge();
  if (!early_->empty() && !nak_sent_) negative(kNakSequence);
  return true;
}

// The mark of a packet that is kept is echoed with its acknowledgement, when its turn has come; that of one that is not, with the
// acknowledgement of the packet that fills the gap (RFC 3168 section 6.1.3: of any packet that arrived).
void Responder::early(const Bth& bth, const uint8_t* packet, uint32_t length, bool marked) {
  ++context_.counters.out_of_sequence;
  bool kept = false;
  if (early_ != nullptr) {
    const bool near = psn_distance(bth.psn, expected_) < static_cast<int32_t>(kMaxSelectiveWindow);
    const uint32_t there = context_.payload ? length : kBthHeader + extension_length(bth.opcode);
    kept = near && early_->keep(bth.psn, packet, there, length, marked);
    if (!kept) ++context_.counters.drop_reorder;
  }
  discarded_marked_ |= marked && !kept;
  if (!nak_sent_) negative(kNakSequence);
}

// At the expected PSN. True also when it was not executed but the peer may try again.
bool Responder::execute(const Bth& bth, const uint8_t* packet, uint32_t length) {
  const RequestOpcode opcode = request_opcode(bth.opcode);
  const uint8_t* extension = packet + kBthHeader;
  const uint32_t headers = kBthHeader + extension_length(bth.opcode);
  const uint32_t payload = length - headers - bth.pad_count;
  nak_sent_ = false;
  const bool continues = opcode.kind != RequestKind::none && !opcode.first;
  if (opcode.kind == RequestKind::none || (continues ? message_ != opcode.kind : message_ != RequestKind::none)) {
    return refuse(kNakInvalidRequest);
  }
  if (!opcode.last && payload != attributes_.path_mtu) return refuse(kNakInvalidRequest);
  if (opcode.last && (payload > attributes_.path_mtu || (!opcode.first && payload == 0))) return refuse(kNakInvalidRequest);
  switch (opcode.kind) {
    case RequestKind::send:
      return execute_send(bth, opcode, extension, packet + headers, payload);
    case RequestKind::write:
      return execute_write(bth, opcode, extension, packet + headers, payload);
    case RequestKind::read:
      return payload == 0 ? execute_read(bth, extension) : refuse(kNakInvalidRequest);
    default:
      return payload == 0 ? execute_atomic(bth, extension) : refuse(kNakInvalidRequest);
  }
}

bool Responder::execute_send(const Bth& bth, RequestOpcode opcode, const uint8_t* extension, const uint8_t* payload,
                             uint32_t length) {
  if (receives_.empty()) return not_ready();
  const uint32_t offset = opcode.first ? 0 : offset_;
  const ReceiveWork& receive = receives_.front();
  if (length > receive.length - std::min(offset, receive.length)) {
    return refuse_receive(kNakInvalidRequest, WorkStatus::local_length_error);
  }
  if (length > 0) {
    uint8_t* to =
        context_.memory.find(receive.local_key, attributes_.domain, receive.local_address + offset, length, kLocalWrite);
    if (to == nullptr) return refuse_receive(kNakRemoteOperation, WorkStatus::local_protection_error);
    if (context_.payload) std::memcpy(to, payload, length);
  }
  message_ = opcode.last ? RequestKind::none : RequestKind::send;
  offset_ = offset + length;
  if (opcode.last) {
    const bool invalidates = with_invalidate(bth.opcode);
    const uint32_t word = invalidates || with_immediate(bth.opcode) ? load_be32(extension) : 0;
    // A key that may not be taken away is our application's mistake as much as the peer's: no NAK, as with class J errors.
    if (invalidates && !context_.memory.invalidate(word, attributes_.domain)) {
      ++context_.counters.resp_local_operation_errors;
      return false;
    }
    take_receive(invalidates                  ? kWithInvalidate
                 : with_immediate(bth.opcode) ? kWithImmediate
                                              : uint8_t{0},
                 WorkOpcode::send, offset_, word, bth.solicited);
  }
  const uint32_t headers = kBthHeader + static_cast<uint32_t>(payload - extension);
  delivered(length, headers + length + bth.pad_count, opcode.last);
  if (bth.ack_request) acknowledge();
  return true;
}

bool Responder::execute_write(const Bth& bth, RequestOpcode opcode, const uint8_t* extension, const uint8_t* payload,
                              uint32_t length) {
  if (opcode.first) ++context_.counters.rx_write_requests;
  if ((attributes_.access & kRemoteWrite) == 0) return refuse(kNakInvalidRequest);
  const Reth reth = opcode.first ? load_reth(extension) : write_;
  const uint32_t offset = opcode.first ? 0 : offset_;
  if (reth.dma_length > kMostBytes) return refuse(kNakInvalidRequest);
  const uint32_t remaining = reth.dma_length - offset;
  if (opcode.last ? length != remaining : length >= remaining) return refuse(kNakInvalidRequest);
  // All of it at the first packet, and again what each touches: the region may go away in the middle.
  const uint32_t checked = opcode.first ? reth.dma_length : length;
  uint8_t* to = nullptr;
  if (checked > 0) {
    to = context_.memory.find(reth.rkey, attributes_.domain, reth.virtual_address + offset, checked, kRemoteWrite);
    if (to == nullptr) return refuse(kNakRemoteAccess);
  }
  const bool immediate = with_immediate(bth.opcode);
  if (immediate && receives_.empty()) return not_ready();
  if (length > 0 && context_.payload) std::memcpy(to, payload, length);
  write_ = reth;
  offset_ = offset + length;
  message_ = opcode.last ? RequestKind::none : RequestKind::write;
  if (immediate) {
    take_receive(kWithImmediate, WorkOpcode::write_immediate, reth.dma_length,
                 load_be32(extension + (opcode.first ? kRethHeader : 0)), bth.solicited);
  }
  const uint32_t headers = kBthHeader + static_cast<uint32_t>(payload - extension);
  delivered(length, headers + length + bth.pad_count, opcode.last);
  if (bth.ack_request) acknowledge();
  return true;
}

bool Responder::execute_read(const Bth& bth, const uint8_t* extension) {
  ++context_.counters.rx_read_requests;
  if (responses_.full()) return ++context_.counters.drop_response_queue, true;
  const Reth reth = load_reth(extension);
  if ((attributes_.access & kRemoteRead) == 0 || responses_.waiting_data() >= attributes_.max_dest_rd_atomic) {
    return refuse(kNakInvalidRequest);
  }
  if (reth.dma_length > kMostBytes) return refuse(kNakInvalidRequest);
  if (reth.dma_length > 0 &&
      context_.memory.find(reth.rkey, attributes_.domain, reth.virtual_address, reth.dma_length, kRemoteRead) == nullptr) {
    return refuse(kNakRemoteAccess);
  }
  const uint32_t packets = reth.dma_length == 0 ? 1 : (reth.dma_length - 1) / attributes_.path_mtu + 1;
  // 2^31 bytes are one packet too many at a path MTU of 256.
  if (packets > kMostPsns) return refuse(kNakInvalidRequest);
  Response response;
  response.kind = Response::Kind::read;
  response.psn = response.first_psn = bth.psn;
  response.end_psn = psn_add(bth.psn, packets);
  response.key = reth.rkey;
  response.address = reth.virtual_address;
  response.length = reth.dma_length;
  proceed(packets, true);
  response.sequence = sequence_;
  executed_.remember(response);
  responses_.push(response);
  return true;
}

bool Responder::execute_atomic(const Bth& bth, const uint8_t* extension) {
  ++context_.counters.rx_atomic_requests;
  if (responses_.full()) return ++context_.counters.drop_response_queue, true;
  const AtomicEth atomic = load_atomic(extension);
  if ((attributes_.access & kRemoteAtomic) == 0 || (atomic.virtual_address & 7) != 0 ||
      responses_.waiting_data() >= attributes_.max_dest_rd_atomic) {
    return refuse(kNakInvalidRequest);
  }
  uint8_t* at = context_.memory.find(atomic.rkey, attributes_.domain, atomic.virtual_address, 8, kRemoteAtomic);
  if (at == nullptr || (reinterpret_cast<uintptr_t>(at) & 7) != 0) return refuse(kNakRemoteAccess);
  // The application may look at the same word: one step for it too.
  uint64_t* word = reinterpret_cast<uint64_t*>(at);
  uint64_t original = atomic.compare;
  if (bth.opcode == kOpcodeRcFetchAdd) {
    original = __atomic_fetch_add(word, atomic.swap_add, __ATOMIC_SEQ_CST);
  } else {
    __atomic_compare_exchange_n(word, &original, atomic.swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  Response response;
  response.kind = Response::Kind::atomic;
  response.psn = response.first_psn = bth.psn;
  response.end_psn = psn_add(bth.psn, 1);
  response.original = original;
  proceed(1, true);
  response.sequence = sequence_;
  executed_.remember(response);
  responses_.push(response);
  return true;
}

// A request from before: READs are answered anew, atomics from memory, all else is acknowledged once more.
void Responder::repeat(const Bth& bth, RequestOpcode opcode, const uint8_t* extension) {
  if (opcode.kind == RequestKind::none) return;
  if (opcode.kind == RequestKind::send || opcode.kind == RequestKind::write) {
    if (bth.ack_request || opcode.last) acknowledge();
    return;
  }
  const Response* before = executed_.find(bth.psn);
  if (before == nullptr) return;
  Response response = *before;
  response.repeated = true;
  if (opcode.kind == RequestKind::atomic) {
    if (before->kind != Response::Kind::atomic) return;
  } else {
    // The same memory, from the packet on that the peer misses.
    const Reth reth = load_reth(extension);
    if (before->kind != Response::Kind::read) return;
    const uint64_t skipped = static_cast<uint64_t>(psn_distance(bth.psn, before->first_psn)) * attributes_.path_mtu;
    if (reth.rkey != before->key || reth.virtual_address != before->address + skipped ||
        reth.dma_length > before->length - skipped) {
      return;
    }
    const uint32_t packets = reth.dma_length == 0 ? 1 : (reth.dma_length - 1) / attributes_.path_mtu + 1;
    response.psn = response.first_psn = bth.psn;
    response.end_psn = psn_add(bth.psn, packets);
    response.address = reth.virtual_address;
    response.length = reth.dma_length;
  }
  if (early_ == nullptr) {
    responses_.truncate(bth.psn);
    nak_sent_ = false;
  }
  if (responses_.full()) {
    ++context_.counters.drop_response_queue;
    return;
  }
  responses_.push(response);
}

bool Responder::not_ready() {
  ++context_.counters.out_of_buffer;
  discarded_marked_ |= std::exchange(marked_, false);
  negative(static_cast<uint8_t>(kSyndromeRnrNak | attributes_.min_rnr_timer));
  return true;
}

void Responder::take_receive(uint8_t flags, WorkOpcode opcode, uint32_t bytes, uint32_t immediate, bool solicited) {
  Completion completion;
  completion.id = receives_.front().id;
  completion.qpn = qpn_;
  completion.receive = true;
  completion.opcode = opcode;
  completion.flags = flags;
  completion.bytes = bytes;
  completion.immediate = immediate;
  completion.solicited = solicited;
  receives_.pop();
  context_.completions.complete(completion);
}

bool Responder::refuse(uint8_t syndrome) {
  if (syndrome == kNakRemoteAccess) {
    ++context_.counters.resp_remote_access_errors;
  } else {
    ++context_.counters.resp_invalid_requests;
  }
  negative(syndrome);
  return false;
}

// The receive under way is what is wrong.
bool Responder::refuse_receive(uint8_t syndrome, WorkStatus status) {
  ++context_.counters.resp_local_operation_errors;
  Completion completion;
  completion.id = receives_.front().id;
  completion.qpn = qpn_;
  completion.receive = true;
  completion.status = status;
  receives_.pop();
  context_.completions.complete(completion);
  negative(syndrome);
  return false;
}

void Responder::proceed(uint32_t packets, bool message_ends) {
  // What came early with PSNs that a READ takes up is nobody's.
  for (uint32_t i = 1; early_ != nullptr && !early_->empty() && i < std::min(packets, kMaxSelectiveWindow); ++i) {
    context_.counters.drop_reorder += early_->drop(psn_add(expected_, i));
  }
  expected_ = psn_add(expected_, packets);
  if (message_ends) sequence_ = psn_add(sequence_, 1);
  // What a NAK that still waits asks for has come. An echo that it has is of packets that the next acknowledgement covers.
  if (!responses_.empty() && responses_.back().kind == Response::Kind::negative) {
    marked_ |= responses_.back().echo;
    responses_.pop_back();
  }
}

void Responder::delivered(uint32_t payload, uint32_t transport_bytes, bool message_ends) {
  received_.count(payload, transport_bytes, message_ends);
  proceed(1, message_ends);
}

// Up to the last packet executed. One that waits at the end of the queue serves for both.
void Responder::acknowledge() {
  Response response;
  response.psn = psn_add(expected_, kPsnMask);
  response.end_psn = expected_;
  response.sequence = sequence_;
  response.echo = marked_;
  answer(response);
}

void Responder::negative(uint8_t syndrome) {
  Response response;
  response.kind = Response::Kind::negative;
  response.syndrome = syndrome;
  response.psn = expected_;
  response.end_psn = psn_add(expected_, 1);
  response.sequence = sequence_;
  answer(response);
  nak_sent_ = true;
}

// An ACK at the end of the queue says less than the new one, which acknowledges all before it too; unless only one of them has
// the echo, for the peer counts the packets with and without it (RFC 8257 section 3.2). A NAK there says as much as an ACK: what
// it asks for is still expected. Where two become one, the echo stays.
void Responder::answer(const Response& response) {
  const Response::Kind last = responses_.empty() ? Response::Kind::read : responses_.back().kind;
  const bool acknowledges = response.kind == Response::Kind::acknowledge;
  if (last == Response::Kind::negative && acknowledges) {
    responses_.back().echo |= response.echo;
  } else if (last == Response::Kind::negative ||
             (last == Response::Kind::acknowledge &&
              (!acknowledges || responses_.back().echo == response.echo || responses_.full()))) {
    const bool echo = responses_.back().echo;
    responses_.back() = response;
    responses_.back().echo |= echo;
  } else if (responses_.full()) {
    ++context_.counters.drop_response_queue;
  } else {
    responses_.push(response);
  }
}

// The receive of a message under way is still the first in the queue: it is for the message after the MSN.
uint8_t Responder::credits() const { return static_cast<uint8_t>(kSyndromeAck | credit_code(receives_.size())); }

void Responder::take_control(OutgoingPacket& out) {
  const Response& response = responses_.front();
  out.header.psn = response.psn;
  out.header.becn = response.echo;
  out.header.aeth = {credits(), response.sequence};
  out.header.opcode = kOpcodeRcAcknowledge;
  if (response.kind == Response::Kind::atomic) {
    out.header.opcode = kOpcodeRcAtomicAcknowledge;
    out.header.atomic_original = response.original;
  } else if (response.kind == Response::Kind::negative) {
    out.header.aeth.syndrome = response.syndrome;
    ++context_.counters.tx_naks;
    if (response.syndrome == kNakSequence && early_ != nullptr) {
      early_->bitmap(response.psn, missing_);
      out.payload = missing_;
      out.payload_bytes = sizeof missing_;
      nak_sent_ = false;
    }
  } else {
    ++context_.counters.tx_acks;
  }
  responses_.pop();
}

uint32_t Responder::response_payload(const Response& response) const {
  const uint32_t packet = static_cast<uint32_t>(psn_distance(response.psn, response.first_psn));
  return std::min(attributes_.path_mtu, response.length - packet * attributes_.path_mtu);
}

uint32_t Responder::data_bytes() const {
  if (responses_.empty() || responses_.front().kind != Response::Kind::read) return 0;
  const Response& response = responses_.front();
  const bool middle = response.psn != response.first_psn && psn_add(response.psn, 1) != response.end_psn;
  return kBthHeader + (middle ? 0 : kAethHeader) + ((response_payload(response) + 3) & ~3u) + kIcrc;
}

bool Responder::take_data(OutgoingPacket& out) {
  Response& response = responses_.front();
  const bool first = response.psn == response.first_psn;
  const bool last = psn_add(response.psn, 1) == response.end_psn;
  out.payload_bytes = response_payload(response);
  const uint64_t offset = static_cast<uint64_t>(psn_distance(response.psn, response.first_psn)) * attributes_.path_mtu;
  if (out.payload_bytes > 0) {
    out.payload =
        context_.memory.find(response.key, attributes_.domain, response.address + offset, out.payload_bytes, kRemoteRead);
    if (out.payload == nullptr) {
      ++context_.counters.resp_remote_access_errors;
      const uint32_t psn = response.psn;
      responses_.clear();
      negative(kNakRemoteAccess);
      responses_.back().psn = psn;
      return false;
    }
    if (!context_.payload) out.payload = nullptr;
  }
  out.header.opcode = first && last ? kOpcodeRcReadResponseOnly
                      : first       ? kOpcodeRcReadResponseFirst
                      : last        ? kOpcodeRcReadResponseLast
                                    : kOpcodeRcReadResponseMiddle;
  out.header.psn = response.psn;
  out.header.aeth = {credits(), response.sequence};
  response.psn = psn_add(response.psn, 1);
  if (last) responses_.pop();
  return true;
}

}  // namespace weir
