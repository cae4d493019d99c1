#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "base/indexed_heap.h"
#include "base/random.h"

using weir::IndexedHeap;
using weir::Time;

TEST_CASE("indexed heap: equal keys by index") {
  IndexedHeap heap(4);
  CHECK(heap.top() == IndexedHeap::kNone);
  CHECK(heap.pop() == IndexedHeap::kNone);
  heap.set(3, 5);
  heap.set(1, 5);
  heap.set(2, 4);
  CHECK(heap.top() == 2);
  CHECK(heap.top_key() == 4);
  heap.set(2, 6);
  CHECK(heap.pop() == 1);
  CHECK(heap.pop() == 3);
  heap.remove(2);
  heap.remove(2);
  CHECK(heap.empty());
}

TEST_CASE("indexed heap: 100 000 random operations against a set") {
  constexpr uint32_t kSize = 100;
  weir::Random random(1);
  IndexedHeap heap(kSize);
  std::set<std::pair<Time, uint32_t>> model;
  for (int step = 0; step < 100'000; ++step) {
    const auto index = static_cast<uint32_t>(random.next() % kSize);
    const auto key = static_cast<Time>(random.next() % 50);
    const uint64_t operation = random.next() % 8;
    if (operation < 5) {
      if (heap.contains(index)) model.erase({heap.key(index), index});
      heap.set(index, key);
      model.insert({key, index});
    } else if (operation < 7) {
      if (heap.contains(index)) model.erase({heap.key(index), index});
      heap.remove(index);
      REQUIRE_FALSE(heap.contains(index));
    } else if (!model.empty()) {
      const auto first = *model.begin();
      REQUIRE(heap.top_key() == first.first);
      REQUIRE(heap.pop() == first.second);
      model.erase(model.begin());
    }
    REQUIRE(heap.size() == model.size());
    if (!model.empty()) REQUIRE(heap.top() == model.begin()->second);
  }
}
