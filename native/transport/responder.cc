#include "transport/responder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/aeth.h"

namespace weir {
namespace {

constexpr uint32_t kMostBytes = 1u << 31;  // most bytes of a message (9.3.3.1)

}  // namespace

void Responder::start() {
  expected_ = attributes_.receive_psn & kPsnMask;
  sequence_ = 0;
  nak_sent_ = false;
  message_ = RequestKind::none;
  responses_ = ResponseQueue(attributes_.max_dest_rd_atomic);
  executed_ = Ring<Response>(attributes_.max_dest_rd_atomic);
  marked_ = early_marked_ = discarded_marked_ = false;
  telemetry_.start(attributes_.telemetry);
  early_ = selective() ? std::make_unique<ReorderBuffer>(context_.payload ? attributes_.path_mtu : 0) : nullptr;
}

void Responder::stop() {
  responses_ = ResponseQueue();
  executed_ = Ring<Response>();
  early_.reset();
  telemetry_.start(false);
}

bool Responder::receive(const Bth& bth, const uint8_t* packet, uint32_t length, bool marked) {
  marked &= attributes_.echoes;
  const int32_t ahead = psn_distance(bth.psn, expected_);
  if (ahead > 0) return early(bth, packet, length, marked), true;
  marked_ = marked;
  if (ahead < 0) {
    ++context_.counters.duplicate_request;
    ++received_.duplicates;
    repeat(bth, opcode_shape(plain_opcode(bth.opcode)), packet + kBthHeader);
    return true;
  }
  marked_ |= std::exchange(discarded_marked_, false);
  if (!execute(bth, packet, length)) return false;
  if (early_ == nullptr) return true;
  // Packets that came early follow, as far as they go; a receive that is missing stops them.
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
  early_marked_ &= !early_->empty();
  if (followed) acknowledge();
  if (!early_->empty() && !nak_sent_) negative(kNakSequence);
  ask_for_trimmed();
  return true;
}

void Responder::receive_trimmed(uint32_t psn) {
  if (!attributes_.trim_naks) return;
  const int32_t ahead = psn_distance(psn, expected_);
  if (ahead < 0 || ahead >= static_cast<int32_t>(kMaxSelectiveWindow) || !early_->trim(psn)) {
    return void(++context_.counters.drop_trimmed);
  }
  ask_for_trimmed();
}

// Any NAK that waits is followed by one for what was trimmed, if that was not in it.
void Responder::ask_for_trimmed() {
  const bool waits = !responses_.empty() && responses_.back().kind == Response::Kind::negative;
  if (early_ != nullptr && early_->has_trimmed() && !waits) negative(kNakSequence);
}

// The mark of a packet that is kept is echoed with the NAK that says so, and again with its acknowledgement, when its turn has
// come; that of one that is not, with the acknowledgement of the packet that fills the gap (RFC 3168 section 6.1.3: of any packet
// that arrived).
void Responder::early(const Bth& bth, const uint8_t* packet, uint32_t length, bool marked) {
  ++context_.counters.out_of_sequence;
  bool kept = false;
  if (early_ != nullptr) {
    const bool near = psn_distance(bth.psn, expected_) < static_cast<int32_t>(kMaxSelectiveWindow);
    const uint32_t there = context_.payload ? length : kBthHeader + extension_length(bth.opcode);
    kept = near && early_->keep(bth.psn, packet, there, length, marked);
    if (!kept) ++context_.counters.drop_reorder;
  }
  early_marked_ |= kept && early_->marked(bth.psn);
  discarded_marked_ |= marked && !kept;
  if (!nak_sent_) negative(kNakSequence);
}

// The packet is at the expected PSN. True also when it was not executed but the peer may try again.
bool Responder::execute(const Bth& received, const uint8_t* packet, uint32_t length) {
  // A copy of what has just been written byte by byte waits for all of that: only where it must be another.
  Bth plain;
  if (has_telemetry(received.opcode)) {
    plain = received;
    plain.opcode = plain_opcode(received.opcode);
  }
  const Bth& bth = has_telemetry(received.opcode) ? plain : received;
  const OpcodeShape opcode = opcode_shape(bth.opcode);
  const uint32_t headers = kBthHeader + extension_length(received.opcode);
  const uint32_t payload = length - headers - bth.pad_count;
  nak_sent_ = false;
  const bool continues = opcode.kind != RequestKind::none && !opcode.first;
  if (opcode.kind == RequestKind::none || (continues ? message_ != opcode.kind : message_ != RequestKind::none)) {
    return refuse(kNakInvalidRequest);
  }
  if (!opcode.last && payload != attributes_.path_mtu) return refuse(kNakInvalidRequest);
  if (opcode.last && (payload > attributes_.path_mtu || (!opcode.first && payload == 0))) return refuse(kNakInvalidRequest);
  const Request request{bth, opcode, packet + kBthHeader, packet + headers, payload, length};
  if (opcode.kind == RequestKind::send) return execute_send(request);
  if (opcode.kind == RequestKind::write) return execute_write(request);
  return payload == 0 ? execute_with_response(request) : refuse(kNakInvalidRequest);
}

bool Responder::execute_send(const Request& request) {
  if (receives_.empty()) return not_ready();
  const uint32_t length = request.length;
  const uint32_t offset = request.opcode.first ? 0 : offset_;
  const ReceiveWork& receive = receives_.front();
  if (length > receive.length - std::min(offset, receive.length)) {
    return refuse_receive(kNakInvalidRequest, WorkStatus::local_length_error);
  }
  if (length > 0 && !context_.memory.write(receive.local_key, attributes_.domain, receive.local_address + offset,
                                           context_.payload ? request.payload : nullptr, length)) {
    return refuse_receive(kNakRemoteOperation, WorkStatus::local_protection_error);
  }
  if (request.opcode.last) {
    const bool has_word = (request.opcode.extensions & kHasImmediate) != 0;
    const bool invalidates = with_invalidate(request.bth.opcode);
    const uint32_t word = has_word ? load_be32(request.extension) : 0;
    // A key that may not be taken away is our application's mistake as much as the peer's: no NAK, as with class J errors.
    if (invalidates && !context_.memory.invalidate(word, attributes_.domain)) {
      ++context_.counters.resp_local_operation_errors;
      return false;
    }
    const uint8_t flags = invalidates ? kWithInvalidate : has_word ? kWithImmediate : uint8_t{0};
    receives_.retire({.opcode = WorkOpcode::send,
                      .flags = flags,
                      .bytes = offset + length,
                      .immediate = word,
                      .solicited = request.bth.solicited},
                     qpn_, context_.completions);
  } else {
    receives_.hold();
  }
  return accept(request, offset);
}

bool Responder::execute_write(const Request& request) {
  const bool first = request.opcode.first;
  const uint32_t length = request.length;
  if (first) ++context_.counters.rx_write_requests;
  if ((attributes_.access & kRemoteWrite) == 0) return refuse(kNakInvalidRequest);
  const Reth reth = first ? load_reth(request.extension) : write_;
  const uint32_t offset = first ? 0 : offset_;
  if (reth.dma_length > kMostBytes) return refuse(kNakInvalidRequest);
  const uint32_t remaining = reth.dma_length - offset;
  if (request.opcode.last ? length != remaining : length >= remaining) return refuse(kNakInvalidRequest);
  // All of it is checked at the first packet, and again what each touches: the region may go away in the middle.
  const uint32_t checked = first ? reth.dma_length : length;
  uint8_t* to = nullptr;
  if (checked > 0) {
    to = context_.memory.find(reth.rkey, attributes_.domain, reth.virtual_address + offset, checked, kRemoteWrite, qpn_);
    if (to == nullptr) return refuse(kNakRemoteAccess);
  }
  const bool immediate = (request.opcode.extensions & kHasImmediate) != 0;
  if (immediate && receives_.empty()) return not_ready();
  if (length > 0 && context_.payload) std::memcpy(to, request.payload, length);
  write_ = reth;
  if (immediate) {
    const uint32_t word = load_be32(request.extension + (first ? kRethHeader : 0));
    receives_.retire({.opcode = WorkOpcode::write_immediate,
                      .flags = kWithImmediate,
                      .bytes = reth.dma_length,
                      .immediate = word,
                      .solicited = request.bth.solicited},
                     qpn_, context_.completions);
  }
  return accept(request, offset);
}

// Completes a packet of a SEND or WRITE; its payload is where it belongs, `offset` bytes behind the beginning of the message.
bool Responder::accept(const Request& request, uint32_t offset) {
  message_ = request.opcode.last ? RequestKind::none : request.opcode.kind;
  offset_ = offset + request.length;
  received_.count(request.length, request.packet_bytes, request.opcode.last);
  proceed(1, request.opcode.last);
  if (request.bth.ack_request) acknowledge();
  return true;
}

bool Responder::execute_with_response(const Request& request) {
  const bool read = request.opcode.kind == RequestKind::read;
  ++(read ? context_.counters.rx_read_requests : context_.counters.rx_atomic_requests);
  if (responses_.full()) return ++context_.counters.drop_response_queue, true;
  const bool allowed = (attributes_.access & (read ? kRemoteRead : kRemoteAtomic)) != 0;
  if (!allowed || responses_.waiting_data() >= attributes_.max_dest_rd_atomic) return refuse(kNakInvalidRequest);
  return read ? execute_read(request) : execute_atomic(request);
}

bool Responder::execute_read(const Request& request) {
  const Reth reth = load_reth(request.extension);
  if (reth.dma_length > kMostBytes) return refuse(kNakInvalidRequest);
  if (reth.dma_length > 0 &&
      context_.memory.find(reth.rkey, attributes_.domain, reth.virtual_address, reth.dma_length, kRemoteRead, qpn_) == nullptr) {
    return refuse(kNakRemoteAccess);
  }
  // 2^31 bytes are one packet too many at a path MTU of 256.
  if (packets_of(reth.dma_length, attributes_.path_mtu) > kMostPsns) return refuse(kNakInvalidRequest);
  Response response{.kind = Response::Kind::read};
  set_range(response, request.bth.psn, reth);
  return respond(response);
}

bool Responder::execute_atomic(const Request& request) {
  const AtomicEth atomic = load_atomic(request.extension);
  if ((atomic.virtual_address & 7) != 0) return refuse(kNakInvalidRequest);
  uint8_t* at = context_.memory.find(atomic.rkey, attributes_.domain, atomic.virtual_address, 8, kRemoteAtomic, qpn_);
  if (at == nullptr || (reinterpret_cast<uintptr_t>(at) & 7) != 0) return refuse(kNakRemoteAccess);
  // The application may look at the same word: one step for it too.
  uint64_t* word = reinterpret_cast<uint64_t*>(at);
  uint64_t original = atomic.compare;
  if (request.bth.opcode == kOpcodeRcFetchAdd) {
    original = __atomic_fetch_add(word, atomic.swap_add, __ATOMIC_SEQ_CST);
  } else {
    __atomic_compare_exchange_n(word, &original, atomic.swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  const uint32_t psn = request.bth.psn;
  return respond(
      {.kind = Response::Kind::atomic, .psn = psn, .first_psn = psn, .end_psn = psn_add(psn, 1), .original = original});
}

// Queues the response to a READ or an atomic at the expected PSN.
bool Responder::respond(Response response) {
  proceed(static_cast<uint32_t>(psn_distance(response.end_psn, response.psn)), true);
  response.sequence = sequence_;
  if (executed_.full()) executed_.pop();
  executed_.push(response);
  responses_.push(response);
  return true;
}

// The packets that carry what `reth` asks for, from `psn` on.
void Responder::set_range(Response& response, uint32_t psn, const Reth& reth) const {
  response.psn = response.first_psn = psn;
  response.end_psn = psn_add(psn, packets_of(reth.dma_length, attributes_.path_mtu));
  response.key = reth.rkey;
  response.address = reth.virtual_address;
  response.length = reth.dma_length;
}

// The latest READ or atomic whose packets `psn` is among; null if it is forgotten.
const Response* Responder::executed(uint32_t psn) const {
  for (uint32_t i = executed_.size(); i-- > 0;) {
    const Response& candidate = executed_[i];
    if (psn_distance(psn, candidate.first_psn) >= 0 && psn_distance(candidate.end_psn, psn) > 0) return &candidate;
  }
  return nullptr;
}

// A request from before: READs are answered anew, atomics from memory, all else is acknowledged once more.
void Responder::repeat(const Bth& bth, OpcodeShape opcode, const uint8_t* extension) {
  if (opcode.kind == RequestKind::none) return;
  if (opcode.kind == RequestKind::send || opcode.kind == RequestKind::write) {
    if (bth.ack_request || opcode.last) acknowledge();
    return;
  }
  const bool read = opcode.kind == RequestKind::read;
  const Response* before = executed(bth.psn);
  if (before == nullptr || before->kind != (read ? Response::Kind::read : Response::Kind::atomic)) return;
  Response response = *before;
  response.repeated = true;
  if (read) {
    // The same memory, from the packet on that the peer misses.
    const Reth reth = load_reth(extension);
    const uint64_t skipped = static_cast<uint64_t>(psn_distance(bth.psn, before->first_psn)) * attributes_.path_mtu;
    if (reth.rkey != before->key || reth.virtual_address != before->address + skipped ||
        reth.dma_length > before->length - skipped) {
      return;
    }
    set_range(response, bth.psn, reth);
  }
  if (early_ == nullptr) {
    responses_.truncate(bth.psn, attributes_.path_mtu);
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

bool Responder::refuse(uint8_t syndrome) {
  TransportCounters& counters = context_.counters;
  ++(syndrome == kNakRemoteAccess ? counters.resp_remote_access_errors : counters.resp_invalid_requests);
  negative(syndrome);
  return false;
}

// The receive under way is what is wrong.
bool Responder::refuse_receive(uint8_t syndrome, WorkStatus status) {
  ++context_.counters.resp_local_operation_errors;
  receives_.retire({.status = status}, qpn_, context_.completions);
  negative(syndrome);
  return false;
}

void Responder::proceed(uint32_t packets, bool message_ends) {
  // Packets that came early with PSNs that a READ takes up are nobody's, and trimmed ones are not missing any more.
  const bool kept = early_ != nullptr && (!early_->empty() || early_->has_trimmed());
  for (uint32_t i = 0; kept && i < std::min(packets, kMaxSelectiveWindow); ++i) {
    context_.counters.drop_reorder += early_->drop(psn_add(expected_, i));
  }
  expected_ = psn_add(expected_, packets);
  if (message_ends) sequence_ = psn_add(sequence_, 1);
  // The packets that a waiting NAK asks for have come. An echo that it has is of packets that the next acknowledgement covers.
  if (!responses_.empty() && responses_.back().kind == Response::Kind::negative) {
    marked_ |= responses_.back().echo;
    responses_.pop_back();
  }
}

// Acknowledges up to the last packet executed. One that waits at the end of the queue serves for both.
void Responder::acknowledge() {
  if (!responses_.empty() && responses_.back().kind == Response::Kind::acknowledge && responses_.back().echo == marked_) {
    Response& last = responses_.back();
    last.psn = psn_add(expected_, kPsnMask);
    last.end_psn = expected_;
    last.sequence = sequence_;
    return;
  }
  answer({.echo = marked_, .psn = psn_add(expected_, kPsnMask), .end_psn = expected_, .sequence = sequence_});
}

void Responder::negative(uint8_t syndrome) {
  answer({.kind = Response::Kind::negative,
          .syndrome = syndrome,
          .psn = expected_,
          .end_psn = psn_add(expected_, 1),
          .sequence = sequence_});
  nak_sent_ = true;
}

// An ACK at the end of the queue says less than the new one, which acknowledges all before it too; unless only one of them has
// the echo, for the peer counts the packets with and without it (RFC 8257 section 3.2). A NAK there says as much as an ACK: the
// packet that it asks for is still expected. Where two become one, the echo stays.
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

// The receive of a message under way is still the first in the queue: it is for the message after the MSN. Those that others may
// take are not promised (IBTA volume 1, 9.7.7.2.5).
uint8_t Responder::credits() const {
  return static_cast<uint8_t>(kSyndromeAck | (receives_.shared() ? kNoCredits : credit_code(receives_.size())));
}

void Responder::take_control(OutgoingPacket& out) {
  Response& response = responses_.front();
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
      out.payload_bytes = kMaxSelectiveWindow / 8;
      if (early_->has_trimmed()) {
        ++context_.counters.tx_trim_naks;
        out.header.aeth.syndrome = kNakTrimmed;
        out.payload = early_->bitmap_of_trimmed(response.psn);
        response.echo = false;
        // Packets that have come early wait for a NAK of their own.
        if (!early_->empty()) return;
      } else {
        out.payload = early_->bitmap(response.psn);
        out.header.becn |= std::exchange(early_marked_, false);
      }
      nak_sent_ = false;
    }
  } else {
    ++context_.counters.tx_acks;
    out.header.telemetry = telemetry_.next();
    if (out.header.telemetry != nullptr) out.header.opcode = kOpcodeRcAcknowledge | kOpcodeTelemetry;
  }
  responses_.pop();
  ask_for_trimmed();
}

// Opcode of a READ response's next packet.
uint8_t Responder::opcode_of(const Response& read) const {
  const bool first = read.psn == read.first_psn;
  const bool last = psn_add(read.psn, 1) == read.end_psn;
  const uint8_t opcode = first  ? last ? kOpcodeRcReadResponseOnly : kOpcodeRcReadResponseFirst
                         : last ? kOpcodeRcReadResponseLast
                                : kOpcodeRcReadResponseMiddle;
  return attributes_.telemetry ? opcode | kOpcodeTelemetry : opcode;
}

uint32_t Responder::response_payload(const Response& response) const {
  const uint32_t packet = static_cast<uint32_t>(psn_distance(response.psn, response.first_psn));
  return std::min(attributes_.path_mtu, response.length - packet * attributes_.path_mtu);
}

uint32_t Responder::data_bytes() const {
  if (!has_data()) return 0;
  return packet_length(opcode_of(responses_.front()), response_payload(responses_.front()));
}

bool Responder::take_data(OutgoingPacket& out) {
  Response& response = responses_.front();
  out.payload_bytes = response_payload(response);
  const uint64_t offset = static_cast<uint64_t>(psn_distance(response.psn, response.first_psn)) * attributes_.path_mtu;
  if (out.payload_bytes > 0) {
    out.payload =
        context_.memory.find(response.key, attributes_.domain, response.address + offset, out.payload_bytes, kRemoteRead, qpn_);
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
  out.header.opcode = opcode_of(response);
  out.header.psn = response.psn;
  out.header.aeth = {credits(), response.sequence};
  response.psn = psn_add(response.psn, 1);
  if (response.psn == response.end_psn) responses_.pop();
  return true;
}

}  // namespace weir
