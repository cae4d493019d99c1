#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/huge_pages.h"

using weir::HugePages;

namespace {

constexpr size_t kHugePage = 2 << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE

// Memory with a huge page's place in it, in small pages so far.
struct Place {
  Place() : mapped(::mmap(nullptr, 2 * kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(mapped != MAP_FAILED);
    data = static_cast<uint8_t*>(mapped);
    data += -reinterpret_cast<uintptr_t>(data) % kHugePage;
    for (size_t i = 0; i < kHugePage / 2; ++i) data[i] = static_cast<uint8_t>(i % 251);
  }
  ~Place() { ::munmap(mapped, 2 * kHugePage); }
  // A huge page is there as a whole, also where nobody has written.
  bool whole() const {
    std::vector<unsigned char> pages(kHugePage / 4'096);
    REQUIRE(::mincore(data, kHugePage, pages.data()) == 0);
    return std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; });
  }
  bool unchanged() const {
    for (size_t i = 0; i < kHugePage; ++i) {
      if (data[i] != (i < kHugePage / 2 ? static_cast<uint8_t>(i % 251) : 0)) return false;
    }
    return true;
  }

  void* mapped;
  uint8_t* data = nullptr;
};

}  // namespace

TEST_CASE("huge pages: what is there stays, and the place of many objects is put together, as far as the kernel can") {
  Place reference;
  const bool can = ::madvise(reference.data, kHugePage, kCollapse) == 0;
  Place place;
  REQUIRE(!place.whole());
  HugePages pages;
  for (size_t at = 0; at < kHugePage / 2; at += 1'024) pages.add(place.data + at, 512);
  pages.collapse();
  CHECK(place.whole() == can);
  CHECK(place.unchanged());
}

TEST_CASE("huge pages: the place of a few objects stays as it is") {
  Place place;
  HugePages pages;
  pages.add(place.data, 4'096);
  pages.collapse();
  CHECK(!place.whole());
  CHECK(place.unchanged());
}

TEST_CASE("huge pages: an object counts in each place that it is in") {
  Place reference, place;
  const bool can = ::madvise(reference.data, kHugePage, kCollapse) == 0;
  HugePages pages;
  pages.add(place.data - kHugePage / 2, kHugePage);
  pages.collapse();
  CHECK(place.whole() == can);
  CHECK(place.unchanged());
}
