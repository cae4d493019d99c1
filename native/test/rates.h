// Rates of links in tests.
#pragma once

#include "base/types.h"

namespace weir::test {

inline constexpr Rate k1G = 1'000'000'000;

}  // namespace weir::test
