#include <doctest/doctest.h>

#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "link/agenda.h"

namespace {

using weir::Agenda;
using weir::kNever;
using weir::kNoPacket;
using weir::PacketId;
using weir::PacketPool;
using weir::Random;
using weir::Time;
using weir::TimingWheel;
using weir::WakeHeap;

struct Woken {
  uint32_t what;
  Time at;
  bool operator==(const Woken&) const = default;
};

// Writes down what it is woken for; asks again `again` later, if that is more than 0.
struct Sleeper {
  weir::Driver* driver = nullptr;
  Time again = 0;
  std::vector<Woken> woken = {};
  void wake(uint32_t what, Time at) {
    woken.push_back({what, at});
    if (again > 0) driver->wake(what, at + again);
  }
};

PacketId packet(PacketPool& pool) {
  const PacketId id = pool.allocate();
  REQUIRE(id != kNoPacket);
  pool[id].reset();
  return id;
}

}  // namespace

TEST_CASE_TEMPLATE("an agenda wakes a device for what is due, at the times it asked for", Wakes, WakeHeap, TimingWheel) {
  PacketPool pool(4, 0);
  const auto wakes = [] {
    if constexpr (std::is_same_v<Wakes, WakeHeap>) {
      return WakeHeap(4);
    } else {
      return TimingWheel(4, 1'000);
    }
  };
  Agenda<Wakes> agenda(pool, 1, wakes());
  Sleeper device;
  CHECK(agenda.next_deadline() == kNever);
  agenda.run(1'000'000, device);
  CHECK(device.woken.empty());

  agenda.wake(2, 1'000'300);
  agenda.wake(0, 1'000'200);
  agenda.wake(3, 1'000'400);
  agenda.wake(1, 1'000'100);
  agenda.wake(1, 1'000'500);  // instead
  agenda.wake(3, kNever);     // not at all
  CHECK(agenda.next_deadline() == 1'000'200);
  agenda.run(1'000'200, device);
  CHECK(device.woken == std::vector<Woken>{{0, 1'000'200}});
  agenda.run(2'000'000, device);
  CHECK(device.woken == std::vector<Woken>{{0, 1'000'200}, {2, 1'000'300}, {1, 1'000'500}});
  CHECK(agenda.next_deadline() == kNever);

  Sleeper restless{&agenda, 10};
  agenda.wake(1, 2'000'005);
  agenda.run(2'000'030, restless);
  CHECK(restless.woken == std::vector<Woken>{{1, 2'000'005}, {1, 2'000'015}, {1, 2'000'025}});
  CHECK(agenda.next_deadline() == 2'000'035);
}

TEST_CASE("an agenda's wakes come in the order of time, and at one time of their numbers") {
  PacketPool pool(4, 0);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Agenda<WakeHeap> agenda(pool, 1, WakeHeap(16));
    std::map<uint32_t, Time> asked;
    Time now = 0;
    for (int round = 0; round < 2'000; ++round) {
      const auto what = static_cast<uint32_t>(random.next() % 16);
      const Time at = random.next() % 10 == 0 ? kNever : now + static_cast<Time>(random.next() % 50);
      agenda.wake(what, at);
      asked[what] = at;
      if (random.next() % 4 != 0) continue;
      now += static_cast<Time>(random.next() % 40);
      std::set<std::pair<Time, uint32_t>> due;
      for (auto& [number, time] : asked) {
        if (time <= now) due.emplace(std::exchange(time, kNever), number);
      }
      Sleeper device;
      agenda.run(now, device);
      std::vector<Woken> expected;
      for (const auto& [time, number] : due) expected.push_back({number, time});
      REQUIRE(device.woken == expected);
    }
  }
}

TEST_CASE("an agenda gives the frames of a port, oldest first, once they have left") {
  PacketPool pool(4, 0);
  Agenda<WakeHeap> agenda(pool, 2, WakeHeap(2));
  const PacketId first = packet(pool), second = packet(pool), other = packet(pool);
  agenda.depart(1, first, 100);
  agenda.depart(1, second, 200);
  agenda.depart(0, other, 150);
  CHECK(agenda.next_deadline() == 100);
  CHECK(agenda.take(1, 99) == kNoPacket);
  CHECK(agenda.take(0, 149) == kNoPacket);
  CHECK(agenda.take(1, 150) == first);
  CHECK(agenda.take(1, 150) == kNoPacket);
  CHECK(agenda.next_deadline() == 150);
  CHECK(agenda.take(0, 150) == other);
  CHECK(agenda.next_deadline() == 200);
  agenda.wake(0, 180);
  CHECK(agenda.next_deadline() == 180);
  agenda.wake(0, kNever);
  CHECK(agenda.take(1, 200) == second);
  CHECK(agenda.next_deadline() == kNever);
}

TEST_CASE("an agenda is quiet as far as it has run, and no further than what comes next") {
  PacketPool pool(4, 0);
  Agenda<WakeHeap> agenda(pool, 1, WakeHeap(4));
  Sleeper device;
  CHECK(agenda.quiet_until() == weir::Driver::kAnyMoment);
  agenda.run(100, device);
  CHECK(agenda.quiet_until() == 100);
  agenda.wake(0, 80);
  CHECK(agenda.quiet_until() == 79);
  agenda.wake(0, 150);
  CHECK(agenda.quiet_until() == 100);
  agenda.run(200, device);
  CHECK(agenda.quiet_until() == 200);
}
