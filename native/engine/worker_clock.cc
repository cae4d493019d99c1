#include "engine/worker_clock.h"

#include <time.h>

namespace weir {
namespace {

constexpr Time kOffsetInterval = 10 * kMillisecond;

Time read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

}  // namespace

Time monotonic_now() { return read_clock(CLOCK_MONOTONIC); }

// The two clocks are read around each other; a reading that was interrupted in between is not taken.
void WorkerClock::refresh() {
  clock_.now = monotonic_now();
  if (offset_checked_ != 0 && clock_.now - offset_checked_ < kOffsetInterval) return;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Time before = monotonic_now();
    const Time real = read_clock(CLOCK_REALTIME);
    const Time after = monotonic_now();
    if (after - before > 2 * kMicrosecond && (attempt < 2 || offset_checked_ != 0)) continue;
    clock_.realtime_offset = before + (after - before) / 2 - real;
    offset_checked_ = after;
    return;
  }
}

}  // namespace weir
