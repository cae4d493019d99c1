// Hints for the caches.
#pragma once

#include <cstddef>

namespace weir {

// GCC drops calls of functions that do nothing but fetch.
#define WEIR_FETCHES __attribute__((always_inline))

WEIR_FETCHES inline void fetch_bytes(const void* object, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(object) + at);
}

}  // namespace weir
