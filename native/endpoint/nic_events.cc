#include "endpoint/nic_events.h"

#include <algorithm>

#include "endpoint/nic_pauses.h"

namespace weir {

void NicEvents::advance(Time now) {
  const bool something = nic().wakes <= now;
  begin(now);
  if (something) end();
}

// Goes through the events of its own up to now; the first of them is known since the last event. Returns the time of the next.
Time NicEvents::go_through(Time now) {
  Time at = nic().wakes;
  for (; at <= now; at = nic().next_event()) {
    if (!nic().due.empty()) sender_.flows().line_up_due({at, at < now ? kAll : kFrame});
    nic().now = std::max(nic().now, at);
    handle_due(at);
  }
  return at;
}

// Handles everything due at `at`. Now is later than `at` only after SoftNic::skip_to(): then sending happens now.
void NicEvents::handle_due(Time at) {
  nic().egress.look(nic().now);
  nic().retry_at = kNever;
  nic().egress.pause.advance(nic().now);
  nic().egress.pfc.advance(nic().now);
  nic().receive_buffer.advance(nic().now);
  NicPauses pauses(nic());
  if (nic().storm_at <= nic().now) pauses.keep_to_storm();
  pauses.resume_peer();
  sender_.expire_windows(at);
  sender_.start_next();
}

void NicEvents::wake(Time at) {
  if (nic().wakes != at) return;
  sender_.flows().line_up_due({at, kAll});
  const Time next = go_through(at);
  nic().wakes = kNever;
  schedule_itself(next);
}

void NicEvents::end() {
  sender_.start_next();
  schedule_itself(nic().next_event());
}

void NicEvents::schedule_itself(Time next) {
  if (next == nic().wakes) return;
  nic().wakes = next;
  nic().driver.wake(nic().itself, next);
}

}  // namespace weir
