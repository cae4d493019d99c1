#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/counter_block.h"

using namespace weir;

namespace {

#define WEIR_PAIR_COUNTERS(X) X(first, "packets", "the first") X(second, "bytes", "the second")
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
  // How many words of the block are those of `round`.
  size_t published(uint64_t round) const {
    size_t found = 0;
    for (size_t i = 0; i < block.size(); ++i) found += block.read(i) == round + i;
    return found;
  }
  std::vector<PairCounters> counters;
  CounterBlock block;
};

}  // namespace

TEST_CASE("counter block: words in the order of the manifest") {
  Counted c(3);
  CHECK(c.block.size() == 6);
  CHECK(c.block.manifest().size() == 3);
  CHECK(c.block.manifest()[2].labels == CounterLabels{{"thing", "2"}});
  CHECK(std::string(c.block.manifest()[2].descriptions[1].name) == "second");
  c.set(1'000);
  c.block.publish();
  CHECK(c.published(1'000) == 6);
}

TEST_CASE("counter block: a small one is published as a whole each time, a large one in turn") {
  Counted small(1'000);
  small.set(1'000);
  small.block.publish_part();
  CHECK(small.published(1'000) == 2'000);

  Counted large(10'000);
  large.set(1'000'000);
  size_t before = 0;
  int parts = 0;
  for (; large.published(1'000'000) < 20'000; ++parts) {
    REQUIRE(parts < 100);
    large.block.publish_part();
    REQUIRE(large.published(1'000'000) > before);
    before = large.published(1'000'000);
  }
  CHECK(parts > 2);
  // And once more, from wherever it stands.
  large.set(2'000'000);
  for (int i = 0; i < parts; ++i) large.block.publish_part();
  CHECK(large.published(2'000'000) == 20'000);
  large.set(3'000'000);
  large.block.publish_part();
  large.block.publish();
  CHECK(large.published(3'000'000) == 20'000);
}

TEST_CASE("counter block: without counters there is nothing to publish") {
  CounterBlock block;
  block.freeze();
  block.publish_part();
  block.publish();
  CHECK(block.size() == 0);
}
