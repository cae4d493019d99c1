// The order of events at a device, and what a schedule promises of windows, against a plain sorted list.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "simulation/schedule.h"

namespace weir::test {
namespace {

constexpr uint32_t kDevices = 70;
constexpr Time kLookahead = 300;

struct Seen {
  Time at;
  uint32_t kind;
  uint32_t packet;
  bool operator==(const Seen&) const = default;
};

// Everything up to `until`, window by window, or up to the end of that in which `limit` events have been: then false.
// Packets with lower numbers were sent before.
template <class Handle>
bool run_until(Schedule& schedule, Time until, uint64_t limit, Handle handle) {
  for (;;) {
    const uint64_t window = schedule.next_window();
    if (window == Schedule::kNoWindow || schedule.start_of(window) > until) return true;
    const Time end = std::min(schedule.start_of(window + 1), until + 1);
    const auto ready = [] { return true; };
    REQUIRE(schedule.run(
        window, end, handle, ready, [](const Event&, size_t) {}, std::less<uint32_t>()));
    if (end > until) return true;
    if (schedule.events() >= limit) return false;
  }
}

// Devices that wake themselves and send to each other, at random but by their own streams: what one does depends on nothing but
// what has happened to it, in order.
class Crowd {
 public:
  explicit Crowd(uint64_t seed) : schedule_(kDevices, kLookahead), seen_(kDevices) {
    for (uint32_t device = 0; device < kDevices; ++device) {
      randoms_.emplace_back(seed, device);
      push({static_cast<Time>(device % 7), kWake, device, device});
    }
  }
  bool run(Time until, uint64_t limit) {
    return run_until(schedule_, until, limit, [this](const Event& event) { handle(event); });
  }
  uint64_t events() const { return schedule_.events(); }
  const std::vector<std::vector<Seen>>& seen() const { return seen_; }
  // Everything that was asked for up to `until`, by device, as it should have happened; frames by port and order of sending.
  std::vector<std::vector<Seen>> expected(Time until) const {
    std::vector<std::vector<Seen>> out(kDevices);
    std::vector<Event> all = pushed_;
    std::ranges::stable_sort(all, [](const Event& a, const Event& b) {
      return std::tuple(a.at, a.kind, is_frame(a) ? 0u : a.packet) < std::tuple(b.at, b.kind, is_frame(b) ? 0u : b.packet);
    });
    for (const Event& event : all) {
      if (event.at <= until) out[event.device].push_back({event.at, event.kind, event.packet});
    }
    return out;
  }

 private:
  void push(const Event& event) {
    pushed_.push_back(event);
    schedule_.push(event.at, event.kind, event.packet, event.device);
  }
  void handle(const Event& event) {
    std::vector<Seen>& seen = seen_[event.device];
    if (!seen.empty()) REQUIRE(seen.back().at <= event.at);
    seen.push_back({event.at, event.kind, event.packet});
    Random& random = randoms_[event.device];
    const auto below = [&](uint64_t limit) { return static_cast<uint32_t>(random.next() % limit); };
    // Wakes soon, in the same window, at this very time, and far away.
    const Time waits[] = {0, static_cast<Time>(below(40)), static_cast<Time>(below(2'000)), static_cast<Time>(below(400'000))};
    if (!is_frame(event)) push({event.at + 1 + waits[1 + below(3)], kWake, event.packet, event.device});
    // Of one of the NICs that a device may have.
    const uint32_t nic = event.kind % 3;
    if (is_frame(event) && below(3) == 0) push({event.at + waits[below(2)], kWake - nic, below(4), event.device});
    if (is_frame(event)) return;
    // Frames to others: each by the one port that faces the sender, at times that often coincide.
    const uint32_t to = (event.device + 1 + below(kDevices - 1)) % kDevices;
    const Time arrives = (event.at + kLookahead + below(3) * 100 + 99) / 100 * 100;
    for (uint32_t copies = below(3); copies > 0; --copies) push({arrives, event.device, ++packets_, to});
  }

  Schedule schedule_;
  std::vector<Random> randoms_;
  std::vector<std::vector<Seen>> seen_;
  std::vector<Event> pushed_;
  uint32_t packets_ = 0;
};

constexpr Time kEnd = 60'000;

TEST_CASE("simulation schedule: at each device everything happens, in its order") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Crowd crowd(seed);
    REQUIRE(crowd.run(kEnd, UINT64_MAX));
    CHECK(crowd.events() > 20'000);
    // Packet numbers are given in the order of handling, which windows make; the order of those of one port does not depend on
    // it.
    CHECK(crowd.seen() == crowd.expected(kEnd));
  }
}

TEST_CASE("simulation schedule: where a run is cut does not matter") {
  const auto without_packets = [](const Crowd& crowd) {
    std::vector<std::vector<Seen>> seen = crowd.seen();
    for (std::vector<Seen>& list : seen) {
      for (Seen& one : list) one.packet = is_frame({one.at, one.kind}) ? 0 : one.packet;
    }
    return seen;
  };
  Crowd whole(7);
  whole.run(kEnd, UINT64_MAX);
  for (const Time piece : {Time{1}, Time{77}, Time{300}, Time{4'321}}) {
    CAPTURE(piece);
    Crowd pieces(7);
    for (Time at = 0; at < kEnd; at += piece) REQUIRE(pieces.run(at, UINT64_MAX));
    REQUIRE(pieces.run(kEnd, UINT64_MAX));
    CHECK(without_packets(pieces) == without_packets(whole));
  }
  Crowd counted(7);
  while (!counted.run(kEnd, counted.events() + 50)) {
  }
  CHECK(without_packets(counted) == without_packets(whole));
}

TEST_CASE("simulation schedule: nothing before its time, and time may stand still for long") {
  Schedule schedule(2, 1'000);
  std::vector<Time> times;
  const auto run = [&](Time until) {
    return run_until(schedule, until, UINT64_MAX, [&](const Event& event) { times.push_back(event.at); });
  };
  const Time far = Time{1} << 40;
  for (const Time at : {far, Time{5}, far + 1, Time{999}, Time{1'000}, Time{20'000'000}}) schedule.push(at, kWake, 0, 1);
  CHECK(run(4));
  CHECK(times.empty());
  CHECK(run(999));
  CHECK(times == std::vector<Time>{5, 999});
  schedule.push(1'000, kWake, 1, 0);  // between two runs, within the window that was cut
  CHECK(run(far));
  CHECK(times == std::vector<Time>{5, 999, 1'000, 1'000, 20'000'000, far});
  CHECK(run(far + 1));
  CHECK(times.back() == far + 1);
}

// A frame that is held back for long arrives together with one that was sent after it.
TEST_CASE("simulation schedule: frames from one port at one time come as they were sent, whenever they are told of") {
  constexpr Time kAt = 100'000;
  for (const bool early : {false, true}) {
    Schedule schedule(1, 1'000);
    std::vector<uint32_t> packets;
    const auto handle = [&](const Event& event) {
      if (is_frame(event)) packets.push_back(event.packet);
    };
    if (early) schedule.push(kAt, 4, 10, 0);
    schedule.push(kAt - 2'000, kWake, 0, 0);
    run_until(schedule, kAt - 1'000, UINT64_MAX, handle);
    schedule.push(kAt, 4, 11, 0);
    schedule.push(kAt, 2, 12, 0);
    if (!early) schedule.push(kAt, 4, 10, 0);
    run_until(schedule, kAt, UINT64_MAX, handle);
    CHECK(packets == std::vector<uint32_t>{12, 10, 11});
  }
}

TEST_CASE("simulation schedule: who is not ready goes on where it stopped, in the same window") {
  Schedule schedule(3, 1'000);
  for (const Time at : {Time{10}, Time{20}, Time{30}}) {
    for (uint32_t device = 0; device < 3; ++device) schedule.push(at, kWake, 0, device);
  }
  std::vector<std::vector<Time>> times(3);
  uint32_t patience = 0;
  const auto run = [&](Time end) {
    return schedule.run(
        0, end,
        [&](const Event& event) {
          --patience;
          times[event.device].push_back(event.at);
          if (event.at == 10) schedule.push(15, kWake, 1, event.device);
        },
        [&] { return patience > 0; }, [](const Event&, size_t) {}, std::less<uint32_t>());
  };
  uint32_t rounds = 1;
  for (patience = 1; !run(25); patience = 1) ++rounds;
  CHECK(rounds == 9);
  CHECK(times == std::vector<std::vector<Time>>(3, {10, 15, 20}));
  CHECK(schedule.next_window() == 0);
  patience = 3;
  CHECK(run(1'000));
  CHECK(times == std::vector<std::vector<Time>>(3, {10, 15, 20, 30}));
  CHECK(schedule.next_window() == Schedule::kNoWindow);
}

TEST_CASE("simulation schedule: an event falls into the window that its time says, whatever the length of windows") {
  for (const Time lookahead : {1, 2, 3, 7, 300, 682, 683, 999, 1'023, 1'024}) {
    CAPTURE(lookahead);
    Schedule schedule(1, lookahead);
    std::vector<Time> seen, expected;
    for (Time at = 0; at < 20 * lookahead; at += 1 + lookahead / 64) {
      schedule.push(at, kWake, 0, 0);
      expected.push_back(at);
    }
    const auto handle = [&](const Event& event) {
      CHECK(event.at >= schedule.start_of(schedule.window_of(event.at)));
      seen.push_back(event.at);
    };
    REQUIRE(run_until(schedule, 30 * lookahead, UINT64_MAX, handle));
    CHECK(seen == expected);
  }
}

}  // namespace
}  // namespace weir::test
