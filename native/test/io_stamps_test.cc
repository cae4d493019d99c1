#include <doctest/doctest.h>

#include "io/stamps.h"

using namespace weir;

namespace {

Time true_now = 0;

// A host whose wall clock somebody sets, and a worker that looks at both clocks now and then.
struct Host {
  Time wall() const { return true_now + offset; }
  // A turn of the worker's loop; the offset is measured anew only now and then.
  void turn(Time at, bool measures = true) {
    true_now = clock.now = at;
    if (measures) clock.realtime_offset = -offset;
    stamps.begin();
  }
  // A frame that is stamped `late` before it can be read.
  Time arrive(Time late = 0) { return stamps.convert(wall() - late); }

  Host() {
    true_now = 1'000 * kSecond;
    clock.read = [] { return true_now; };
  }
  Time offset = 1'700'000'000 * kSecond;
  PortClock clock;
  Stamps stamps{clock};
};

}  // namespace

TEST_CASE("stamps: a clock that nobody sets is converted exactly") {
  Host host;
  host.turn(2'000 * kSecond);
  CHECK(host.arrive() == 2'000 * kSecond);
  CHECK(host.arrive(3 * kMillisecond) == 2'000 * kSecond - 3 * kMillisecond);
  // Frames come while a burst is read, and the worker may be put off its CPU meanwhile.
  true_now += 50 * kMicrosecond;
  CHECK(host.arrive() == 2'000 * kSecond + 50 * kMicrosecond);
  true_now += 7 * kMillisecond;
  CHECK(host.arrive() == true_now);
  host.stamps.emptied();
  host.turn(2'001 * kSecond);
  CHECK(host.arrive(20 * kMillisecond) == true_now - 20 * kMillisecond);
  CHECK(host.stamps.corrected() == 0);
}

TEST_CASE("stamps: after a step of the wall clock no frame arrives later than now, nor before the last look at the ring") {
  for (const Time step : {30 * kSecond, 365 * 86'400 * kSecond, 2 * kMillisecond, -30 * kSecond, -365 * 86'400 * kSecond}) {
    CAPTURE(step);
    Host host;
    const Time looked = 2'000 * kSecond;
    host.turn(looked);
    host.stamps.emptied();
    host.offset += step;
    // Until the offset is measured, 10 ms at most ...
    for (Time at = looked + kMillisecond; at < looked + 10 * kMillisecond; at += kMillisecond) {
      host.turn(at, false);
      CHECK(host.arrive() <= at);
      CHECK(host.arrive() >= looked);
    }
    const uint64_t before = host.stamps.corrected();
    CHECK(before > 0);
    // ... and for what was stamped before and is read behind that.
    const Time stamped_before = host.wall() - step - 5 * kMillisecond;
    host.turn(looked + 10 * kMillisecond);
    const Time old = host.stamps.convert(stamped_before);
    CHECK(old <= true_now);
    CHECK(old >= looked);
    // Then all is well.
    const uint64_t corrected = host.stamps.corrected();
    host.turn(looked + 20 * kMillisecond);
    CHECK(host.arrive() == true_now);
    CHECK(host.stamps.corrected() == corrected);
  }
}

TEST_CASE("stamps: without a clock to look at, now is what the worker was told") {
  PortClock clock;
  clock.now = 5 * kSecond;
  Stamps stamps(clock);
  stamps.begin();
  CHECK(stamps.convert(90 * kSecond) == 5 * kSecond);
  CHECK(stamps.corrected() == 1);
}
