// The PFC watchdog of one port: finds egress queues that the peer has kept from sending for so long that it is not congestion but
// a fault (a NIC that pauses without end, a deadlock), and says what is done with their frames until that is over. As in SONiC
// ("PFC Watchdog", HLD and `pfcwd`), except that pauses are heard of when they come, and not polled:
//
//   storm     for detection_time the queue was paused, had frames, and sent none; looked at each quarter of that, so found up to
//             a quarter later
//   restored  no frame has asked for a pause for restoration_time, and none is in force
//
// As there, frames of both directions are dropped: frames for the queue, and those that come in from the peer at the priority.
#pragma once

#include <array>
#include <cstdint>

#include "base/describe.h"
#include "base/types.h"

namespace weir {

enum class StormAction : uint8_t {
  drop,     // waiting frames, and new ones, from the peer too
  forward,  // frames leave as if the peer did not ask for pauses
  alert     // nothing: it is only counted
};
constexpr auto words_of(StormAction) { return std::array{"drop", "forward", "alert"}; }

struct PfcWatchdogParameters {
  Time detection_time = 0;
  Time restoration_time = 200 * kMillisecond;
  StormAction action = StormAction::drop;
};
void describe(auto& v, Of<PfcWatchdogParameters> auto& p) {
  v.type("NativePfcWatchdog", "What is done about peers that pause without end.");
  v("detection_time", p.detection_time, field::optional(field::ns("Paused with frames waiting, until it is a storm; 0: never.")));
  v("restoration_time", p.restoration_time, field::optional(field::above(field::ns("Without pauses, until it is over."))));
  v("action", p.action, field::optional(field::any("With the frames of a queue in a storm.")));
}

class PfcWatchdog {
 public:
  // State of a port's queues: masks of priorities, and frames that each has sent so far.
  struct Queues {
    uint8_t paused = 0;
    uint8_t backlogged = 0;
    std::array<uint64_t, kPriorities> sent{};
  };
  // Masks of priorities.
  struct Verdict {
    uint8_t detected = 0;
    uint8_t restored = 0;
  };

  explicit PfcWatchdog(const PfcWatchdogParameters& parameters) : parameters_(parameters) {}
  // Storms go on.
  void configure(const PfcWatchdogParameters& parameters) { parameters_ = parameters; }
  // Priorities that are in a storm now.
  uint8_t storms() const { return storms_; }
  // Masks of storms whose frames are dropped, and of those whose pauses are not obeyed.
  uint8_t dropping() const { return parameters_.action == StormAction::drop ? storms_ : uint8_t{0}; }
  uint8_t ignoring() const { return parameters_.action == StormAction::forward ? storms_ : uint8_t{0}; }

  // The peer has asked for a pause, or for a longer one.
  void asked(Time now, int priority) { asked_[static_cast<size_t>(priority)] = now; }
  // Looks at the queues, after pauses have changed or when next() has come.
  Verdict look(Time now, const Queues& queues);
  // When to look again; kNever where nothing is paused.
  Time next() const { return next_; }

 private:
  bool stuck(Time now, size_t priority, const Queues& queues);

  PfcWatchdogParameters parameters_;
  uint8_t storms_ = 0;
  uint8_t paused_ = 0;  // priorities in no storm that were paused when they were last looked at
  Time next_ = kNever;
  std::array<Time, kPriorities> since_{};     // those have sent nothing since then, and were never empty but at first
  std::array<uint64_t, kPriorities> sent_{};  // frames sent by then
  std::array<Time, kPriorities> asked_{};
};

}  // namespace weir
