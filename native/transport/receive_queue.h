// Receive work requests in order: a queue pair's own, or those that several share (IBTA volume 1, 10.2.9).
#pragma once

#include <utility>

#include "base/ring.h"
#include "transport/work.h"

namespace weir {

// Several queue pairs take their receives from one of these.
using SharedReceives = Ring<ReceiveWork>;

class ReceiveQueue {
 public:
  // `shared`: where they come from, instead of an own queue of that depth; it outlives this. Null: they are its own.
  ReceiveQueue(uint32_t depth, SharedReceives* shared) : own_(shared == nullptr ? depth : 0), shared_(shared) {}

  bool shared() const { return shared_ != nullptr; }
  // Whether there is none for the next message, or for the one under way.
  bool empty() const { return !held_ && (shared() ? *shared_ : own_).empty(); }
  bool full() const { return own_.full(); }
  uint32_t size() const { return own_.size(); }
  // The queue must not be full: it never is, where receives are shared.
  void push(const ReceiveWork& work) { own_.push(work); }

  // The oldest; only when not empty.
  const ReceiveWork& front() { return held_ ? work_ : (shared() ? *shared_ : own_).front(); }
  // It is for the message that has begun: nobody else takes it.
  void hold() {
    if (!shared() || held_) return;
    work_ = shared_->pop();
    held_ = true;
  }
  // It is done with; `completion` says how.
  void retire(Completion completion, uint32_t qpn, CompletionSink& completions) {
    completion.id = front().id;
    completion.qpn = qpn;
    completion.receive = true;
    if (!std::exchange(held_, false)) (shared() ? *shared_ : own_).pop();
    completions.complete(completion);
  }
  // Ends the receives that end with the queue pair: all that are not others' as well.
  void flush(uint32_t qpn, CompletionSink& completions) {
    while (held_ || !own_.empty()) retire({.status = WorkStatus::flushed}, qpn, completions);
  }

 private:
  Ring<ReceiveWork> own_;
  SharedReceives* shared_;
  ReceiveWork work_;  // the receive that is held, where they are shared
  bool held_ = false;
};

}  // namespace weir
