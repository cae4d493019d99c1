// The inputs of a fuzzer, drawn from seeds: a few of what native/fuzz runs for hours.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace weir::test {

// A violation aborts.
inline void run_drawn_inputs(int (*fuzzer)(const uint8_t*, size_t), uint64_t count, uint64_t longest) {
  for (uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed, 0);
    std::vector<uint8_t> input(1 + random.next() % longest);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random.next());
    CHECK(fuzzer(input.data(), input.size()) == 0);
  }
}

}  // namespace weir::test
