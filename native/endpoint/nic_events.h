// A NIC's time: every event begins with what was due before it, and ends with what may be sent now and when to come again.
#pragma once

#include <algorithm>

#include "base/types.h"
#include "endpoint/sender.h"

namespace weir {

class NicEvents {
 public:
  explicit NicEvents(const NicSetup& setup) : sender_(setup) {}

  Sender& sender() { return sender_; }
  const Sender& sender() const { return sender_; }

  // Time has come to `now`, with all that was due by then; of the queue pairs that are due behind the frame on the link at `now`
  // itself, with those whose number is below `behind`. Frames come before all of them.
  static constexpr uint32_t kFrame = 0;
  static constexpr uint32_t kAll = NicState::kNone;
  void begin(Time now, uint32_t behind = kFrame) {
    if (!nic().due.empty()) sender_.flows().line_up_due({now, behind});
    if (nic().wakes <= now) go_through(now);
    nic().now = std::max(nic().now, now);
    nic().egress.look(nic().now);
  }
  // Sends what may go now, and has the driver come when the next is due.
  void end();
  // Lets time pass.
  void advance(Time now);
  // Its own wake.
  void wake(Time at);
  // Has the driver come for its own next event at that time.
  void schedule_itself(Time next);

 private:
  NicState& nic() { return sender_.flows().nic(); }
  Time go_through(Time now);
  void handle_due(Time at);

  Sender sender_;
};

}  // namespace weir
