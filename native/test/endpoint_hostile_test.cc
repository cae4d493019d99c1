// The inputs of native/fuzz/stream_fuzz.cc, drawn from a seed. It aborts where a NIC with streams sends what is not whole or
// faster than its link, leaves the bounds of congestion control, or loses a packet.
#include "test/drawn_inputs.h"

#define LLVMFuzzerTestOneInput stream_fuzz
#include "fuzz/stream_fuzz.cc"
#undef LLVMFuzzerTestOneInput

TEST_CASE("soft nic: whatever comes, streams keep to the link, to the bounds of congestion control and to their packets") {
  weir::test::run_drawn_inputs(stream_fuzz, 300, 1'000);
}
