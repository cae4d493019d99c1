#include "base/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>

namespace weir {
namespace {

#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;
#endif

}  // namespace

void HugePages::add(const void* object, size_t bytes) {
  for (uintptr_t at = reinterpret_cast<uintptr_t>(object), end = at + bytes; at < end;) {
    const uintptr_t number = at / kHugePage, next = std::min(end, (number + 1) * kHugePage);
    used_[number] += next - at;
    at = next;
  }
}

// Whoever has no such pages goes on without.
void HugePages::collapse() const {
  for (const auto& [number, bytes] : used_) {
    if (bytes < kWorthwhile) continue;
    ::madvise(reinterpret_cast<void*>(number * kHugePage), kHugePage, kCollapse);
  }
}

}  // namespace weir
