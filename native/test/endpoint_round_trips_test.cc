// Round-trip times as a NIC tells them to congestion control: by the stamps of acknowledgements, also where it was late.
#include <doctest/doctest.h>

#include <vector>

#include "test/nic_harness.h"
#include "transport/aeth.h"
#include "transport/psn.h"

namespace weir::test {
namespace {

constexpr uint32_t kFirstPsn = 0xfffffe;
constexpr Time kFirstPacket = 898;  // 1122 bytes at 10 Gb/s, rounded up: it has a RETH

NicParameters under_swift(double window) {
  NicParameters p = nic_parameters();
  SwiftParameters& swift = under<SwiftParameters>(p);
  swift.base_target = 20 * kMicrosecond;
  swift.hop_scaling = swift.fs_range = 0;
  swift.initial_window = window;
  return p;
}

std::vector<QueuePairParameters> stream() {
  QueuePairParameters qp = sender();
  qp.reliable = true;
  qp.stream.message_bytes = 1 << 20;
  qp.stream.path_mtu = 1'024;
  qp.stream.first_psn = kFirstPsn;
  return {qp};
}

// Acknowledges packet `number`, and all before it.
void acknowledge(NicHarness& h, Time at, uint32_t number) {
  const std::vector<uint8_t> bytes =
      roce(kOpcodeRcAcknowledge).to(kFirstQpn).psn(psn_add(kFirstPsn, number)).aeth({kNoCredits, 0}).bytes();
  CHECK(h.receive(at, bytes) == SoftNic::Disposition::consumed);
}

double window(NicHarness& h) { return h.nic.observation().sender_sample(0, h.nic.now()).window; }

}  // namespace

TEST_CASE("soft nic: a round-trip time is from a packet's first bit on the link to the stamp of its acknowledgement") {
  NicHarness h(under_swift(10), stream());
  h.run(15 * kMicrosecond);
  CHECK(h.of_kind(FrameKind::roce).size() == 10);
  CHECK(window(h) == 10);
  // 19 us after the first was sent, below the target.
  acknowledge(h, 19 * kMicrosecond, 0);
  CHECK(window(h) == doctest::Approx(10.1));
  // The second: 20 us and 50 ns, above it.
  acknowledge(h, kFirstPacket + 20'050, 1);
  CHECK(window(h) == doctest::Approx(10.1 * (1 - 0.8 * 50 / 20'050)).epsilon(1e-4));
}

TEST_CASE("soft nic: what it hears of late has the round-trip time of its stamp") {
  NicHarness h(under_swift(10), stream());
  h.run(15 * kMicrosecond);
  h.nic.skip_to(500 * kMicrosecond);
  acknowledge(h, 19 * kMicrosecond, 0);
  CHECK(window(h) == doctest::Approx(10.1));
}

TEST_CASE("soft nic: packets of a window below one are a round-trip time over the window apart") {
  NicHarness h(under_swift(1), stream());
  h.run(10 * kMicrosecond);
  CHECK(h.of_kind(FrameKind::roce).size() == 1);
  // 1 - 0.8 x 80 / 100 is less than half, so the window is 0.5. The next goes at once: the first was sent at line rate.
  acknowledge(h, 100 * kMicrosecond, 0);
  CHECK(window(h) == doctest::Approx(0.5));
  h.run(102 * kMicrosecond);
  CHECK(h.of_kind(FrameKind::roce).size() == 2);
  // 0.5 (1 - 0.8 x 10 / 30). A pacer makes up for one packet that left late: the third would have gone at 198 us, a gap after the
  // first was through, and what is left of that passes 2.4 times as fast.
  acknowledge(h, 130 * kMicrosecond, 1);
  CHECK(window(h) == doctest::Approx(0.5 * (1 - 0.8 / 3)));
  h.run(157 * kMicrosecond);
  CHECK(h.of_kind(FrameKind::roce).size() == 2);
  h.run(160 * kMicrosecond);
  CHECK(h.of_kind(FrameKind::roce).size() == 3);
}

}  // namespace weir::test
