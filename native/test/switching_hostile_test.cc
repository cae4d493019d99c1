// The inputs of native/fuzz/switch_fuzz.cc, drawn from a seed. It aborts where a frame is not accounted for, or a charge, a pause
// or a packet is left over.
#include "test/drawn_inputs.h"

#define LLVMFuzzerTestOneInput switch_fuzz
#include "fuzz/switch_fuzz.cc"
#undef LLVMFuzzerTestOneInput

TEST_CASE("switch: whatever comes, each frame is accounted for, and in the end nothing is charged, paused or lost") {
  weir::test::run_drawn_inputs(switch_fuzz, 300, 1'000);
}
