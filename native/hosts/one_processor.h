// Keeps the calling thread, and the processes that it starts, on the processor on which it is: of threads that run one at a time,
// each is there when the one before it stops, where another processor must be woken for it (three times as long, in a guest).
#pragma once

#include <sched.h>

namespace weir {

class OneProcessor {
 public:
  // Where the system refuses, all stays as it was.
  OneProcessor() {
    const int here = ::sched_getcpu();
    if (here < 0 || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    kept_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  // Must be called on the same thread.
  ~OneProcessor() {
    if (kept_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
  bool kept_ = false;
};

}  // namespace weir
