#include "engine/program_transports.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/secret.h"
#include "engine/told_connection.h"
#include "engine/virtual_turns.h"
#include "engine/worker_clock.h"
#include "transport/datagram.h"
#include "transport/opcode.h"
#include "transport/reliable_connection.h"
#include "transport/unreliable_connection.h"

namespace weir {
namespace {

constexpr uint32_t kPacketMask = kProgramPackets - 1;
constexpr uint32_t kFramesOfTurn = 128;
// Data packets of a queue pair that wait in the daemon: fewer where they leave slowly, so that a timer does not run out there.
constexpr uint32_t kLeastSubmitted = 4;
// As much as leaves while the daemon and the program wait for their turns on a CPU.
constexpr uint32_t kMostSubmitted = 384;
constexpr uint32_t kKept = 64;  // slots that are not for requests
constexpr Time kSlow = 2 * kMillisecond;
constexpr Time kFast = 500 * kMicrosecond;

void modify_transport(LentTurns* lent, ProgramPair& pair, QueuePairState to, const QueueAttributes& given,
                      const ProgramAnswer& way) {
  if (pair.direct) return lent->modify(pair, to, given, way);
  QueueAttributes attributes = given;
  attributes.echoes = true;  // the daemon knows whether its NIC does
  pair.transport->modify(to, attributes);
}

// Whether a packet that comes writes to memory without a completion.
bool changes_memory(uint8_t opcode) {
  const RequestKind kind = opcode_shape(is_unreliable(opcode) ? opcode & kOpcodeOperation : plain_opcode(opcode)).kind;
  return kind == RequestKind::write || kind == RequestKind::atomic;
}

// Whether the daemon is to be given more, and for the transport whether that may be a request. One that goes back always may: the
// others that the daemon has may wait for it.
bool takes_data(ProgramPair& pair, size_t free_slots) {
  const bool holds = pair.requests.submitted >= pair.requests.most || free_slots <= kKept;
  if (!pair.reliable) return !holds;
  pair.transport->hold_requests(holds && !static_cast<const ReliableConnection&>(*pair.transport).goes_back());
  return pair.responses.submitted < pair.responses.most;
}

bool has_left(LentTurns* lent, const ProgramPair& pair) { return pair.unsent == 0 && (!pair.direct || lent->has_left(pair)); }

}  // namespace

ProgramTransports::ProgramTransports(const std::string& socket, MemoryTable::Probe probe, bool send_queue_errors, bool direct)
    : session_(socket, direct), memory_(kRegions, secret(), probe), send_queue_errors_(send_queue_errors) {
  free_.reserve(kProgramPackets);
  for (uint32_t slot = kProgramPackets; slot > 0; --slot) free_.push_back(slot - 1);
  if (const Session::Path path = session_.take_path(); path.socket >= 0) {
    lent_ = std::make_unique<LentTurns>(
        path, LentTurns::Host{mutex_, session_, counters_, [this](ProgramPair& pair) { attended(pair); }});
  }
  ++open_;
}

ProgramTransports::~ProgramTransports() { --open_; }

ProgramAnswer ProgramTransports::ask(const ProgramRequest& request) {
  ProgramAnswer answer;
  if (failed()) {
    answer.error = EIO;
    return answer;
  }
  return session_.ask(request);
}

ProgramPair* ProgramTransports::find(uint32_t qpn) const {
  const auto found = pairs_.find(qpn);
  return found == pairs_.end() ? nullptr : found->second;
}

uint32_t ProgramTransports::create(ProgramPair& pair, Service service, uint32_t send_depth, uint32_t receive_depth,
                                   SharedReceives* shared) {
  ProgramRequest request;
  request.kind = ProgramRequest::kCreateQueuePair;
  request.datagram = service == Service::datagram;
  request.unreliable = service == Service::unreliable;
  const ProgramAnswer answer = ask(request);
  if (answer.error != 0) return answer.error;
  pair.qpn = answer.object;
  pair.datagram = service == Service::datagram;
  pair.reliable = service == Service::connection;
  const std::lock_guard lock(mutex_);
  const TransportContext context{.memory = memory_,
                                 .completions = *this,
                                 .counters = counters_,
                                 .send_queue_errors = send_queue_errors_,
                                 .tells_left = true};
  const auto make = [&]<class Type>() {
    pair.kept = std::make_unique<Type>(pair.qpn, context, send_depth, receive_depth, shared);
    pair.transport = pair.kept.get();
  };
  if (service == Service::datagram) {
    make.template operator()<Datagram>();
  } else if (service == Service::unreliable) {
    make.template operator()<UnreliableConnection>();
  } else if (lent_ != nullptr) {
    make.template operator()<ToldConnection>();
  } else {
    make.template operator()<ReliableConnection>();
  }
  pairs_[pair.qpn] = &pair;
  return 0;
}

uint32_t ProgramTransports::change(ProgramPair& pair, QueuePairState to, const QueueAttributes& attributes, ProgramRequest way) {
  const bool ends = to == QueuePairState::reset || to == QueuePairState::error;
  const QueuePairState from = [&] {
    const std::lock_guard lock(mutex_);
    return pair.transport->state();
  }();
  require_transition(from, to);
  if (!ends) require_attributes(attributes);
  const auto apply = [&](const ProgramAnswer& answer) {
    const std::lock_guard lock(mutex_);
    const QueuePairState before = pair.transport->state();
    modify_transport(lent_.get(), pair, to, attributes, answer);
    const bool watched = session_.memory().watches.load(std::memory_order_acquire) != 0;
    if (watched && !pair.direct && before != to && to == QueuePairState::rts) pair.transport->expect_reads(1);
    changed(pair, before, to);
    attend(pair);
    submit();
  };
  // Posted work is flushed whatever the daemon says; the daemon must know of work to be sent before it is.
  if (ends) apply({});
  if (ends && failed()) return 0;
  ProgramAnswer answer;
  if (from != to || to != QueuePairState::rts) {
    way.kind = ProgramRequest::kModifyQueuePair;
    way.object = pair.qpn;
    way.state = static_cast<uint32_t>(to);
    way.path_mtu = attributes.path_mtu;
    way.remote_qpn = attributes.remote_qpn;
    way.partition_key = attributes.partition_key;
    way.receive_psn = attributes.receive_psn;
    answer = ask(way);
    const uint32_t error = answer.error;
    if (error != 0 && !(ends && error == EIO)) return error;  // a daemon that is gone sends nothing more, either
    if (answer.direct != 0 && (lent_ == nullptr || !lent_->adopt(pair))) return ENOMEM;
  }
  if (!ends) apply(answer);
  return 0;
}

void ProgramTransports::remove(ProgramPair& pair) {
  if (pair.direct) lent_->give_back(pair);
  pairs_.erase(pair.qpn);
  std::erase(dirty_, &pair);
}

void ProgramTransports::attend(ProgramPair& pair) {
  if (!pair.direct) return send(pair, monotonic_now());
  lent_->attend(pair);
  attended(pair);
}

// Sends until nothing may go, or the daemon has enough of it.
void ProgramTransports::send(ProgramPair& pair, Time now) {
  for (;;) {
    if (free_.empty()) break;
    OutgoingPacket out;
    if (pair.transport->control_waits()) {
      pair.transport->take_control(out);
      write(pair, out, false, now);
    } else if (takes_data(pair, free_.size()) && pair.transport->data_bytes() > 0) {
      if (!pair.transport->take_data(now, out)) continue;
      write(pair, out, true, now);
    } else {
      break;
    }
  }
  const bool withdraws = withdraw(pair, now);
  attended(pair);
  pair.transport->hold_requests(false);
  const bool more = withdraws || pair.transport->control_waits() || pair.transport->data_bytes() > 0;
  if (more && !pair.dirty) dirty_.push_back(&pair);
  if (more) pair.dirty = true;
  deadline_ = std::min(deadline_, pair.transport->next_deadline());
}

// The next slot to submit, only when there is one that is free; its packet is to be written before submit().
ProgramPacketSlot& ProgramTransports::take_slot(ProgramPair& pair, Sent sent) {
  const uint32_t slot = free_.back();
  free_.pop_back();
  sent_[slot] = sent;
  ++pair.unsent;
  if (sent.share != nullptr) ++(pair.*sent.share).submitted;
  session_.memory().submitted[submitted_++ & kPacketMask].store(slot, std::memory_order_relaxed);
  ProgramPacketSlot& at = session_.memory().packets[slot];
  at.packet.qpn = pair.qpn;
  return at;
}

// A connection that has failed needs no answers any more, which alone would let go what congestion control holds. Returns whether
// there is no slot to say so yet.
bool ProgramTransports::withdraw(ProgramPair& pair, Time now) {
  const bool useless = pair.reliable && pair.transport->state() == QueuePairState::error && pair.requests.submitted > 0;
  if (useless == pair.withdrawn) return false;
  if (useless && free_.empty()) return true;
  pair.withdrawn = useless;
  if (useless) take_slot(pair, {.qpn = pair.qpn, .at = now}).packet.flags = ProgramPacket::kWithdrawal;
  return false;
}

void ProgramTransports::write(ProgramPair& pair, const OutgoingPacket& out, bool data, Time now) {
  const DataHeader& header = out.header;
  const auto share = !data ? nullptr : is_response(header.opcode) ? &ProgramPair::responses : &ProgramPair::requests;
  const bool ends = !pair.reliable && opcode_shape(header.opcode & kOpcodeOperation).last;
  ends_ += ends;
  ProgramPacketSlot& at = take_slot(pair, {pair.qpn, out.address_handle, share, now, ends});
  ProgramPacket& packet = at.packet;
  packet.payload_bytes = out.payload_bytes;
  packet.destination_qp = header.destination_qp;
  packet.address_handle = out.address_handle;
  packet.queue_key = header.deth.queue_key;
  packet.psn = header.psn;
  packet.immediate = header.immediate;
  packet.opcode = header.opcode;
  packet.flags =
      static_cast<uint8_t>((header.ack_request ? ProgramPacket::kAckRequest : 0) |
                           (header.solicited ? ProgramPacket::kSolicited : 0) | (header.becn ? ProgramPacket::kBecn : 0));
  packet.aeth = header.aeth;
  packet.reth = header.reth;
  packet.atomic = header.atomic;
  packet.atomic_original = header.atomic_original;
  if (out.payload_bytes > 0) std::memcpy(at.payload, out.payload, out.payload_bytes);
}

void ProgramTransports::submit() {
  if (lent_ != nullptr) lent_->submit();
  if (submitted_ != published_) {
    published_ = submitted_;
    session_.memory().submitted_written.store(submitted_, std::memory_order_release);
    session_.wake_nic();
  }
  // A deadline that the thread does not know of.
  if (sleeps_until_ - deadline_ > kMillisecond) {
    sleeps_until_ = deadline_;
    session_.ring_thread();
  }
}

// Packets that come back late all at once were kept by a daemon that did not run; packets that leave slowly come back one by one.
void ProgramTransports::take_returned(Time now) {
  const ProgramPair::Share* slowed = nullptr;
  ProgramMemory& shared = session_.memory();
  const uint32_t written = shared.returned_written.load(std::memory_order_acquire);
  for (; returned_ != written; ++returned_) {
    const uint32_t slot = shared.returned[returned_ & kPacketMask].load(std::memory_order_relaxed) & kPacketMask;
    const Sent sent = std::exchange(sent_[slot], {});
    free_.push_back(slot);
    ends_ -= sent.ends;
    const auto found = pairs_.find(sent.qpn);
    if (found == pairs_.end()) continue;
    ProgramPair& pair = *found->second;
    --pair.unsent;
    if (sent.ends) static_cast<UnacknowledgedSends&>(*pair.transport).left();
    if (sent.share == nullptr) continue;
    ProgramPair::Share& share = pair.*sent.share;
    --share.submitted;
    if (now - sent.at > kSlow) {
      if (std::exchange(slowed, &share) == &share) continue;
      share.most = std::max(kLeastSubmitted, share.most - share.most / 8);
    } else if (now - sent.at < kFast) {
      share.most = std::min(kMostSubmitted, share.most + 1);
    }
  }
}

// Returns whether anything has come or gone.
bool ProgramTransports::turn(Time now) {
  ProgramMemory& shared = session_.memory();
  const uint32_t before = submitted_ + returned_ + frames_;
  const uint64_t seen = seen_;
  const bool timers = deadline_ <= now;
  const uint32_t written = shared.frames_written.load(std::memory_order_acquire);
  const uint32_t taken = frames_;
  for (uint32_t count = 0; frames_ != written && count < kFramesOfTurn; ++count) {
    const ProgramFrame& frame = shared.frame(frames_);
    if (const auto found = pairs_.find(frame.meta.destination_qp); found != pairs_.end()) {
      ProgramPair& pair = *found->second;
      if (frame.reads != 0) pair.transport->expect_reads(frame.reads);
      pair.transport->receive(now, frame.bytes(), frame.meta);
      seen_ += changes_memory(frame.meta.opcode) ? 1 : 0;
      received(pair);
      if (!pair.dirty) dirty_.push_back(&pair);
      pair.dirty = true;
    } else {
      ++counters_.drop_wrong_state;  // it has been destroyed meanwhile
    }
    shared.frames_read.store(++frames_, std::memory_order_release);
  }
  if (frames_ != taken && shared.holds.load(std::memory_order_relaxed) != 0) session_.wake_nic();
  take_returned(now);
  if (timers) {
    deadline_ = kNever;
    for (const auto& [qpn, pair] : pairs_) {
      if (pair->direct) continue;
      if (pair->transport->next_deadline() <= now) {
        pair->transport->advance(now);
        if (!pair->dirty) dirty_.push_back(pair);
        pair->dirty = true;
      }
      deadline_ = std::min(deadline_, pair->transport->next_deadline());
    }
  }
  // Queue pairs that have more afterwards are in the list again.
  attended_.swap(dirty_);
  for (ProgramPair* pair : attended_) {
    pair->dirty = false;
    if (pair->direct) {
      attend(*pair);
    } else {
      send(*pair, now);
    }
  }
  attended_.clear();
  submit();
  const bool moved = submitted_ + returned_ + frames_ != before;
  if (moved || timers) session_.tell_counters(counters_);
  if (seen_ != seen && weir_turns_tell != nullptr) weir_turns_tell();
  return moved;
}

ProgramTransports::Help ProgramTransports::help_once() {
  const Time now = weir_turns_now != nullptr ? weir_turns_now() : monotonic_now();
  polled_.store(now, std::memory_order_relaxed);
  may_have_left_.store(false, std::memory_order_relaxed);
  if (!mutex_.try_lock()) return Help::refused;
  ProgramMemory& shared = session_.memory();
  if (naps_.load(std::memory_order_relaxed)) shared.program_sleeps.store(0, std::memory_order_relaxed);
  if (lent_ != nullptr) lent_->poll(now);
  const uint64_t before = seen_;
  bool moved = turn(now);
  if (lent_ != nullptr) moved |= lent_->turn();
  const bool seen = seen_ != before;
  if (!moved) shared.returned_wanted.store(returned_ + slots_wanted(), std::memory_order_relaxed);  // it looks for them, too
  mutex_.unlock();
  return seen ? Help::seen : moved ? Help::moved : Help::none;
}

bool ProgramTransports::help(const void* queue) {
  // In virtual time who polls goes on when there is something that the program can see: a turn of it costs much.
  for (bool moved = false; weir_turns_poll != nullptr;) {
    const Help found = help_once();
    if (found == Help::seen) return weir_turns_found(), true;
    if (found != Help::moved && weir_turns_poll(queue, !moved && open_.load(std::memory_order_relaxed) > 1)) return false;
    moved = found == Help::moved;
  }
  const Help found = help_once();
  if (found == Help::refused) return false;
  if (found == Help::none) {
    sched_yield();  // the daemon or the kernel, which moves things, may want this CPU
    return false;
  }
  polled_.store(monotonic_now(), std::memory_order_relaxed);
  return true;
}

void ProgramTransports::may_leave() {
  if (weir_turns_found != nullptr) weir_turns_found();
  if (lent_ != nullptr) lent_->find(monotonic_now());
  may_have_left_.store(true, std::memory_order_seq_cst);
  if (naps_.load(std::memory_order_seq_cst) && session_.ask_for_frames()) help_once();
}

void ProgramTransports::rest() {
  if (polled_.exchange(0, std::memory_order_seq_cst) != 0 && naps_.load(std::memory_order_seq_cst)) session_.ring_thread();
  if (lent_ != nullptr) lent_->rest();
}

void ProgramTransports::wait_until(const std::function<bool()>& left) {
  const Time patience = monotonic_now() + 100 * kMillisecond;
  for (Time now = monotonic_now(); now < patience; now = monotonic_now()) {
    {
      const std::lock_guard lock(mutex_);
      turn(now);
      if (lent_ != nullptr) lent_->turn();
      if (failed() || left()) return;
    }
    ::usleep(50);
  }
}

void ProgramTransports::let_leave(const ProgramPair& pair) {
  wait_until([&] { return has_left(lent_.get(), pair); });
}

void ProgramTransports::let_all_leave() {
  wait_until([&] {
    return std::all_of(pairs_.begin(), pairs_.end(), [this](const auto& pair) { return has_left(lent_.get(), *pair.second); });
  });
}

void ProgramTransports::let_leave_by(uint32_t address_handle) {
  wait_until([&] {
    return std::none_of(std::begin(sent_), std::end(sent_), [&](const Sent& sent) {
      const auto found = sent.qpn == 0 ? pairs_.end() : pairs_.find(sent.qpn);
      return found != pairs_.end() && found->second->datagram && sent.address_handle == address_handle;
    });
  });
}

// The daemon is gone: nothing that was posted will be done.
void ProgramTransports::fail() {
  const std::lock_guard lock(mutex_);
  failed_.store(true, std::memory_order_release);
  for (const auto& [qpn, pair] : pairs_) {
    const QueuePairState from = pair->transport->state();
    if (from == QueuePairState::reset || from == QueuePairState::error) continue;
    modify_transport(lent_.get(), *pair, QueuePairState::error, {}, {});
    changed(*pair, from, QueuePairState::error);
  }
  ended();
}

}  // namespace weir
