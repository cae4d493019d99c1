// The inputs of native/fuzz/transport_fuzz.cc, drawn from a seed: hostile frames, work and time for a NIC whose queue pairs are
// at work. It aborts where memory changes that peers may not write to, where what they may not read leaves, or where work is
// lost.
#include "test/drawn_inputs.h"

#define LLVMFuzzerTestOneInput transport_fuzz
#include "fuzz/transport_fuzz.cc"
#undef LLVMFuzzerTestOneInput

TEST_CASE("transport: whatever comes, memory that peers have no right to stays as it was, and all work comes back") {
  weir::test::run_drawn_inputs(transport_fuzz, 300, 3'000);
}
