#include "base/huge_pages.h"

#include <sys/mman.h>

namespace weir {
namespace {

#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;
#endif

}  // namespace

// Whoever has no such pages goes on without.
void HugePages::collapse() const {
  for (const auto& [number, bytes] : used_) {
    if (bytes < kWorthwhile) continue;
    ::madvise(reinterpret_cast<void*>(number * kHugePage), kHugePage, kCollapse);
  }
}

}  // namespace weir
