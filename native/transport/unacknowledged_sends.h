// The requester's side where nobody acknowledges: a message is done with once its last packet has left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "transport/verbs_transport.h"

namespace weir {

class UnacknowledgedSends : public VerbsTransport {
 public:
  // Who takes packets has made frames of them by the next advance(), or says when one has left (TransportContext::tells_left).
  Time next_deadline() const override { return taken_ > 0 && !context_.tells_left ? 0 : kNever; }
  void advance(Time) override { retire(taken_); }
  // The last packet has left of the message that was taken first.
  void left() { retire(std::min(taken_, 1u)); }

 protected:
  using VerbsTransport::VerbsTransport;

  void stop() override { forget(); }
  bool busy() const override { return taken_ > 0; }
  // Whether there is a message to take packets of.
  bool more() const { return sends_.cursor != sends_.tail; }
  const SendWork& work() const { return sends_.at(sends_.cursor).work; }
  // Its last packet has been taken.
  void take_whole() {
    ++taken_;
    sends_.proceed();
  }
  // It is not valid; those before it have been taken.
  void refuse_message(WorkStatus status) {
    retire(taken_);
    fail_send(status);
    forget();
  }

 private:
  void forget() {
    taken_ = 0;
    sends_.cursor = sends_.tail;
  }
  // They may have been flushed meanwhile.
  void retire(uint32_t messages) {
    taken_ -= messages;
    for (; messages > 0 && state_ == QueuePairState::rts; --messages) {
      sends_.retire(WorkStatus::success, qpn_, context_.completions);
    }
  }

  uint32_t taken_ = 0;  // messages that wait for their last packets to leave
};

}  // namespace weir
