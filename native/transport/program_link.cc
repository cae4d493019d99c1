#include "transport/program_link.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "transport/aeth.h"
#include "transport/opcode.h"

namespace weir {
namespace {

constexpr uint32_t kPacketMask = kProgramPackets - 1;
static_assert((kProgramPackets & kPacketMask) == 0 && (kProgramFrames & (kProgramFrames - 1)) == 0);
static_assert((kProgramRoom & (kProgramRoom - 1)) == 0 && kProgramRoom % kProgramFramePlace == 0);

constexpr uint32_t place_for(uint32_t length) {
  return (sizeof(ProgramFrame) + length + kProgramFramePlace - 1) / kProgramFramePlace * kProgramFramePlace;
}

// Goes ahead of data, unpaced.
bool is_control(const ProgramPacket& packet) {
  return packet.opcode == kOpcodeRcAcknowledge || packet.opcode == kOpcodeRcAtomicAcknowledge;
}

// Whether it tells the peer that its request of that PSN, and all before it, are done.
bool answers(const ProgramPacket& packet) {
  return is_response(packet.opcode) &&
         (packet.opcode != kOpcodeRcAcknowledge || (packet.aeth.syndrome & kSyndromeKind) == kSyndromeAck);
}

}  // namespace

ProgramLink::ProgramLink(ProgramMemory& memory) : memory_(memory) {
  memory_.layout = kProgramLayout;
  free_.reserve(kProgramPackets);
  told_.reserve(kProgramPackets);
}

void ProgramLink::take_in(TransportCounters& counters) {
  const uint32_t written = memory_.submitted_written.load(std::memory_order_acquire);
  // One that runs ahead of itself is not believed: the next look begins where it says to be.
  if (written - submitted_ > kProgramPackets) {
    refuse(counters);
    submitted_ = written;
  }
  for (; submitted_ != written; ++submitted_) {
    const uint32_t slot = memory_.submitted[submitted_ & kPacketMask].load(std::memory_order_relaxed);
    if (slot >= kProgramPackets || slots_[slot].held) {
      refuse(counters);
      continue;
    }
    Slot& at = slots_[slot];
    at.held = true;
    std::memcpy(&at.packet, &memory_.packets[slot].packet, sizeof at.packet);
    const auto found = transports_.find(at.packet.qpn);
    if (found != transports_.end() && (at.packet.flags & ProgramPacket::kWithdrawal) != 0) {
      found->second->drop(found->second->requests_);
      give_back(slot);
      continue;
    }
    if (found == transports_.end() || !found->second->allows(at.packet)) {
      refuse(counters);
      give_back(slot);
      continue;
    }
    found->second->push(slot);
    ++passed_;
    if (told_.empty() || told_.back() != at.packet.qpn) told_.push_back(at.packet.qpn);
  }
  memory_.submitted_read.store(submitted_, std::memory_order_release);
}

void ProgramLink::give_back(uint32_t slot) { free_.push_back(slot); }

bool ProgramLink::deliver(Time now, const uint8_t* frame, const PacketMeta& meta, uint32_t reads, bool continues) {
  // Takes the frame up to the pad: bytes behind it have been checked.
  const uint8_t opcode = plain_opcode(meta.opcode);
  const uint32_t headers = meta.bth_offset + kBthHeader + extension_length(opcode);
  const uint32_t length = headers + meta.payload_length + uint32_t{meta.pad_count};
  const uint32_t read = memory_.frames_read.load(std::memory_order_acquire);
  if (frames_ - read >= kProgramFrames || length > kProgramFrameBytes) return false;
  const auto next_round = [&] { return (filled_ + kProgramRoom - 1) / kProgramRoom * kProgramRoom; };
  if (read == frames_) {
    filled_ = next_round();
    read_at_ = now;
  }
  const uint32_t bytes = place_for(length);
  const uint32_t begin = filled_ % kProgramRoom + bytes > kProgramRoom ? next_round() : filled_;
  const uint32_t waiting = waiting_bytes(read);
  // A program that has read what it had given back already is full.
  if (waiting > kProgramRoom || begin - filled_ + bytes > kProgramRoom - waiting) return false;
  filled_ = begin + bytes;
  begins_[frames_ % kProgramFrames] = begin;
  memory_.places[frames_ % kProgramFrames].store(begin % kProgramRoom, std::memory_order_relaxed);
  auto& to = *reinterpret_cast<ProgramFrame*>(&memory_.room[begin % kProgramRoom]);
  to.meta = meta;
  to.length = length;
  to.reads = reads;
  if (opcode == meta.opcode) {
    std::memcpy(to.bytes(), frame, length);
  } else {
    std::memcpy(to.bytes(), frame, headers);
    std::memcpy(to.bytes() + headers, frame + headers + kTelemetryHeader, length - headers);
    to.meta.opcode = to.bytes()[meta.bth_offset] = opcode;
  }
  memory_.frames_written.store(++frames_, std::memory_order_release);
  ++passed_;
  given_frames_ = true;
  has_news_ |= !continues;
  continued_ += continues ? 1 : 0;
  return true;
}

bool ProgramLink::crowded(Time now) {
  const uint32_t read = memory_.frames_read.load(std::memory_order_acquire);
  if (std::exchange(seen_read_, read) != read) read_at_ = now;
  const uint32_t frames = frames_ - read;
  const uint32_t share = crowded_ ? 4 : 2;
  const bool fills = waiting_bytes(read) > kProgramRoom / share || frames > kProgramFrames / share;
  crowded_ = fills && frames <= kProgramFrames;
  const bool holds = crowded_ && now - read_at_ < kPatience;
  memory_.holds.store(holds ? 1 : 0, std::memory_order_relaxed);
  return holds;
}

void ProgramLink::publish() {
  if (free_.empty()) return;
  for (const uint32_t slot : free_) {
    slots_[slot].held = false;
    memory_.returned[returned_++ & kPacketMask].store(slot, std::memory_order_relaxed);
  }
  free_.clear();
  memory_.returned_written.store(returned_, std::memory_order_release);
  given_slots_ = true;
}

// It is the program's word about itself. Each frame and each packet is counted once where it is, so of nothing there is more than
// have passed; what runs back is not believed.
void ProgramLink::count(TransportCounters& counters) {
  for (int i = 0; i < TransportCounters::kCount; ++i) {
    const uint64_t counted = memory_.counted[i].load(std::memory_order_relaxed);
    const uint64_t before = std::exchange(counted_.words()[i], counted);
    if (counted <= before) continue;
    uint64_t& believed = believed_.words()[i];
    const uint64_t more = std::min(counted - before, passed_ - believed);
    believed += more;
    counters.words()[i] += more;
  }
}

void ProgramLink::drop_frames(TransportCounters& counters) {
  const uint32_t left = frames_ - memory_.frames_read.load(std::memory_order_acquire);
  counters.drop_program_busy += std::min(left, kProgramFrames);
}

bool ProgramLink::take_wake() {
  if (!given_frames_ && !given_slots_) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool sleeps = memory_.program_sleeps.load(std::memory_order_relaxed) != 0;
  const bool wakes = sleeps && (given_frames_ || has_slots_wanted());
  if (has_cause()) {
    has_news_ = false;
    continued_ = 0;
  }
  given_frames_ = given_slots_ = false;
  return wakes;
}

RelayedTransport::RelayedTransport(uint32_t qpn, const TransportContext& context, ProgramLink& link, Service service)
    : VerbsTransport(qpn, context, 1, 1), link_(link), service_(service) {
  link_.attach(qpn, *this);
}

RelayedTransport::~RelayedTransport() {
  link_.detach(qpn_);
  drop_all();
}

void RelayedTransport::enter(QueuePairState from, const QueueAttributes& attributes) {
  if (from == QueuePairState::rtr || from == QueuePairState::rts) return;
  attributes_ = attributes;
  unanswered_ = attributes.receive_psn;
  if (state_ != QueuePairState::rtr || service_ != Service::connection) return;
  link_.memory_.watches.store(attributes.informs ? 1 : 0, std::memory_order_release);
  if (!attributes.informs) return;
  watch_ = std::make_unique<ConnectionWatch>(packets_in_flight(attributes), attributes.telemetry);
  expected_reads_ = 0;
  echo_.start(attributes.telemetry);
}

bool RelayedTransport::allows(const ProgramPacket& packet) const {
  if (state_ == QueuePairState::reset || state_ == QueuePairState::init) return false;
  if (packet.payload_bytes > (is_control(packet) ? kMaxSelectiveWindow / 8 : attributes_.path_mtu)) return false;
  // Keys with that bit are of those who manage (IBTA volume 1, 10.2.5), which programs are not.
  if (service_ == Service::datagram && (packet.queue_key & kPrivilegedQueueKey) != 0) return false;
  return understands(packet.opcode) && !has_telemetry(packet.opcode) &&
         (is_unreliable(packet.opcode) || extensions(packet.opcode) != 0 ||
          opcode_shape(packet.opcode).kind != RequestKind::none || packet.opcode == kOpcodeRcReadResponseMiddle);
}

bool RelayedTransport::receive(Time now, const uint8_t* frame, const PacketMeta& meta) {
  if (!may_receive() && state_ != QueuePairState::error) return ++context_.counters.drop_wrong_state, false;
  if (!link_.deliver(now, frame, meta, expected_reads_, continues(frame, meta)))
    return ++context_.counters.drop_program_busy, ++link_.busy_drops_, false;
  if (watch_ != nullptr) hear(now, frame, meta);
  if (is_response(plain_opcode(meta.opcode)) && meta.payload_length == 0) return true;
  received_.count(meta.payload_length, kBthHeader + extension_length(meta.opcode) + meta.payload_length + meta.pad_count,
                  service_ == Service::datagram || opcode_shape(meta.opcode & kOpcodeOperation).last);
  return true;
}

// A request behind a gap is asked for again, and one that asks for an acknowledgement is answered; a response makes room for more
// requests, all of them at once, unless the rest of it is still to come.
bool RelayedTransport::continues(const uint8_t* frame, const PacketMeta& meta) {
  if (service_ != Service::connection) return false;
  const Bth bth = load_bth(frame + meta.bth_offset);
  const uint8_t opcode = plain_opcode(meta.opcode);
  const bool responds = is_response(opcode);
  const bool has_rest = opcode == kOpcodeRcReadResponseFirst || opcode == kOpcodeRcReadResponseMiddle;
  const bool follows = std::exchange(following_[responds ? 1 : 0], psn_add(bth.psn, 1)) == bth.psn;
  if (responds) return follows && has_rest && watch_ == nullptr;
  return follows && watch_ == nullptr && !bth.ack_request && !opcode_shape(meta.opcode & kOpcodeOperation).last;
}

// Hears a frame as far as the program takes it as an answer, too.
void RelayedTransport::hear(Time now, const uint8_t* frame, const PacketMeta& meta) {
  const uint8_t* const packet = frame + meta.bth_offset;
  const Bth bth = load_bth(packet);
  if (!admits(bth.partition_key)) return;
  const uint8_t* const telemetry = has_telemetry(bth.opcode) ? packet + telemetry_offset(bth.opcode) : nullptr;
  if (!is_response(plain_opcode(bth.opcode))) {
    if (telemetry != nullptr) echo_.take(telemetry, context_.counters);
    return;
  }
  if (state_ != QueuePairState::rts) return;
  if (telemetry != nullptr) watch_->take_telemetry(telemetry, context_.counters);
  const Aeth aeth = (extensions(bth.opcode) & kHasAeth) != 0 ? load_aeth(packet + kBthHeader) : Aeth{};
  watch_->hear(now, bth, aeth, meta.ecn == 3, waiting_end());
}

uint32_t RelayedTransport::waiting_end() const {
  if (requests_.last == ProgramLink::kNone) return watch_->end();
  const ProgramLink::Slot& last = link_.slots_[requests_.last];
  return psn_add(last.packet.psn, last.packets);
}

// Packets go in the program's order, but for requests that are held.
uint32_t RelayedTransport::next_watched() const {
  if (requests_.first == ProgramLink::kNone) return responses_.first;
  const ProgramLink::Slot& request = link_.slots_[requests_.first];
  const bool allowed = !holds_requests_ && watch_->allows(request.packet.psn, request.packets);
  if (state_ == QueuePairState::rts && !allowed) return responses_.first;
  if (responses_.first == ProgramLink::kNone) return requests_.first;
  return static_cast<int32_t>(request.turn - link_.slots_[responses_.first].turn) < 0 ? requests_.first : responses_.first;
}

uint32_t RelayedTransport::data_bytes() const {
  const uint32_t slot = next();
  if (slot == ProgramLink::kNone) return 0;
  const ProgramPacket& packet = link_.slots_[slot].packet;
  return packet_length(watch_ == nullptr ? packet.opcode : wire_opcode(packet), packet.payload_bytes);
}

bool RelayedTransport::take_data(Time now, OutgoingPacket& out) {
  const uint32_t slot = next();
  const bool response = is_response(link_.slots_[slot].packet.opcode);
  if (response) ++responses_taken_;
  pop(response && watch_ != nullptr ? responses_ : requests_);
  if (service_ == Service::datagram) {
    out.headers = context_.addresses->find(link_.slots_[slot].packet.address_handle);
    if (out.headers == nullptr) return link_.refuse(context_.counters), link_.give_back(slot), false;
  }
  fill(out, slot);
  if (watch_ != nullptr) fill_watched(now, out, slot);
  return true;
}

// Each request asks for an acknowledgement.
void RelayedTransport::fill_watched(Time now, OutgoingPacket& out, uint32_t slot) {
  const ProgramLink::Slot& at = link_.slots_[slot];
  out.header.opcode = wire_opcode(at.packet);
  if (is_response(at.packet.opcode)) return;
  out.header.ack_request = true;
  if (state_ != QueuePairState::rts) return;
  const RequestKind kind = opcode_shape(at.packet.opcode).kind;
  watch_->sent(now, at.packet.psn, at.packets, kind == RequestKind::read || kind == RequestKind::atomic);
}

// Marks are echoed where peers go by that.
void RelayedTransport::take_control(OutgoingPacket& out) {
  fill(out, pop(control_));
  out.header.becn &= watch_ != nullptr;
  if (watch_ == nullptr || out.header.opcode != kOpcodeRcAcknowledge) return;
  if ((out.header.aeth.syndrome & kSyndromeKind) != kSyndromeAck) return;
  out.header.telemetry = echo_.next();
  if (out.header.telemetry != nullptr) out.header.opcode = kOpcodeRcAcknowledge | kOpcodeTelemetry;
}

void RelayedTransport::push(uint32_t slot) {
  ProgramLink::Slot& at = link_.slots_[slot];
  if (is_control(at.packet)) {
    at.behind = responses_submitted_;
    return append(control_, slot);
  }
  if (is_response(at.packet.opcode)) ++responses_submitted_;
  watch_ == nullptr ? append(requests_, slot) : push_watched(at, slot);
}

// A program that goes back sends all from there on again, and what is before that is acknowledged: what waits would only hold it
// up.
void RelayedTransport::push_watched(ProgramLink::Slot& at, uint32_t slot) {
  at.turn = turns_++;
  if (is_response(at.packet.opcode)) return append(responses_, slot);
  at.packet.psn &= kPsnMask;
  const bool read = at.packet.opcode == kOpcodeRcReadRequest;
  at.packets = read ? std::min(packets_of(at.packet.reth.dma_length, attributes_.path_mtu), kMostPsns) : 1;
  if (requests_.last != ProgramLink::kNone && psn_distance(at.packet.psn, waiting_end()) < 0) drop(requests_);
  append(requests_, slot);
}

void RelayedTransport::append(Queue& queue, uint32_t slot) {
  link_.slots_[slot].next = ProgramLink::kNone;
  (queue.last == ProgramLink::kNone ? queue.first : link_.slots_[queue.last].next) = slot;
  queue.last = slot;
}

uint32_t RelayedTransport::pop(Queue& queue) {
  const uint32_t slot = queue.first;
  queue.first = link_.slots_[slot].next;
  if (queue.first == ProgramLink::kNone) queue.last = ProgramLink::kNone;
  return slot;
}

// Telemetry is the NIC's, and has room in what the transport of a queue pair of the NIC's own would give it.
uint8_t RelayedTransport::wire_opcode(const ProgramPacket& packet) const {
  if (!attributes_.telemetry) return packet.opcode;
  const bool carried = packet.opcode != kOpcodeRcAcknowledge && has_telemetry(packet.opcode | kOpcodeTelemetry);
  return carried ? packet.opcode | kOpcodeTelemetry : packet.opcode;
}

// The program may not say whose packet it is, nor to whom a connection leads.
void RelayedTransport::fill(OutgoingPacket& out, uint32_t slot) {
  const ProgramPacket& packet = link_.slots_[slot].packet;
  out.header.opcode = packet.opcode;
  out.header.destination_qp = (service_ == Service::datagram ? packet.destination_qp : attributes_.remote_qpn) & 0xffffff;
  out.header.psn = packet.psn & kPsnMask;
  out.header.ack_request = (packet.flags & ProgramPacket::kAckRequest) != 0;
  out.header.solicited = (packet.flags & ProgramPacket::kSolicited) != 0;
  out.header.becn = (packet.flags & ProgramPacket::kBecn) != 0;
  out.header.partition_key = attributes_.partition_key;
  out.header.deth = {packet.queue_key, qpn_};
  out.header.reth = packet.reth;
  out.header.aeth = packet.aeth;
  out.header.atomic = packet.atomic;
  out.header.atomic_original = packet.atomic_original;
  out.header.immediate = packet.immediate;
  out.payload = link_.memory_.packets[slot].payload;
  out.payload_bytes = packet.payload_bytes;
  if (answers(packet)) unanswered_ = (packet.psn + 1) & 0xffffff;
  link_.give_back(slot);
}

void RelayedTransport::drop(Queue& queue) {
  while (queue.first != ProgramLink::kNone) link_.give_back(pop(queue));
}

void RelayedTransport::drop_all() {
  drop(control_);
  drop(responses_);
  drop(requests_);
  responses_taken_ = responses_submitted_;
}

}  // namespace weir
