// Numbers that nobody can guess.
#pragma once

#include <sys/random.h>

#include <cstdint>

#include "base/native_error.h"

namespace weir {

// 64 random bits of the system. Throws NativeError where it gives none.
inline uint64_t secret() {
  uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) < 0) {
    throw NativeError::from_errno("getrandom", "the system gives no random numbers", "allow the system call getrandom");
  }
  return bits;
}

}  // namespace weir
