// The DCQCN notification point: when the receiver of marked packets sends a congestion notification packet (CNP).
//
// Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1 and figure 6.
// "If a marked packet arrives for a flow, and no CNP has been sent for the flow in last N microseconds, a CNP is sent
// immediately. Then, the NIC generates at most one CNP packet every N microseconds for the flow, if any packet that
// arrives within that time window was marked."
//
// Reading taken here, per flow (queue pair):
//   idle    a marked packet at t: send a CNP at t and open the window [t, t + N)
//   window  a marked packet only sets a bit. At the end, with the bit set: send a CNP and open the next window, which
//           starts where this one ended, so CNPs under lasting congestion are exactly N apart. Without: idle.
// A packet that arrives at the very end of a window belongs to the next one (or to idle).
//
// N of 0: every marked packet sends a CNP and no window opens.
#pragma once

#include <utility>

#include "base/types.h"
#include "congestion/written.h"

namespace weir {

// N, which all flows of a NIC have in common.
inline constexpr Written kMinTimeBetweenCnps = written::as(
    "min_time_between_cnps",
    written::mlx5("np_min_time_between_cnps",
                  written::time("N: least time between two CNPs of one flow (notification point).", 0, 10 * kSecond)));

// 16 bytes, one per flow. N is constant, but for shorten() of all: so the owner of many keeps the active ones in a FIFO, which is
// then in the order of window_end(): an opened window is pushed at the back, and so is each one that expire() opens.
class NotificationPoint {
 public:
  // A marked packet arrived. True: send a CNP now; unless `interval` (N) is 0, a window has opened.
  // A window that ended at or before `now` must have been expired before.
  bool on_marked(Time now, Time interval) {
    if (active()) {
      marked_ = true;
      return false;
    }
    if (interval > 0) window_end_ = now + interval;
    return true;
  }

  // The window is open: expire() is to be called at window_end().
  bool active() const { return window_end_ != kNever; }
  // kNever when idle.
  Time window_end() const { return window_end_; }

  // The window is over (only when active). True: send a CNP, dated window_end() as it was before the call, and the next
  // window is open. False: idle.
  bool expire(Time interval) {
    const bool send = std::exchange(marked_, false);
    window_end_ = send && interval > 0 ? window_end_ + interval : kNever;
    return send;
  }

  // N is shorter from now on: an open window ends at `latest` at the latest.
  void shorten(Time latest) {
    if (active() && window_end_ > latest) window_end_ = latest;
  }

 private:
  Time window_end_ = kNever;
  bool marked_ = false;
};

}  // namespace weir
