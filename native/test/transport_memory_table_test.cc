#include <doctest/doctest.h>

#include <set>

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

TEST_CASE("a table that is full, and keys that come back only after all others of their place") {
  MemoryTable table(2);
  uint8_t byte = 0;
  const MemoryRegion region{&byte, 0, 1, 0, 0, nullptr};
  const uint32_t lasting = table.add(region);
  std::set<uint32_t> keys;
  uint32_t last = 0;
  for (int i = 0; i < 256; ++i) {
    const uint32_t key = table.add(region);
    REQUIRE(key != 0);
    CHECK(table.add(region) == 0);
    CHECK(table.find(last, 0, 0, 1, 0) == nullptr);
    keys.insert(key);
    CHECK(table.remove(key));
    CHECK(!table.remove(key));
    last = key;
  }
  CHECK(keys.size() == 256);
  CHECK(keys.count(lasting) == 0);
  CHECK(keys.count(table.add(region)) == 1);
  CHECK(table.find(lasting, 0, 0, 1, 0) == &byte);
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

}  // namespace
}  // namespace weir
