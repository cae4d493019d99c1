#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/counter_block.h"

using namespace weir;

namespace {

#define WEIR_PAIR_COUNTERS(X) X(first, "packets", sent, "the first") X(second, "bytes", none, "the second")
WEIR_DEFINE_COUNTERS(PairCounters, WEIR_PAIR_COUNTERS);

// `things`, each with counters of its own in a block.
struct Counted {
  explicit Counted(size_t things) : counters(things) {
    for (size_t i = 0; i < things; ++i) block.add(counters[i], {{"thing", std::to_string(i)}});
    block.freeze();
  }
  void set(uint64_t round) {
    for (size_t i = 0; i < counters.size(); ++i) counters[i] = {round + 2 * i, round + 2 * i + 1};
  }
  // Counts the words of the block that are those of `round`.
  size_t published(uint64_t round) const {
    size_t found = 0;
    for (size_t i = 0; i < block.size(); ++i) found += block.read(i) == round + i;
    return found;
  }
  std::vector<PairCounters> counters;
  CounterBlock block;
};

}  // namespace

TEST_CASE("counters: those that mean the same add up") {
  const PairCounters counters{3, 5};
  CHECK(counters.sum(CounterMeaning::sent) == 3);
  CHECK(counters.sum(CounterMeaning::none) == 5);
  CHECK(counters.sum(CounterMeaning::drop) == 0);
}

TEST_CASE("counter block: words in the order of the manifest") {
  Counted c(3);
  CHECK(c.block.size() == 6);
  CHECK(c.block.manifest().size() == 3);
  CHECK(c.block.manifest()[2].labels == CounterLabels{{"thing", "2"}});
  CHECK(std::string(c.block.manifest()[2].descriptions[1].name) == "second");
  c.set(1'000);
  c.block.publish(1);
  CHECK(c.published(1'000) == 6);
}

TEST_CASE("counter block: a reading is of the time that it was published at, or of now while nothing can change") {
  Counted c(3);
  std::vector<uint64_t> words(6);
  const auto put = [&](size_t i, uint64_t word) { words[i] = word; };
  CHECK(c.block.read(50, put, 6) == 0);
  c.set(1'000);
  c.block.publish_part(100);
  CHECK(c.block.read(150, put, 6) == 100);
  CHECK(words == std::vector<uint64_t>{1'000, 1'001, 1'002, 1'003, 1'004, 1'005});
  c.block.hold();
  CHECK(c.block.read(150, put, 2) == 150);
  CHECK(c.block.read(90, put, 2) == 100);  // a clock that was read before
  c.block.release(160);
  CHECK(c.block.read(170, put, 2) == 160);
}

TEST_CASE("counter block: a reading is of one publishing, whoever publishes meanwhile") {
  Counted c(100);
  std::atomic<bool> done{false};
  std::thread publisher([&] {
    for (Time round = 1; !done.load(); ++round) {
      c.set(static_cast<uint64_t>(round));
      c.block.publish_part(round);
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  uint64_t torn = 0;
  Time last = 0;
  for (int reading = 0; reading < 2'000 || last < 100; ++reading) {
    uint64_t of = 0;
    bool one = true;
    const auto put = [&](size_t i, uint64_t word) {
      if (i == 0) of = word;
      one = i == 0 ? true : one && word == of + i;
    };
    const Time at = c.block.read(0, put, 200);
    if (at == 0) continue;  // nothing is published yet, or the publisher was put off the CPU amidst
    torn += one && of == static_cast<uint64_t>(at) ? 0 : 1;
    CHECK(at >= last);
    last = at;
  }
  done.store(true);
  publisher.join();
  CHECK(torn == 0);
}

TEST_CASE("counter block: a small one is published as a whole each time, a large one in turn") {
  Counted small(1'000);
  small.set(1'000);
  small.block.publish_part(1);
  CHECK(small.block.complete());
  CHECK(small.published(1'000) == 2'000);

  Counted large(10'000);
  large.set(1'000'000);
  size_t before = 0;
  int parts = 0;
  for (; large.published(1'000'000) < 20'000; ++parts) {
    REQUIRE(parts < 100);
    large.block.publish_part(1);
    REQUIRE(large.published(1'000'000) > before);
    before = large.published(1'000'000);
  }
  CHECK(parts > 2);
  // Words that were published first may have changed while the others were.
  CHECK_FALSE(large.block.complete());
  for (int i = 0; i < parts; ++i) large.block.publish_part(2);
  CHECK(large.block.complete());
  // All are published once more, from wherever it stands.
  large.set(2'000'000);
  for (int i = 0; i < parts; ++i) large.block.publish_part(3);
  CHECK(large.published(2'000'000) == 20'000);
  large.set(3'000'000);
  large.block.publish_part(4);
  large.block.publish(4);
  CHECK(large.block.complete());
  CHECK(large.published(3'000'000) == 20'000);
}

TEST_CASE("counter block: without counters there is nothing to publish") {
  CounterBlock block;
  block.freeze();
  block.publish_part(1);
  block.publish(1);
  CHECK(block.complete());
  CHECK(block.size() == 0);
}
