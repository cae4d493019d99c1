// Time that bytes take at a rate.
#pragma once

#include <cmath>

#include "base/types.h"

namespace weir {

// Whole ns, rounded down, but a millionth of one is forgiven: doubles lose that. `rate`: bit/s, more than 0.
inline Time transfer_time(double bytes, double rate) { return static_cast<Time>(std::floor(bytes * 8e9 / rate + 1e-6)); }

}  // namespace weir
