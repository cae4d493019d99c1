#include "transport/requester.h"

#include <algorithm>

#include "transport/aeth.h"

namespace weir {
namespace {

constexpr uint32_t kPacketsPerAck = 32;  // an acknowledgement is asked for at least every so many
// Pieces of READs in a window that congestion control has opened: the time since the request is that of each of its responses, so
// that the last of them seem to have waited for the others, by this part of a window's time at most.
constexpr uint32_t kPieces = 16;

}  // namespace

void Requester::start() {
  messages_ = limit_ = unrequested_ = 0;
  counts_credits_ = false;
  congestion_window_ = UINT32_MAX;
  expected_reads_ = 0;
  waits_until_ = kNever;
  pending_ = Ring<uint32_t>(attributes_.max_rd_atomic);
}

uint32_t Requester::piece() const {
  const uint32_t most = attributes_.window / 4;
  if (expected_reads_ == 0) return most;
  const uint32_t pieces = std::min<uint32_t>(kPieces, attributes_.max_rd_atomic);
  return std::clamp((std::min(expected_reads_, attributes_.window) + pieces - 1) / pieces, 1u, most);
}

// Returns the PSN behind the piece that `psn` is in, if it was asked for before, or that begins there.
uint32_t Requester::piece_end(const SendEntry& entry, uint32_t psn) const {
  if (psn_distance(queue_.end, psn) <= 0) {
    return psn_add(psn, std::min(piece(), static_cast<uint32_t>(psn_distance(entry.end_psn(), psn))));
  }
  uint32_t place = 0;
  while (psn_distance(pending_[place], psn) <= 0) ++place;
  return pending_[place];
}

// Fills in the rest of the choice, which follows from the packet's place in its work request.
void Requester::complete_choice(const SendEntry& entry) const {
  const auto packet = static_cast<uint32_t>(psn_distance(choice_.psn, entry.first_psn));
  const bool responds = has_response(entry.work.opcode);
  choice_.first = packet == 0;
  choice_.last = packet + choice_.packets == entry.packets;
  const uint32_t left = responds ? 0 : entry.work.length - packet * attributes_.path_mtu;
  choice_.payload = static_cast<uint16_t>(std::min(attributes_.path_mtu, left));
  const uint8_t telemetry = attributes_.telemetry && !responds ? kOpcodeTelemetry : uint8_t{0};
  choice_.opcode = static_cast<uint8_t>(packet_opcode(entry.work.opcode, choice_.first, choice_.last) | telemetry);
}

uint32_t Requester::sequence_of(const SendEntry& entry, uint32_t psn) const {
  const bool sent_before = psn != entry.first_psn || psn_distance(queue_.end, psn) > 0;
  return sent_before ? entry.sequence : psn_add(messages_, 1);
}

// A message beyond the peer's receives may show its first packet, so that the answer tells of new ones; the rest of it follows
// once that has been taken.
bool Requester::credits_allow(const SendEntry& entry, uint32_t psn) const {
  if (!counts_credits_ || !needs_receive(entry.work.opcode)) return true;
  const int32_t beyond = psn_distance(sequence_of(entry, psn), limit_);
  if (beyond <= 0) return true;
  if (psn == entry.first_psn) return beyond == 1 || psn == queue_.una;
  return psn_distance(queue_.una, entry.first_psn) > 0;
}

// The oldest may always go, or a READ of more packets than the congestion window would wait for ever. With selective repeat,
// packets that have come early or are known to be lost are not in flight (RFC 6675 section 4, "pipe").
bool Requester::window_allows() const {
  const uint32_t ahead = static_cast<uint32_t>(psn_distance(choice_.psn, queue_.una));
  if (ahead == 0) return true;
  const bool selective = attributes_.recovery == LossRecovery::selective_repeat;
  const uint32_t under_way = selective ? queue_.in_flight() : ahead;
  return ahead + choice_.packets <= attributes_.window && under_way + choice_.packets <= congestion_window_;
}

// The first; if that waits for the window, so do all behind it.
bool Requester::choose_lost() const {
  for (uint32_t psn = queue_.una; psn != queue_.end; psn = psn_add(psn, 1)) {
    if (!queue_.mark(psn).lost) continue;
    const SendEntry& entry = queue_.at(queue_.find(psn));
    choice_ = {.psn = psn, .lost = true};
    if (entry.work.opcode == WorkOpcode::read) {
      // It asks for all that is missing: if it was the request that was lost, then the peer must see it as one, as it was
      // counted. It was not where a response has come trimmed, and others may be on their way.
      const bool executed = queue_.mark(psn).trimmed;
      const uint32_t end = piece_end(entry, psn);
      for (uint32_t next; (next = psn_add(psn, choice_.packets)) != end; ++choice_.packets) {
        if (executed ? !queue_.mark(next).trimmed : queue_.mark(next).received) break;
      }
    }
    complete_choice(entry);
    return window_allows();
  }
  return false;
}

bool Requester::choose() const {
  if (waits_until_ != kNever) return false;
  if (queue_.lost > 0) return choose_lost();
  if (queue_.cursor == queue_.tail) return false;
  const SendEntry& entry = queue_.at(queue_.cursor);
  choice_ = {.psn = queue_.next};
  if (has_response(entry.work.opcode)) {
    if (pending_.full() && psn_distance(queue_.end, queue_.next) <= 0) return false;
    choice_.packets = static_cast<uint32_t>(psn_distance(piece_end(entry, choice_.psn), choice_.psn));
  }
  complete_choice(entry);
  const bool answered = pending_.empty() || psn_distance(pending_.front(), choice_.psn) > 0;
  if (choice_.first && (entry.work.flags & kFence) != 0 && !answered) return false;
  return window_allows() && credits_allow(entry, choice_.psn);
}

uint32_t Requester::data_bytes(bool begins) const {
  if (!begins && queue_.lost == 0 && queue_.cursor >= queue_.begun) return 0;
  return choose() ? packet_length(choice_.opcode, choice_.payload) : 0;
}

bool Requester::take(Time now, OutgoingPacket& out, uint64_t& failed) {
  const Choice& choice = choice_;
  const uint64_t index = choice.lost ? queue_.find(choice.psn) : queue_.cursor;
  const SendEntry& entry = queue_.at(index);
  const SendWork& work = entry.work;
  const uint32_t offset = static_cast<uint32_t>(psn_distance(choice.psn, entry.first_psn)) * attributes_.path_mtu;
  const bool last = choice.last;
  const uint32_t asked = last ? work.length - offset : choice.packets * attributes_.path_mtu;  // READ
  out.payload_bytes = choice.payload;
  const bool answered_with_data = has_response(work.opcode);
  const uint32_t touched = answered_with_data ? asked : out.payload_bytes;
  if (touched > 0) {
    const uint64_t at = work.local_address + offset;
    const MemoryTable& memory = context_.memory;
    if (!answered_with_data) out.payload = memory.read(work.local_key, attributes_.domain, at, touched);
    if (answered_with_data ? !memory.allows(work.local_key, attributes_.domain, at, touched, kLocalWrite)
                           : out.payload == nullptr) {
      failed = index;
      return false;
    }
    if (!context_.payload) out.payload = nullptr;
  }
  out.header.opcode = choice.opcode;
  out.header.psn = choice.psn;
  if (queue_.entropy != nullptr) out.header.entropy = queue_.entropy->next(now);
  out.header.solicited = last && needs_receive(work.opcode) && (work.flags & kSolicited) != 0;
  out.header.reth = {work.remote_address + offset, work.remote_key, answered_with_data ? asked : work.length};
  out.header.atomic = {work.remote_address, work.remote_key, work.swap_add, work.compare};
  out.header.immediate = work.opcode == WorkOpcode::send_invalidate ? work.remote_key : work.immediate;
  const bool probes = counts_credits_ && needs_receive(work.opcode) && psn_distance(sequence_of(entry, choice.psn), limit_) > 0;
  // Often enough for the window never to close without an acknowledgement to come.
  const uint32_t often = attributes_.informs ? 1 : std::min(kPacketsPerAck, attributes_.window / 4);
  out.header.ack_request = last || choice.lost || probes || ++unrequested_ >= often;
  account(now, out.header);
  return true;
}

void Requester::account(Time now, const DataHeader& header) {
  const Choice& choice = choice_;
  if (header.ack_request) unrequested_ = 0;
  queue_.stamp(choice.psn, choice.packets, now, header.entropy);
  if (choice.lost) {
    ++context_.counters.retransmitted;
    return;
  }
  SendEntry& entry = queue_.at(queue_.cursor);
  const bool begins = choice.first || entry.work.opcode == WorkOpcode::read;
  if (psn_distance(queue_.end, choice.psn) > 0) {
    ++context_.counters.retransmitted;
  } else if (begins) {
    messages_ = psn_add(messages_, 1);
    entry.sequence = messages_;
  }
  queue_.next = psn_add(choice.psn, choice.packets);
  if (psn_distance(queue_.next, queue_.end) > 0) {
    queue_.end = queue_.next;
    queue_.begun = queue_.cursor + 1;
    if (has_response(entry.work.opcode)) pending_.push(queue_.next);
  }
  if (queue_.next == entry.end_psn()) queue_.proceed();
}

void Requester::set_credits(uint32_t message_sequence, uint8_t code) {
  const bool counted = counts_credits_;
  counts_credits_ = code != kNoCredits;
  if (!counts_credits_) return;
  // Credits that were once promised hold, also when an answer overtakes another.
  const uint32_t limit = psn_add(message_sequence, stepped(code));
  if (!counted || psn_distance(limit, limit_) > 0) limit_ = limit;
}

void Requester::go_back() {
  queue_.go_back();
  unrequested_ = 0;
}

void Requester::answered() {
  if (psn_distance(queue_.una, queue_.next) > 0) queue_.go_back();
  while (!pending_.empty() && psn_distance(pending_.front(), queue_.una) <= 0) pending_.pop();
}

}  // namespace weir
