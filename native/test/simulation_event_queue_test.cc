// The calendar of a simulation against a model: a map in which equal times keep the order of insertion.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/random.h"
#include "simulation/event_queue.h"

namespace weir {
namespace {

// Pushes and pops the queue and the model alike. Time passes to `until` when nothing is left to pop before that.
class Calendar {
 public:
  explicit Calendar(uint64_t seed) : random_(seed) {}

  Time now() const { return now_; }
  size_t size() const { return model_.size(); }
  uint64_t below(uint64_t limit) { return random_.next() % limit; }

  void push(Time at) {
    const uint32_t number = pushed_++;
    queue_->push({at, number * 2654435761u, number});
    model_.emplace(at, number);
  }
  // What the queue gives is what the model would.
  bool pop(Time until) {
    Event event;
    const bool popped = queue_->pop(until, event);
    const auto first = model_.begin();
    const bool due = first != model_.end() && first->first <= until;
    REQUIRE(popped == due);
    if (!due) {
      if (until != kNever) now_ = std::max(now_, until);
      return false;
    }
    REQUIRE(event.at == first->first);
    REQUIRE(event.packet == first->second);
    REQUIRE(event.kind == first->second * 2654435761u);
    now_ = event.at;
    model_.erase(first);
    REQUIRE(queue_->size() == model_.size());
    REQUIRE(queue_->empty() == model_.empty());
    return true;
  }
  // From this very moment to far beyond the calendar's reach, and to both sides of the edges of its blocks.
  Time ahead() {
    switch (below(9)) {
      case 0:
        return now_;
      case 1:
        return now_ + static_cast<Time>(below(8));
      case 2:
        return now_ + static_cast<Time>(below(1 << 12));
      case 3:
        return now_ + static_cast<Time>(below(1 << 24));
      case 4:
        return now_ + static_cast<Time>(below(uint64_t{1} << 36));
      case 5:
        return now_ + static_cast<Time>(below(uint64_t{1} << 42));
      default: {
        const int shift = static_cast<int>(below(4)) * 12;
        const Time edge = ((now_ >> shift) + 1 + static_cast<Time>(below(3))) << shift;
        return std::max(now_, edge + static_cast<Time>(below(3)) - 1);
      }
    }
  }

 private:
  Random random_;
  std::unique_ptr<EventQueue> queue_ = std::make_unique<EventQueue>();
  std::multimap<Time, uint32_t> model_;
  Time now_ = 0;
  uint32_t pushed_ = 0;
};

TEST_CASE("simulation: events come out by time, and at one time in the order in which they were scheduled") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Calendar calendar(seed);
    uint64_t popped = 0;
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t what = calendar.below(16);
      if (what == 0) {
        // A burst at one time, soon or late.
        const Time at = calendar.ahead();
        for (uint64_t i = calendar.below(20); i > 0; --i) calendar.push(at);
      } else if (what < 7) {
        calendar.push(calendar.ahead());
      } else if (what < 9) {
        const Time until = calendar.now() + static_cast<Time>(calendar.below(uint64_t{1} << (calendar.below(4) * 12)));
        for (uint64_t most = calendar.below(40); most > 0 && calendar.pop(until); --most) ++popped;
      } else {
        popped += calendar.pop(kNever);
      }
    }
    while (calendar.pop(kNever)) ++popped;
    CHECK(calendar.size() == 0);
    CHECK(popped > 15'000);
  }
}

TEST_CASE("simulation: what is scheduled for now while now is under way comes last of it") {
  Calendar calendar(3);
  for (const Time at :
       {Time{5}, Time{4'095}, Time{4'096}, (Time{1} << 24) - 1, Time{1} << 24, Time{1} << 36, (Time{1} << 37) + 9}) {
    for (int i = 0; i < 3; ++i) calendar.push(at);
  }
  int added = 0;
  int popped = 0;
  while (calendar.pop(kNever)) {
    ++popped;
    if (added < 500 && calendar.below(3) != 0) {
      ++added;
      calendar.push(calendar.now());
    }
  }
  CHECK(added > 20);
  CHECK(popped == 21 + added);
}

TEST_CASE("simulation: a limit holds events back to the nanosecond, however far ahead they are") {
  for (const Time at :
       {Time{1}, Time{4'096}, Time{5'000}, Time{1} << 24, (Time{1} << 24) + 4'097, (Time{1} << 36) + 1, Time{1} << 50}) {
    CAPTURE(at);
    Calendar calendar(1);
    calendar.push(at);
    CHECK_FALSE(calendar.pop(0));
    CHECK_FALSE(calendar.pop(at / 2));
    CHECK_FALSE(calendar.pop(at - 1));
    // Time has come to just before: what is scheduled there goes first, what is scheduled for the same time goes last.
    calendar.push(at);
    calendar.push(at - 1);
    CHECK(calendar.pop(at));
    CHECK(calendar.pop(at));
    CHECK(calendar.pop(at));
    CHECK_FALSE(calendar.pop(kNever));
  }
}

}  // namespace
}  // namespace weir
