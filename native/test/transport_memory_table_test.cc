#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "transport/memory_table.h"

namespace weir {
namespace {

TEST_CASE("an access must lie within the region, with all its rights, in its domain") {
  MemoryTable table(4);
  uint8_t bytes[100];
  const uint32_t key = table.add({bytes, 0x1000, 100, 7, kRemoteRead | kLocalWrite, nullptr});
  REQUIRE(key != 0);
  CHECK(table.find(key, 7, 0x1000, 100, kRemoteRead) == bytes);
  CHECK(table.find(key, 7, 0x1000 + 99, 1, kRemoteRead | kLocalWrite) == bytes + 99);
  CHECK(table.find(key, 7, 0x1000, 1, 0) == bytes);
  CHECK(table.find(key, 7, 0x1000, 101, kRemoteRead) == nullptr);
  CHECK(table.find(key, 7, 0x1000 + 100, 1, kRemoteRead) == nullptr);
  CHECK(table.find(key, 7, 0x1000 - 1, 1, kRemoteRead) == nullptr);
  CHECK(table.find(key, 7, 0x1000 - 1, 2, kRemoteRead) == nullptr);
  CHECK(table.find(key, 7, 0, 1, kRemoteRead) == nullptr);
  CHECK(table.find(key, 7, UINT64_MAX, 1, kRemoteRead) == nullptr);
  CHECK(table.find(key, 7, 0x1001, UINT64_MAX, kRemoteRead) == nullptr);
  CHECK(table.find(key, 7, 0x1000, 1, kRemoteWrite) == nullptr);
  CHECK(table.find(key, 7, 0x1000, 1, kRemoteRead | kRemoteAtomic) == nullptr);
  CHECK(table.find(key, 8, 0x1000, 1, kRemoteRead) == nullptr);
  CHECK(table.find(key + 1, 7, 0x1000, 1, kRemoteRead) == nullptr);
  CHECK(table.find(key + 0x100, 7, 0x1000, 1, kRemoteRead) == nullptr);
  for (uint32_t wrong : {0u, 1u, 0xffu, UINT32_MAX}) CHECK(table.find(wrong, 7, 0x1000, 1, 0) == nullptr);
}

TEST_CASE("a region up to the end of the address space") {
  MemoryTable table(1);
  uint8_t bytes[16];
  const uint32_t key = table.add({bytes, UINT64_MAX - 15, 16, 0, kRemoteRead, nullptr});
  CHECK(table.find(key, 0, UINT64_MAX, 1, kRemoteRead) == bytes + 15);
  CHECK(table.find(key, 0, UINT64_MAX, 2, kRemoteRead) == nullptr);
  CHECK(table.find(key, 0, 0, 1, kRemoteRead) == nullptr);
}

TEST_CASE("a key that was just used and is gone finds nothing, also where its place has another region") {
  MemoryTable table(2);
  uint8_t bytes[2][16];
  const uint32_t kept = table.add({bytes[0], 0, 16, 0, kRemoteRead, nullptr});
  const uint32_t gone = table.add({bytes[1], 0, 16, 0, kRemoteRead, nullptr});
  CHECK(table.find(gone, 0, 0, 16, kRemoteRead) == bytes[1]);
  CHECK(table.remove(gone));
  CHECK(table.find(gone, 0, 0, 1, 0) == nullptr);
  CHECK(table.find(0u, 0, 0, 1, 0) == nullptr);
  CHECK(!table.replace(0, {bytes[1], 0, 16, 0, kRemoteRead, nullptr}));
  CHECK(table.find(kept, 0, 0, 16, kRemoteRead) == bytes[0]);

  const uint32_t next = table.add({bytes[1], 0, 8, 0, kRemoteRead, nullptr});
  CHECK(next != gone);
  CHECK(table.find(gone, 0, 0, 1, 0) == nullptr);
  CHECK(table.find(next, 0, 0, 8, kRemoteRead) == bytes[1]);
  CHECK(table.find(next, 0, 0, 9, kRemoteRead) == nullptr);
  CHECK(table.rename(next, gone));
  CHECK(table.find(next, 0, 0, 1, 0) == nullptr);
  CHECK(table.find(gone, 0, 0, 8, kRemoteRead) == bytes[1]);
}

TEST_CASE("a table that is full, and places that are used again") {
  MemoryTable table(3);
  uint8_t byte = 0;
  const MemoryRegion region{&byte, 0, 1, 0, 0, nullptr};
  const uint32_t first = table.add(region);
  const uint32_t lasting = table.add(region);
  uint32_t last = 0;
  for (int i = 0; i < 1'000; ++i) {
    const uint32_t key = table.add(region);
    REQUIRE(key != 0);
    CHECK(table.add(region) == 0);
    CHECK(table.find(key, 0, 0, 1, 0) == &byte);
    CHECK(table.find(last, 0, 0, 1, 0) == nullptr);
    CHECK(table.find(lasting, 0, 0, 1, 0) == &byte);
    CHECK(table.remove(key));
    CHECK(!table.remove(key));
    last = key;
  }
  CHECK(table.remove(first));
  CHECK(table.find(lasting, 0, 0, 1, 0) == &byte);
  CHECK(table.find(first, 0, 0, 1, 0) == nullptr);
}

TEST_CASE("keys of regions that are gone do not come back for long") {
  MemoryTable table(1);
  uint8_t byte = 0;
  const MemoryRegion region{&byte, 0, 1, 0, 0, nullptr};
  constexpr uint32_t kMany = 1'000'000;
  std::vector<uint32_t> keys;
  for (uint32_t i = 0; i < kMany; ++i) {
    keys.push_back(table.add(region));
    REQUIRE(table.remove(keys.back()));
  }
  std::sort(keys.begin(), keys.end());
  CHECK(keys.front() != 0);
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
}

TEST_CASE("keys depend on the secret, and do not tell the next one") {
  uint8_t byte = 0;
  const MemoryRegion region{&byte, 0, 1, 0, 0, nullptr};
  const auto keys_of = [&](uint64_t secret) {
    MemoryTable table(1'024, secret);
    std::vector<uint32_t> keys;
    for (int i = 0; i < 1'024; ++i) keys.push_back(table.add(region));
    for (const uint32_t key : keys) CHECK(table.find(key, 0, 0, 1, 0) == &byte);
    return keys;
  };
  const std::vector<uint32_t> keys = keys_of(7);
  CHECK(keys == keys_of(7));
  const std::vector<uint32_t> others = keys_of(8);
  int same = 0;
  std::set<uint32_t> steps;
  int ones[32] = {};
  for (size_t i = 0; i < keys.size(); ++i) {
    same += keys[i] == others[i];
    if (i > 0) steps.insert(keys[i] - keys[i - 1]);
    for (int bit = 0; bit < 32; ++bit) ones[bit] += keys[i] >> bit & 1;
  }
  CHECK(same == 0);
  CHECK(steps.size() == keys.size() - 1);  // no two steps are alike
  for (const int count : ones) {           // 512 of 1024, six standard deviations
    CHECK(count > 512 - 96);
    CHECK(count < 512 + 96);
  }
}

TEST_CASE("every address of a scratch region is the same place; bounds and rights hold all the same") {
  MemoryTable table(1);
  uint8_t bytes[4'096];
  MemoryRegion region{bytes, 0x1000, 1u << 30, 7, kRemoteWrite, nullptr};
  region.scratch = true;
  const uint32_t key = table.add(region);
  CHECK(table.find(key, 7, 0x1000, 1u << 30, kRemoteWrite) == bytes);
  CHECK(table.find(key, 7, 0x1000 + 5'000, 4'096, kRemoteWrite) == bytes);
  CHECK(table.find(key, 7, 0x1000 + (1u << 30) - 1, 1, kRemoteWrite) == bytes);
  CHECK(table.find(key, 7, 0x1000 + (1u << 30) - 1, 2, kRemoteWrite) == nullptr);
  CHECK(table.find(key, 7, 0xfff, 1, kRemoteWrite) == nullptr);
  CHECK(table.find(key, 7, 0x1000, 1, kRemoteRead) == nullptr);
  CHECK(table.find(key, 8, 0x1000, 1, kRemoteWrite) == nullptr);
}

TEST_CASE("invalidation: only with the right to it and of one's own domain; the region stays until it is removed") {
  MemoryTable table(2);
  uint8_t byte = 0;
  const uint32_t kept = table.add({&byte, 0, 1, 3, kRemoteRead, nullptr});
  const auto owner = std::make_shared<int>();
  const uint32_t key = table.add({&byte, 0, 1, 3, kRemoteRead | kRemoteInvalidate, owner});
  CHECK(!table.invalidate(kept, 3));
  CHECK(!table.invalidate(key, 4));
  CHECK(!table.invalidate(key + 1, 3));
  CHECK(table.find(key, 3, 0, 1, 0) == &byte);
  CHECK(table.invalidate(key, 3));
  CHECK(table.find(key, 3, 0, 1, 0) == nullptr);
  CHECK(!table.invalidate(key, 3));
  CHECK(table.find(kept, 3, 0, 1, 0) == &byte);
  CHECK(owner.use_count() == 2);
  CHECK(table.remove(key));
  CHECK(owner.use_count() == 1);
}

TEST_CASE("a key may come to stand for another region") {
  MemoryTable table(2);
  uint8_t bytes[64];
  const uint32_t key = table.add({bytes, 0x1000, 32, 1, kRemoteRead, nullptr});
  CHECK_FALSE(table.replace(key + 1, {bytes, 0x1000, 64, 1, kRemoteRead, nullptr}));
  REQUIRE(table.replace(key, {bytes + 8, 0x2000, 16, 2, kRemoteWrite, nullptr}));
  CHECK(table.find(key, 1, 0x1000, 1, 0) == nullptr);
  CHECK(table.find(key, 2, 0x2000, 16, kRemoteWrite) == bytes + 8);
  CHECK(table.find(key, 2, 0x2000, 17, kRemoteWrite) == nullptr);
  CHECK(table.find(key, 2, 0x2000, 1, kRemoteRead) == nullptr);
}

TEST_CASE("lists of pieces are read and written across their borders, as far as they are memory with the rights") {
  MemoryTable table(8);
  uint8_t left[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  uint8_t right[10] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  const uint32_t first = table.add({left, 0x1000, 10, 7, kLocalWrite, nullptr});
  const uint32_t second = table.add({right, 0x2000, 10, 7, 0, nullptr});
  PieceLists lists(2, 4);
  MemoryRegion region;
  region.domain = 7;
  region.lists = &lists;
  const uint32_t key = table.add(region);
  const uint64_t at = PieceLists::address_of(1);
  MemoryPiece* list = lists.set(1, 4);
  list[0] = {0x1004, 6, first};
  list[1] = {0, 0, 0};  // a piece of nothing
  list[2] = {0x2000, 5, second};
  list[3] = {0x1000, 2, first};
  const uint8_t* bytes = table.read(key, 7, at, 13);
  REQUIRE(bytes != nullptr);
  const uint8_t whole[] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0, 1};
  CHECK(std::equal(std::begin(whole), std::end(whole), bytes));
  bytes = table.read(key, 7, at + 5, 3);
  REQUIRE(bytes != nullptr);
  CHECK(std::equal(whole + 5, whole + 8, bytes));
  CHECK(table.read(key, 7, at, 14) == nullptr);      // more than there is
  CHECK(table.read(key, 7, at + 13, 1) == nullptr);  // behind it
  CHECK(table.read(key, 8, at, 1) == nullptr);       // of another domain
  CHECK(table.read(key, 7, at, 5'000) == nullptr);   // more than a packet
  CHECK(table.read(key, 7, 0, 1) == nullptr);        // a list that was never set
  CHECK(table.read(key, 7, at << 1, 1) == nullptr);  // a place that there is not
  CHECK(table.allows(key, 7, at, 6, kLocalWrite));
  CHECK(!table.allows(key, 7, at, 7, kLocalWrite));  // the second may not be written to
  CHECK(table.allows(key, 7, at, 13, 0));
  CHECK(table.write(key, 7, at + 4, whole, 2));
  CHECK(left[8] == 4);
  CHECK(left[9] == 5);
  CHECK(!table.write(key, 7, at + 6, whole, 1));
  CHECK(table.write(key, 7, at + 11, nullptr, 2));
  CHECK(left[0] == 0);
  // It is no memory of its own, for peers or for lists.
  CHECK(table.find(key, 7, at, 1, 0) == nullptr);
  list[0] = {at, 1, key};
  CHECK(table.read(key, 7, at, 1) == nullptr);
  // Pieces that are there stay when there is room for more.
  list[0] = {0x1004, 6, first};
  lists.grow(100);
  bytes = table.read(key, 7, at, 1);
  REQUIRE(bytes != nullptr);
  CHECK(*bytes == 4);
}

}  // namespace
}  // namespace weir
