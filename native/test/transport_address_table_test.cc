#include <doctest/doctest.h>

#include <set>

#include "test/transport_harness.h"
#include "transport/address_table.h"

namespace weir {
namespace {

TEST_CASE("address table: handles stand for their way until they are removed, and come back late") {
  AddressTable table;
  const uint32_t kept = table.add(test::path_between(1, 2));
  REQUIRE(table.find(kept) != nullptr);
  std::set<uint32_t> handles{kept};
  for (int i = 0; i < 1'000; ++i) {
    const uint32_t handle = table.add(test::path_between(1, 3, 6));
    CHECK(handles.insert(handle).second);
    CHECK(table.find(handle)->bth_offset() > table.find(kept)->bth_offset());
    CHECK(table.remove(handle));
    CHECK(!table.remove(handle));
    CHECK(table.find(handle) == nullptr);
  }
  for (const uint32_t wrong : {77'777u, 1u << 16, AddressTable::kNone, AddressTable::kMost}) CHECK(table.find(wrong) == nullptr);
}

TEST_CASE("address table: it has an end, and what is removed makes room") {
  AddressTable table;
  uint32_t last = 0;
  for (uint32_t i = 0; i < AddressTable::kMost; ++i) last = table.add(test::path_between(1, 2));
  REQUIRE(table.find(last) != nullptr);
  CHECK(table.add(test::path_between(1, 2)) == AddressTable::kNone);
  CHECK(table.remove(last));
  CHECK(table.add(test::path_between(1, 2)) != AddressTable::kNone);
}

}  // namespace
}  // namespace weir
