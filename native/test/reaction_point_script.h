// Rules for every reaction point: its trajectory is the same to the last bit however rarely it is polled, and its rates stay
// within bounds. Random scripts of notifications, bytes and waiting drive two of them, one polled finely, the other hardly.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "base/types.h"

namespace weir::test {

// Counts of how often a script came to the things that it should try.
struct ScriptReached {
  uint64_t releases = 0;
  uint64_t hyper_increases = 0;
};

// `notify(point, now, draw)` is a notification, the same for equal draws; `compare(coarse, fine)` looks at what only this kind of
// reaction point has.
template <class Point, class Notify, class Compare>
void run_script(Point& coarse, Point& fine, Rate line, Rate floor, Random& random, ScriptReached& reached, Notify notify,
                Compare compare) {
  const auto pick = [&](uint64_t n) { return random.next() % n; };
  Time now = 0;
  bool was_limited = coarse.limited();
  for (int step = 0; step < 300; ++step) {
    const Time next = now + static_cast<Time>(pick(10) == 0 ? pick(3'000'000) : pick(100'000));
    for (int i = 0; i < 5 && now < next; ++i) {  // fine: every deadline, and times in between
      const Time deadline = fine.next_deadline();
      now = pick(2) == 0 ? std::min(next, std::max(now, deadline))
                         : now + static_cast<Time>(pick(static_cast<uint64_t>(next - now + 1)));
      fine.advance(now);
    }
    now = next;
    const uint64_t kind = pick(4);
    const auto bytes = static_cast<uint32_t>(pick(200'000));
    const uint64_t draw = random.next();
    for (Point* point : {&coarse, &fine}) {
      if (kind == 0) notify(*point, now, draw);
      if (kind == 1 || kind == 2) point->on_sent(now, bytes);
    }
    if (kind == 3 && step % 2 == 0) continue;  // coarse is not even looked at
    for (Point* point : {&coarse, &fine}) point->advance(now);
    REQUIRE(coarse.exact_rate() == fine.exact_rate());
    REQUIRE(coarse.exact_target_rate() == fine.exact_target_rate());
    REQUIRE(coarse.limited() == fine.limited());
    REQUIRE(coarse.stage() == fine.stage());
    REQUIRE(coarse.next_deadline() == fine.next_deadline());
    compare(coarse, fine);
    REQUIRE(coarse.exact_rate() >= static_cast<double>(floor));
    REQUIRE(coarse.exact_rate() <= coarse.exact_target_rate());
    REQUIRE(coarse.exact_target_rate() <= static_cast<double>(line));
    REQUIRE(coarse.next_deadline() > now);
    if (!coarse.limited()) REQUIRE(coarse.rate() == line);
    reached.releases += was_limited && !coarse.limited() ? 1 : 0;
    reached.hyper_increases += coarse.stage() == Point::Stage::hyper_increase ? 1 : 0;
    was_limited = coarse.limited();
  }
}

}  // namespace weir::test
