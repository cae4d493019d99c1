// The sending side of a NIC's link: what is on it, what waits for it, and what goes next when it falls free. The link carries one
// frame at a time. The order is: PFC frames, CNPs, answers (acknowledgements), then data by the scheduler among priorities with a
// ready queue pair; within a priority queue pairs take turns.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/types.h"
#include "link/pfc.h"
#include "link/scheduler.h"
#include "link/serializer.h"

namespace weir {

class NicEgress {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  // Queue pairs have indexes below `queue_pairs`. `scheduler` must outlive this.
  NicEgress(Rate rate, const SchedulerParameters& scheduler, uint32_t queue_pairs)
      : link_(rate), ready_(queue_pairs), answers_(queue_pairs) {
    scheduler_.configure(scheduler);
  }

  bool busy(Time now) const { return busy_until_ > now; }
  Time busy_until() const { return busy_until_; }
  // Nothing goes while it is held.
  bool held() const { return held_; }
  void hold(bool held) { held_ = held; }
  // Puts a frame on the link, which must be free; returns when its last bit has left.
  Time send(Time now, uint32_t wire_bytes) {
    sending_ = true;
    return busy_until_ = link_.finish(now, wire_bytes);
  }
  // The end of the frame on the link, if it has come by `now`, has been looked at.
  void look(Time now) { sending_ &= busy(now); }

  // Queue pairs with data, or with answers, that may go. Each is in either list once at most.
  void push_ready(uint32_t queue_pair, uint8_t priority) { ready_.push(queue_pair, priority); }
  void push_answers(uint32_t queue_pair, uint8_t priority) { answers_.push(queue_pair, priority); }

  // These say whether it may go now: a CNP that is owed at `cnp_priority`, answers, data.
  bool cnp_may_go(uint8_t cnp_priority) const { return (pause.paused_mask() >> cnp_priority & 1) == 0; }
  bool answers_may_go() const { return (answers_.waiting & ~pause.paused_mask()) != 0; }
  bool data_waits() const { return ready_.waiting != 0; }
  // True if there are neither answers nor data, that may go or not.
  bool empty() const { return (ready_.waiting | answers_.waiting) == 0; }
  // Takes the queue pair with answers whose turn it is: one of the highest priority that may send. kNobody: there is none.
  uint32_t take_answers(uint8_t& priority) {
    const auto may = static_cast<uint32_t>(answers_.waiting & ~pause.paused_mask());
    if (may == 0) return kNobody;
    priority = static_cast<uint8_t>(31 - __builtin_clz(may));
    return answers_.pop(priority);
  }
  // The same with data. `wire_bytes(queue_pair)`: of its next frame; lengths matter only between several priorities.
  template <class WireBytes>
  uint32_t take_ready(uint8_t& priority, WireBytes wire_bytes) {
    const uint8_t waiting = ready_.waiting;
    if ((waiting & (waiting - 1)) == 0) {  // nobody to share with
      if ((waiting & ~pause.paused_mask()) == 0) return kNobody;
      priority = static_cast<uint8_t>(__builtin_ctz(waiting));
      return ready_.pop(priority);
    }
    std::array<uint32_t, kPriorities> heads{};
    for (uint8_t left = waiting; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      const auto p = static_cast<size_t>(__builtin_ctz(left));
      heads[p] = wire_bytes(ready_.lists[p].head);
    }
    const int picked = scheduler_.pick(waiting, pause.paused_mask(), heads);
    if (picked < 0) return kNobody;
    priority = static_cast<uint8_t>(picked);
    return ready_.pop(priority);
  }

  // When to look again, if nothing happens before: the link falls free, or a pause ends. `cnps`: priorities of CNPs that are
  // owed.
  Time next_deadline(uint8_t cnps) const {
    const Time refresh = pfc.next_deadline();
    const auto waiting = static_cast<uint8_t>(ready_.waiting | answers_.waiting | cnps);
    if (waiting == 0 && pfc.owed() == 0) return refresh;
    return std::min(refresh, sending_ ? busy_until_ : pause.next_resume(waiting));
  }

  PauseState pause;  // pause that the peer has asked for
  PfcSender pfc;     // pause that the peer is asked for

 private:
  // Queue pairs by priority, in order.
  struct Lists {
    struct List {
      uint32_t head = kNobody;
      uint32_t tail = kNobody;
    };
    explicit Lists(uint32_t queue_pairs) : next(queue_pairs, kNobody) {}
    void push(uint32_t queue_pair, uint8_t priority) {
      List& list = lists[priority];
      next[queue_pair] = kNobody;
      (list.head == kNobody ? list.head : next[list.tail]) = queue_pair;
      list.tail = queue_pair;
      waiting = static_cast<uint8_t>(waiting | 1u << priority);
    }
    uint32_t pop(uint8_t priority) {
      List& list = lists[priority];
      const uint32_t queue_pair = list.head;
      list.head = next[queue_pair];
      if (list.head == kNobody) waiting = static_cast<uint8_t>(waiting & ~(1u << priority));
      return queue_pair;
    }
    std::array<List, kPriorities> lists;
    uint8_t waiting = 0;  // priorities that are not empty
    std::vector<uint32_t> next;
  };

  Serializer link_;
  Time busy_until_ = 0;   // end of the frame on the link
  bool sending_ = false;  // nobody has looked at that yet
  bool held_ = false;
  Lists ready_;
  Lists answers_;
  Scheduler scheduler_;
};

}  // namespace weir
