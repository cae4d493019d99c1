#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "congestion/dcqcn_notification_point.h"

namespace {

using weir::kMicrosecond;
using weir::NotificationPoint;
using weir::Time;

static_assert(sizeof(NotificationPoint) == 16);

constexpr Time kN = 50 * kMicrosecond;
constexpr Time us(Time value) { return value * kMicrosecond; }

// Feeds marked packets at the given times, expiring windows as they end, and returns the times of the CNPs.
std::vector<Time> cnps(const std::vector<Time>& marks, Time interval) {
  NotificationPoint np;
  std::vector<Time> sent;
  const auto expire_until = [&](Time now) {
    while (np.active() && np.window_end() <= now) {
      const Time end = np.window_end();
      if (np.expire(interval)) sent.push_back(end);
    }
  };
  for (const Time mark : marks) {
    expire_until(mark);
    if (np.on_marked(mark, interval)) sent.push_back(mark);
  }
  expire_until(weir::kNever - 1);
  CHECK_FALSE(np.active());
  return sent;
}

}  // namespace

TEST_CASE("notification point: state machine step by step") {
  NotificationPoint np;
  CHECK_FALSE(np.active());
  CHECK(np.on_marked(us(7), kN));
  CHECK(np.active());
  CHECK(np.window_end() == us(57));
  CHECK_FALSE(np.on_marked(us(8), kN));
  CHECK(np.expire(kN));
  CHECK(np.window_end() == us(107));  // from the end of the last window
  CHECK_FALSE(np.expire(kN));         // the bit was cleared
  CHECK_FALSE(np.active());
  CHECK(np.window_end() == weir::kNever);
  CHECK(np.on_marked(us(107), kN));
}

TEST_CASE("notification point: CNP times") {
  CHECK(cnps({us(3)}, kN) == std::vector<Time>{us(3)});
  CHECK(cnps({us(3), us(3)}, kN) == std::vector<Time>{us(3), us(53)});
  CHECK(cnps({us(0), us(50) - 1}, kN) == std::vector<Time>{us(0), us(50)});
  // It comes at the very end of an unmarked window: idle again, so at once.
  CHECK(cnps({us(0), us(50)}, kN) == std::vector<Time>{us(0), us(50)});
  // It comes at the very end of a marked window: counts for the next one.
  CHECK(cnps({us(0), us(1), us(50)}, kN) == std::vector<Time>{us(0), us(50), us(100)});
  // Idle from 100 us; then at once.
  CHECK(cnps({us(0), us(49), us(130), us(131)}, kN) == std::vector<Time>{us(0), us(50), us(130), us(180)});
  // Lasting congestion: exactly N apart.
  std::vector<Time> marks;
  for (Time t = 0; t < us(200); t += us(1)) marks.push_back(t + 500);
  CHECK(cnps(marks, kN) == std::vector<Time>{500, us(50) + 500, us(100) + 500, us(150) + 500, us(200) + 500});
}

TEST_CASE("notification point: interval 0 answers every mark") {
  CHECK(cnps({us(1), us(1), us(2)}, 0) == std::vector<Time>{us(1), us(1), us(2)});
}

TEST_CASE("notification point: never two CNPs within N, and no mark goes unanswered for longer than N") {
  weir::Random random(1);
  std::vector<Time> marks;
  Time now = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t longest = random.next() % 8 == 0 ? 200'000 : 5'000;
    now += static_cast<Time>(random.next() % longest);
    marks.push_back(now);
  }
  const std::vector<Time> sent = cnps(marks, kN);
  for (std::size_t i = 1; i < sent.size(); ++i) REQUIRE(sent[i] - sent[i - 1] >= kN);
  std::size_t next = 0;
  for (const Time mark : marks) {
    while (next < sent.size() && sent[next] < mark) ++next;
    REQUIRE(next < sent.size());
    REQUIRE(sent[next] - mark <= kN);
  }
}
