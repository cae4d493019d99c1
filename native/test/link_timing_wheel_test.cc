#include <doctest/doctest.h>

#include <initializer_list>
#include <map>
#include <vector>

#include "base/random.h"
#include "link/timing_wheel.h"

namespace {

using weir::kNever;
using weir::Time;
using weir::TimingWheel;

// Uniform below a random power of two up to 2^bits: short and long times alike.
Time random_span(weir::Random& random, uint64_t bits) {
  const uint64_t limit = uint64_t{1} << random.next() % (bits + 1);
  return static_cast<Time>(random.next() % limit);
}

// The obvious implementation: ordered by time, equal times in the order of insertion.
class Model {
 public:
  explicit Model(uint32_t entries) : where_(entries, queue_.end()) {}
  void schedule(uint32_t entry, Time at) {
    cancel(entry);
    if (at != kNever) where_[entry] = queue_.emplace(at, entry);
  }
  void cancel(uint32_t entry) {
    if (where_[entry] != queue_.end()) queue_.erase(where_[entry]);
    where_[entry] = queue_.end();
  }
  bool scheduled(uint32_t entry) const { return where_[entry] != queue_.end(); }
  Time next_deadline() const { return queue_.empty() ? kNever : queue_.begin()->first; }
  uint32_t pop_due(Time now) {
    if (next_deadline() > now || queue_.empty()) return TimingWheel::kNone;
    const uint32_t entry = queue_.begin()->second;
    cancel(entry);
    return entry;
  }

 private:
  std::multimap<Time, uint32_t> queue_;
  std::vector<std::multimap<Time, uint32_t>::iterator> where_;
};

}  // namespace

TEST_CASE("timing wheel: order, rescheduling, past and equal times") {
  TimingWheel wheel(8, 1'000);
  CHECK(wheel.next_deadline() == kNever);
  CHECK(wheel.pop_due(1'000'000) == TimingWheel::kNone);
  wheel.schedule(0, 5'000'900);
  wheel.schedule(1, 5'000'100);  // same tick, earlier
  wheel.schedule(2, 5'000'900);  // same time, later
  wheel.schedule(3, 10);         // before the position
  wheel.schedule(4, 6'000'000);
  wheel.schedule(4, 7'000'000);
  CHECK(wheel.next_deadline() == 10);
  CHECK(wheel.pop_due(1'000'000) == 3);
  CHECK(wheel.next_deadline() == 5'000'100);
  CHECK(wheel.pop_due(5'000'099) == TimingWheel::kNone);
  CHECK(wheel.pop_due(5'000'500) == 1);
  CHECK(wheel.pop_due(5'000'500) == TimingWheel::kNone);
  CHECK(wheel.next_deadline() == 5'000'900);
  wheel.schedule(0, 5'000'900);  // now after entry 2
  CHECK(wheel.pop_due(8'000'000) == 2);
  CHECK(wheel.pop_due(8'000'000) == 0);
  CHECK(wheel.scheduled(4));
  CHECK(wheel.at(4) == 7'000'000);
  wheel.cancel(4);
  wheel.cancel(4);
  CHECK_FALSE(wheel.scheduled(4));
  CHECK(wheel.next_deadline() == kNever);
  wheel.schedule(5, 9'000'000);
  wheel.schedule(5, kNever);
  CHECK(wheel.pop_due(kNever - 1) == TimingWheel::kNone);
}

TEST_CASE("timing wheel: far beyond the horizon") {
  TimingWheel wheel(3, 1);
  const Time block = Time{1} << 33;
  wheel.schedule(0, 5 * block + 7);
  wheel.schedule(1, 5 * block + 6);
  wheel.schedule(2, kNever - 1);
  CHECK(wheel.next_deadline() == 5 * block + 6);
  CHECK(wheel.pop_due(5 * block + 5) == TimingWheel::kNone);
  CHECK(wheel.pop_due(5 * block + 7) == 1);
  CHECK(wheel.pop_due(5 * block + 7) == 0);
  CHECK(wheel.next_deadline() == kNever - 1);
  CHECK(wheel.pop_due(kNever - 1) == 2);
}

TEST_CASE("timing wheel: 100 000 random operations against a multimap") {
  for (const Time tick : {Time{1}, Time{256}, Time{1'000}, Time{777'777}}) {
    CAPTURE(tick);
    constexpr uint32_t kEntries = 300;
    weir::Random random(static_cast<uint64_t>(tick));
    TimingWheel wheel(kEntries, tick);
    Model model(kEntries);
    Time now = 1'000'000'000'000;
    uint64_t popped = 0;
    uint64_t later = 0;
    for (int step = 0; step < 100'000; ++step) {
      const uint64_t operation = random.next() % 16;
      const auto entry = static_cast<uint32_t>(random.next() % kEntries);
      if (operation < 9) {
        // Up to 2^0 .. 2^43 ns ahead: every level, and beyond for the small ticks; sometimes in the past.
        const auto span = random_span(random, 43);
        const Time at = random.next() % 10 == 0 ? now - span : random.next() % 500 == 0 ? kNever : now + span;
        later += at != kNever && (at / tick) >> 33 != (now / tick) >> 33 ? 1 : 0;
        wheel.schedule(entry, at);
        model.schedule(entry, at);
      } else if (operation < 11) {
        wheel.cancel(entry);
        model.cancel(entry);
      } else {
        now += random_span(random, 35);
        uint32_t expected;
        do {
          expected = model.pop_due(now);
          REQUIRE(wheel.pop_due(now) == expected);
          popped += expected != TimingWheel::kNone ? 1 : 0;
        } while (expected != TimingWheel::kNone && random.next() % 20 != 0);
      }
      REQUIRE(wheel.scheduled(entry) == model.scheduled(entry));
      REQUIRE(wheel.next_deadline() == model.next_deadline());
    }
    CHECK(popped > 10'000);
    if (tick == 1) CHECK(later > 1'000);
  }
}

TEST_CASE("timing wheel: thousands of entries in one tick come out in order") {
  constexpr uint32_t kEntries = 20'000;
  TimingWheel wheel(kEntries, 1'000'000);
  Model model(kEntries);
  weir::Random random(2);
  for (uint32_t entry = 0; entry < kEntries; ++entry) {
    const Time at = 70'000'000 + static_cast<Time>(random.next() % 1'000);
    wheel.schedule(entry, at);
    model.schedule(entry, at);
  }
  for (uint32_t i = 0; i < kEntries; ++i) REQUIRE(wheel.pop_due(80'000'000) == model.pop_due(80'000'000));
  CHECK(wheel.pop_due(80'000'000) == TimingWheel::kNone);
}

TEST_CASE("timing wheel: looking ahead shows what comes, each entry once, and changes nothing") {
  TimingWheel wheel(4, 1'024);
  const Time start = Time{1} << 30;
  CHECK(wheel.pop_due(start) == TimingWheel::kNone);
  wheel.schedule(0, start + 3'000);
  wheel.schedule(1, start + 9'000);
  wheel.schedule(2, start + 50'000);
  wheel.schedule(3, start + 3'000'000'000);  // not in the finest level
  uint64_t seen = 0;
  std::vector<uint32_t> shown;
  const auto look = [&](Time until) {
    shown.clear();
    wheel.look_ahead(seen, until, [&](uint32_t entry) { shown.push_back(entry); });
    return shown;
  };
  CHECK(look(start + 10'240) == std::vector<uint32_t>{0, 1});
  CHECK(look(start + 10'240).empty());
  wheel.schedule(1, start + 60'000);
  CHECK(look(start + 65'536) == std::vector<uint32_t>{2, 1});
  CHECK(wheel.pop_due(start + 3'000) == 0);
  CHECK(wheel.pop_due(start + 70'000) == 2);
  CHECK(wheel.pop_due(start + 70'000) == 1);
  CHECK(look(kNever).empty());
  CHECK(wheel.pop_due(start + 3'000'000'000) == 3);
}
