// The inputs of native/fuzz/transport_fuzz.cc, drawn from a seed: hostile frames, work and time for a NIC whose queue pairs are
// at work. It aborts where memory changes that peers may not write to, where what they may not read leaves, or where work is
// lost.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "base/random.h"

#define LLVMFuzzerTestOneInput transport_fuzz
#include "fuzz/transport_fuzz.cc"
#undef LLVMFuzzerTestOneInput

TEST_CASE("transport: whatever comes, memory that peers have no right to stays as it was, and all work comes back") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, 0);
    std::vector<uint8_t> input(1 + random.next() % 3'000);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random.next());
    CHECK(transport_fuzz(input.data(), input.size()) == 0);
  }
}
