#include "transport/completer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/bytes.h"

namespace weir {
void Completer::start() {
  deadline_ = kNever;
  retries_left_ = attributes_.retry_count;
  rnr_retries_left_ = attributes_.rnr_retry;
  recovering_ = false;
  delivered_ = 0;
  delivered_sent_ = 0;
  trimmed_ = 0;
  trimmed_sent_ = kNever;
  news_.start(attributes_.telemetry);
}

// Wanted is what has been posted and is not acknowledged.
void Completer::listen(Time now, bool marked) {
  news_.listen(now, marked, static_cast<uint32_t>(psn_distance(queue_.assigned, queue_.una)));
}

bool Completer::take_heard(Heard& heard) {
  if (!news_.any() && trimmed_ == 0) return false;
  news_.take(heard, static_cast<uint32_t>(psn_distance(queue_.end, queue_.una)) - queue_.arrived());
  heard.trimmed = {.packets = std::exchange(trimmed_, 0),
                   .in_flight = queue_.in_flight(),
                   .at = news_.at(),
                   .sent = std::exchange(trimmed_sent_, kNever)};
  return true;
}

WorkStatus Completer::receive(Time now, const Bth& bth, const uint8_t* extension, const uint8_t* payload, uint32_t length,
                              bool marked) {
  const bool acknowledges = plain_opcode(bth.opcode) == kOpcodeRcAcknowledge;
  listen(now, bth.becn || (marked && !acknowledges));
  if (acknowledges) {
    ++context_.counters.rx_acks;
    return receive_ack(now, bth.psn, load_aeth(extension), payload, length);
  }
  // Takes only what was asked for and is not here yet.
  const bool expected = psn_distance(bth.psn, queue_.una) >= 0 && psn_distance(queue_.end, bth.psn) > 0;
  if (!expected || (selective() && queue_.mark(bth.psn).received)) return unexpected();
  const uint64_t entry = queue_.find(bth.psn);
  const WorkOpcode asked = queue_.at(entry).work.opcode;
  const bool atomic = bth.opcode == kOpcodeRcAtomicAcknowledge;
  uint8_t original[8];
  if (atomic) {
    const uint64_t value = load_be64(extension + kAethHeader);
    std::memcpy(original, &value, sizeof value);
    payload = original;
  }
  const uint32_t packet = static_cast<uint32_t>(psn_distance(bth.psn, queue_.at(entry).first_psn));
  const uint32_t due = std::min(attributes_.path_mtu, queue_.at(entry).work.length - packet * attributes_.path_mtu);
  const bool fits =
      atomic ? asked == WorkOpcode::compare_swap || asked == WorkOpcode::fetch_add : asked == WorkOpcode::read && length == due;
  if (!fits) return unexpected();
  const uint32_t transport_bytes = kBthHeader + extension_length(bth.opcode) + length + bth.pad_count;
  const WorkStatus status = receive_data(now, bth.psn, payload, due, entry, transport_bytes);
  if ((extensions(bth.opcode) & kHasAeth) != 0) take_credits(load_aeth(extension));
  return status;
}

void Completer::receive_trimmed(Time now, uint32_t psn) {
  if (!attributes_.trim_naks) return;
  const bool awaited = psn_distance(psn, queue_.una) >= 0 && psn_distance(queue_.end, psn) > 0 && !queue_.mark(psn).settled() &&
                       queue_.at(queue_.find(psn)).work.opcode == WorkOpcode::read;
  if (!awaited) return void(++context_.counters.drop_trimmed);
  listen(now, false);
  queue_.change(psn, [](SendQueue::Mark& mark) { mark.lost = mark.trimmed = true; });
  heard_trimmed(queue_.mark(psn));
  ++context_.counters.trimmed_responses;
}

void Completer::take_credits(Aeth aeth) {
  if ((aeth.syndrome & kSyndromeKind) == kSyndromeAck) requester_.set_credits(aeth.msn, aeth.syndrome & 0x1f);
}

WorkStatus Completer::unexpected() {
  ++context_.counters.drop_unexpected_response;
  return WorkStatus::success;
}

// All requests before a response have arrived, or it would not be there.
WorkStatus Completer::receive_data(Time now, uint32_t psn, const uint8_t* data, uint32_t length, uint64_t entry,
                                   uint32_t transport_bytes) {
  if (!acknowledge(now, psn) && !selective()) {
    ++context_.counters.implied_nak_seq_err;
    lose();
    return WorkStatus::success;
  }
  const SendWork& work = queue_.at(entry).work;
  const uint64_t offset = static_cast<uint64_t>(psn_distance(psn, queue_.at(entry).first_psn)) * attributes_.path_mtu;
  const bool has_bytes = context_.payload || work.opcode != WorkOpcode::read;
  if (length > 0 && !context_.memory.write(work.local_key, attributes_.domain, work.local_address + offset,
                                           has_bytes ? data : nullptr, length)) {
    return blame(entry, WorkStatus::local_protection_error);
  }
  if (work.opcode == WorkOpcode::read) received_.count(length, transport_bytes, false);
  const uint32_t before = queue_.una;
  if (selective()) {
    mark_arrived(psn, How::received);
    queue_.skip_received(qpn_, context_.completions);
  } else {
    queue_.advance(psn_add(psn, 1), qpn_, context_.completions);
    if (queue_.marks()) tell_from(psn);
  }
  answered(now, before);
  if (selective()) find_losses();
  return WorkStatus::success;
}

WorkStatus Completer::receive_ack(Time now, uint32_t psn, Aeth aeth, const uint8_t* payload, uint32_t length) {
  // An ACK repeated for the packet before una may bring credits, and a bitmap that was overtaken tells of packets behind una:
  // trimmed ones are named but once. Anything else outside what is in flight is a ghost.
  const int32_t ahead = psn_distance(psn, queue_.una);
  const bool tells = selective() && length == kMaxSelectiveWindow / 8;
  const int32_t oldest = tells ? -static_cast<int32_t>(kMaxSelectiveWindow) : -1;
  if (ahead < oldest || psn_distance(queue_.end, psn) <= 0) return unexpected();
  switch (aeth.syndrome & kSyndromeKind) {
    case kSyndromeAck:
      if (ahead >= 0) {
        const bool in_order = acknowledge(now, psn_add(psn, 1));
        if (selective()) {
          find_losses();
        } else if (!in_order) {
          ++context_.counters.implied_nak_seq_err;
          lose();
        }
      }
      take_credits(aeth);
      return WorkStatus::success;
    case kSyndromeRnrNak:
      if (ahead < 0 || requester_.waits_until() != kNever) return WorkStatus::success;
      ++context_.counters.rnr_nak_retry_err;
      acknowledge(now, psn);
      if (attributes_.rnr_retry < 7 && rnr_retries_left_-- == 0) {
        ++context_.counters.req_rnr_retries_exceeded;
        return blame(queue_.find(psn), WorkStatus::rnr_retry_exceeded_error);
      }
      requester_.wait_until(now + stretched(rnr_delay(aeth.syndrome & 0x1f), attributes_.time_scale));
      send_again(true);
      return WorkStatus::success;
    case kSyndromeNak:
      if (ahead < 0 && !tells) return WorkStatus::success;
      if (ahead >= 0) acknowledge(now, psn);
      return receive_nak(psn, aeth.syndrome, payload, length);
    default:
      return unexpected();
  }
}

WorkStatus Completer::receive_nak(uint32_t psn, uint8_t code, const uint8_t* payload, uint32_t length) {
  const auto refused = [&](uint64_t& counter, WorkStatus status) {
    ++counter;
    return blame(queue_.find(psn), status);
  };
  switch (code) {
    case kNakSequence:
      ++context_.counters.packet_seq_err;
      if (selective() && length == kMaxSelectiveWindow / 8) {
        each_told(psn, payload, [&](uint32_t early) {
          if (early != psn) mark_arrived(early, How::held);
        });
        find_losses();
        return WorkStatus::success;
      }
      if (recovering_) return WorkStatus::success;
      if (!spend_retry()) return WorkStatus::retry_exceeded_error;
      lose();
      return WorkStatus::success;
    case kNakTrimmed:
      if (!attributes_.trim_naks || length != kMaxSelectiveWindow / 8) return unexpected();
      ++context_.counters.rx_trim_naks;
      each_told(psn, payload, [&](uint32_t trimmed) {
        if (queue_.mark(trimmed).settled()) return;
        mark_lost(trimmed);
        heard_trimmed(queue_.mark(trimmed));
        ++context_.counters.trimmed_requests;
      });
      return WorkStatus::success;
    case kNakInvalidRequest:
      return refused(context_.counters.req_remote_invalid_request, WorkStatus::remote_invalid_request_error);
    case kNakRemoteAccess:
      return refused(context_.counters.req_remote_access_errors, WorkStatus::remote_access_error);
    case kNakRemoteOperation:
      return refused(context_.counters.req_remote_operation_errors, WorkStatus::remote_operation_error);
    default:
      return unexpected();
  }
}

// Work requests before the one at fault may have been executed or not: nothing will tell any more.
WorkStatus Completer::blame(uint64_t entry, WorkStatus status) {
  while (queue_.head != entry) queue_.retire(WorkStatus::flushed, qpn_, context_.completions);
  return status;
}

// Tells of each packet once that it has arrived, whatever else it waits for.
void Completer::tell(SendQueue::Mark& mark) {
  if (mark.told) return;
  mark.told = true;
  news_.arrived(1, mark.sent, mark.again);
  if (!mark.again && queue_.entropy != nullptr) queue_.entropy->acknowledged(mark.entropy, news_.marked());
}

void Completer::mark_arrived(uint32_t psn, How how) {
  queue_.change(psn, [&](SendQueue::Mark& mark) {
    tell(mark);
    if (static_cast<int32_t>(mark.order - delivered_) > 0) {
      delivered_ = mark.order;
      delivered_sent_ = mark.sent;
    }
    mark.lost = mark.trimmed = false;
    mark.received |= how == How::received;
    mark.held |= how == How::held;
  });
}

void Completer::mark_lost(uint32_t psn) {
  queue_.change(psn, [](SendQueue::Mark& mark) { mark.lost = true; });
}

void Completer::heard_trimmed(const SendQueue::Mark& mark) {
  ++trimmed_;
  if (mark.again) return;
  trimmed_sent_ = trimmed_sent_ == kNever ? mark.sent : std::max(trimmed_sent_, mark.sent);
}

// The packets in flight of SENDs and WRITEs that a bitmap behind a NAK for `psn` names.
template <class Told>
void Completer::each_told(uint32_t psn, const uint8_t* bitmap, Told told) {
  for (uint32_t i = 0; i < kMaxSelectiveWindow; ++i) {
    const uint32_t named = psn_add(psn, i);
    if (psn_distance(queue_.end, named) <= 0) return;
    if ((bitmap[i / 8] >> (i % 8) & 1) == 0 || psn_distance(named, queue_.una) < 0) continue;
    if (!has_response(queue_.at(queue_.find(named)).work.opcode)) told(named);
  }
}

// Requests before `limit` have arrived; for READs and atomics only their answers count. False when one of those is missing.
bool Completer::acknowledge(Time now, uint32_t limit) {
  const uint32_t before = queue_.una;
  if (selective()) {
    uint64_t index = queue_.head;
    for (uint32_t psn = queue_.una; psn != limit; psn = psn_add(psn, 1)) {
      while (psn_distance(queue_.at(index).end_psn(), psn) <= 0) ++index;
      if (!has_response(queue_.at(index).work.opcode)) mark_arrived(psn, How::received);
    }
    queue_.skip_received(qpn_, context_.completions);
  } else {
    queue_.advance_requests(limit, qpn_, context_.completions);
    if (queue_.marks()) tell_from(before);
  }
  answered(now, before);
  return queue_.una == limit || psn_distance(queue_.una, limit) > 0;
}

// With go-back-N these are all packets from `psn` up to una.
void Completer::tell_from(uint32_t psn) {
  for (; psn != queue_.una; psn = psn_add(psn, 1)) tell(queue_.mark(psn));
}

// una was `before` until now.
void Completer::answered(Time now, uint32_t before) {
  if (queue_.una == before) return;
  requester_.answered();
  recovering_ = false;
  retries_left_ = attributes_.retry_count;
  rnr_retries_left_ = attributes_.rnr_retry;
  restart_timer(now);
}

// Looks from una on up to the first that was sent but once, and not long ago: all behind that were sent later still. A packet
// sent a timeout before one that has arrived is as good as timed out, though the timer begins again whenever una moves.
void Completer::find_losses() {
  const auto reordering = static_cast<int32_t>(attributes_.reordering);
  const Time overdue = attributes_.timeout == 0 ? -kNever : delivered_sent_ - timeout();
  for (uint32_t psn = queue_.una; psn != queue_.end; psn = psn_add(psn, 1)) {
    const SendQueue::Mark& mark = queue_.mark(psn);
    const bool timed_out = mark.sent <= overdue;
    const bool early = static_cast<int32_t>(delivered_ - mark.order) <= reordering && !timed_out;
    if (early && !mark.again) return;
    if (early || mark.settled()) continue;
    if (timed_out && queue_.entropy != nullptr) queue_.entropy->timed_out(news_.at());
    mark_lost(psn);
    news_.lost();
  }
}

// The oldest, whatever was said of it: the peer waits for it.
void Completer::mark_missing_lost(bool believe_held) {
  for (uint32_t psn = queue_.una; psn != queue_.end; psn = psn_add(psn, 1)) {
    queue_.change(psn, [&](SendQueue::Mark& mark) {
      mark.held &= believe_held && psn != queue_.una;
      mark.lost = !mark.received && !mark.held;
    });
  }
}

// Everything unanswered is sent again, but only once until something new is acknowledged or the timer expires.
void Completer::lose() {
  if (recovering_) return;
  recovering_ = true;
  news_.lost();
  send_again(false);
}

void Completer::send_again(bool believe_held) {
  if (selective()) {
    mark_missing_lost(believe_held);
  } else {
    requester_.go_back();
  }
}

bool Completer::spend_retry() {
  if (retries_left_ == 0) {
    ++context_.counters.req_transport_retries_exceeded;
    return false;
  }
  --retries_left_;
  return true;
}

// With selective repeat the timer is the oldest packet's, and others that are sent meanwhile do not put it off: there may be many
// of them before a lost packet shows.
void Completer::sent(Time now) {
  if (!selective() || deadline_ == kNever) restart_timer(now);
}

void Completer::restart_timer(Time now) {
  const bool runs = attributes_.timeout != 0 && queue_.una != queue_.end;
  deadline_ = runs ? now + timeout() : kNever;
}

Time Completer::next_deadline() const { return requester_.waits_until() != kNever ? requester_.waits_until() : deadline_; }

WorkStatus Completer::advance(Time now) {
  listen(now, false);
  if (requester_.waits_until() != kNever) {
    if (requester_.waits_until() > now) return WorkStatus::success;
    requester_.wait_until(kNever);
    restart_timer(now);
  }
  if (deadline_ > now) return WorkStatus::success;
  if (selective()) {
    const SendQueue::Mark& oldest = queue_.mark(queue_.una);
    const Time due = (oldest.lost ? now : oldest.sent) + timeout();
    if (due > now) {
      deadline_ = due;
      return WorkStatus::success;
    }
  }
  ++context_.counters.local_ack_timeout_err;
  news_.timed_out();
  if (queue_.entropy != nullptr) queue_.entropy->timed_out(now);
  if (!spend_retry()) return WorkStatus::retry_exceeded_error;
  send_again(!std::exchange(recovering_, true));
  restart_timer(now);
  return WorkStatus::success;
}

}  // namespace weir
