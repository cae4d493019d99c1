// The requester's side of a reliable connection: work requests in order, and how far their packets have come.
//
//   una      the oldest PSN that is not acknowledged, or whose response is not here
//   next     the PSN to send next
//   end      behind the newest PSN ever sent; next < end while packets are sent again
//   assigned behind the last PSN of the last work request
//
// A READ takes one PSN for each packet of its response. With selective repeat, or where send times are asked for, PSNs in
// [una, end) carry marks of their own; with go-back-N, una says all else.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "base/types.h"
#include "transport/entropy.h"
#include "transport/opcode.h"
#include "transport/psn.h"
#include "transport/queue_attributes.h"
#include "transport/work.h"

namespace weir {

struct SendEntry {
  SendWork work;
  uint32_t first_psn = 0;
  uint32_t packets = 1;   // 0: it sends nothing
  uint32_t sequence = 0;  // its number among the messages (SSN), once sent

  uint32_t end_psn() const { return psn_add(first_psn, packets); }
};

class SendQueue {
 public:
  explicit SendQueue(uint32_t depth)
      : depth_(depth), entry_mask_(std::bit_ceil(depth) - 1), entries_(std::make_unique<SendEntry[]>(entry_mask_ + 1)) {}

  // `marks`: for how many PSNs in flight.
  void start(uint32_t psn, uint32_t marks) {
    head = cursor = begun = tail = 0;
    una = next = end = assigned = psn;
    mark_mask_ = marks == 0 ? 0 : std::bit_ceil(marks) - 1;
    marks_ = marks == 0 ? nullptr : std::make_unique<Mark[]>(mark_mask_ + 1);
    lost = settled_ = unreported_ = order_ = 0;
  }
  // Frees what start() took. Only when empty.
  void stop() {
    marks_.reset();
    entropy.reset();
  }

  uint32_t room() const { return depth_ - static_cast<uint32_t>(tail - head); }
  bool empty() const { return head == tail; }
  SendEntry& at(uint64_t index) { return entries_[index & entry_mask_]; }
  const SendEntry& at(uint64_t index) const { return entries_[index & entry_mask_]; }

  // Appends so many that are all the same. There must be room.
  void push(const SendWork& work, uint32_t path_mtu, uint32_t times = 1) {
    const uint32_t packets = (work.flags & kLocal) != 0 ? 0 : packets_of(work.length, path_mtu);
    for (; times > 0; --times) {
      SendEntry& entry = at(tail++);
      entry.work = work;
      entry.first_psn = assigned;
      entry.packets = packets;
      assigned = entry.end_psn();
    }
    skip_local();
  }

  // The oldest entry is complete. A success that nobody asked to hear of is told by the next completion.
  void retire(WorkStatus status, uint32_t qpn, CompletionSink& completions) {
    complete(status, qpn, completions);
    if (status == WorkStatus::success) settle(qpn, completions);
  }
  // Work that sends nothing is never the oldest for long.
  void settle(uint32_t qpn, CompletionSink& completions) {
    while (!empty() && at(head).packets == 0) complete(WorkStatus::success, qpn, completions);
    begun = std::max(begun, head);
  }
  // The entry of `next` has all been sent.
  void proceed() {
    ++cursor;
    skip_local();
  }

  // The entry that `psn`, of [una, end), belongs to. PSNs of entries further on may have wrapped around to those of the first.
  uint64_t find(uint32_t psn) const {
    uint64_t low = head;
    uint64_t high = begun;
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (psn_distance(psn, at(middle).first_psn) >= 0 ? low : high) = middle;
    }
    return low;
  }

  // Moves una to `psn`, of the oldest entry or just behind it; the entry is complete then.
  void advance(uint32_t psn, uint32_t qpn, CompletionSink& completions) {
    una = psn;
    if (una == at(head).end_psn()) retire(WorkStatus::success, qpn, completions);
  }

  // The same over as many entries as there are up to `psn` without a response.
  void advance_requests(uint32_t psn, uint32_t qpn, CompletionSink& completions) {
    while (una != psn && !has_response(at(head).work.opcode)) {
      const uint32_t end = at(head).end_psn();
      if (psn_distance(psn, end) < 0) {
        una = psn;
        return;
      }
      una = end;
      complete(WorkStatus::success, qpn, completions);
      settle(qpn, completions);
    }
  }

  void go_back() {
    next = una;
    cursor = head;
  }

  struct Mark {
    uint32_t order = 0;         // place of its latest transmission among all
    bool again : 1 = false;     // that transmission was not the first
    bool received : 1 = false;  // acknowledged, or its response is here
    bool held : 1 = false;      // the peer has it but has not executed it: it may yet refuse it
    bool lost : 1 = false;      // it is to be sent again
    bool told : 1 = false;      // its arrival was told
    bool trimmed : 1 = false;   // its READ response came without data: the peer has executed the request
    uint16_t entropy = 0;       // value of its latest transmission
    Time sent = kNever;         // its latest transmission

    // It is not under way.
    bool settled() const { return received || held || lost; }
  };
  Mark& mark(uint32_t psn) { return marks_[psn & mark_mask_]; }
  const Mark& mark(uint32_t psn) const { return marks_[psn & mark_mask_]; }

  // A change of a mark of [una, end).
  template <class Change>
  void change(uint32_t psn, Change change) {
    Mark& m = mark(psn);
    lost -= m.lost;
    settled_ -= m.settled();
    change(m);
    lost += m.lost;
    settled_ += m.settled();
  }
  // Moves una over what is received.
  void skip_received(uint32_t qpn, CompletionSink& completions) {
    while (una != end && mark(una).received) {
      --settled_;
      advance(psn_add(una, 1), qpn, completions);
    }
  }
  // PSNs that may be under way. Without marks, which know what came early or is lost, these are all that are not acknowledged.
  uint32_t in_flight() const { return static_cast<uint32_t>(psn_distance(end, una)) - settled_; }

  // PSNs of [una, end) that are received or held.
  uint32_t arrived() const { return settled_ - lost; }

  // PSNs [psn, psn + packets) are sent, for the first time or again. Nothing is noted without marks.
  void stamp(uint32_t psn, uint32_t packets, Time at, uint16_t entropy) {
    for (; marks_ != nullptr && packets > 0; --packets, psn = psn_add(psn, 1)) {
      const bool again = psn_distance(end, psn) > 0;
      const bool told = again && mark(psn).told;
      const Mark sent{.order = ++order_, .again = again, .told = told, .entropy = entropy, .sent = at};
      if (again) {
        change(psn, [&](Mark& m) { m = sent; });
      } else {
        mark(psn) = sent;
      }
    }
  }
  bool marks() const { return marks_ != nullptr; }

  uint64_t head = 0;    // oldest entry that is not complete: una is in it
  uint64_t cursor = 0;  // the entry of `next`; tail when all is sent
  uint64_t begun = 0;   // the place behind the newest entry of which anything was ever sent
  uint64_t tail = 0;
  uint32_t una = 0;
  uint32_t next = 0;
  uint32_t end = 0;
  uint32_t assigned = 0;
  uint32_t lost = 0;                 // marks that say so
  std::unique_ptr<Entropy> entropy;  // null: packets are not sprayed

 private:
  void complete(WorkStatus status, uint32_t qpn, CompletionSink& completions) {
    const SendWork& work = at(head++).work;
    ++unreported_;
    if (status == WorkStatus::success && (work.flags & kSignaled) == 0) return;
    completions.complete(
        {.id = work.id, .qpn = qpn, .status = status, .opcode = work.opcode, .bytes = work.length, .retired = unreported_});
    unreported_ = 0;
  }
  void skip_local() {
    while (cursor != tail && at(cursor).packets == 0) ++cursor;
  }

  uint32_t depth_;
  uint32_t entry_mask_;      // one less than there are entries
  uint32_t settled_ = 0;     // marks of [una, end) that say so
  uint32_t unreported_ = 0;  // retired since the last completion
  uint32_t order_ = 0;       // order of the latest transmission
  uint32_t mark_mask_ = 0;   // one less than there are marks
  std::unique_ptr<SendEntry[]> entries_;
  std::unique_ptr<Mark[]> marks_;
};

}  // namespace weir
