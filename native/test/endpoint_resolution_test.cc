// Streams whose way is not known when the NIC starts, and those whose way changes.
#include <doctest/doctest.h>

#include <vector>

#include "test/nic_harness.h"
#include "wire/qcn.h"

namespace weir::test {
namespace {

constexpr Rate k1G = 1'000'000'000;
constexpr uint64_t kOtherMac = 0x025745000009;

NicParameters parameters_with(const CongestionParameters& control) {
  NicParameters p = nic_parameters(k1G);
  p.congestion = control;
  p.grouping.cn_tag = std::holds_alternative<QcnParameters>(control);
  return p;
}

TEST_CASE("soft nic: nothing is sent on a stream before its way is known, and then all that is due") {
  for (const CongestionParameters& control :
       std::initializer_list<CongestionParameters>{CongestionControl::Parameters{}, DcqcnParameters{}, QcnParameters{}}) {
    CAPTURE(control.index());
    const NicParameters p = parameters_with(control);
    std::vector<QueuePairParameters> pairs{sender(0x21), sender(0x22, 10 * kMillisecond), sender(0x23), receiver(0x24)};
    for (const size_t unknown : {0, 1, 3}) pairs[unknown].path.destination_mac = 0;
    NicHarness h(p, pairs);
    h.receive(kMillisecond, h.data(0, 3, 3));  // marked
    h.run(5 * kMillisecond);
    CHECK(h.frames.size() > 100);
    for (const SentFrame& f : h.frames) CHECK(f.bth.destination_qp == 0x23);
    CHECK(h.nic.counters().np_cnp_sent == 0);
    CHECK(h.nic.counters().np_ecn_marked_roce_packets == 1);

    for (const size_t unknown : {0, 1, 3}) pairs[unknown].path.destination_mac = kPeerMac;
    h.nic.reconfigure(p, pairs);
    h.frames.clear();
    h.run(9 * kMillisecond);
    uint64_t sent[2] = {};
    for (const SentFrame& f : h.frames) {
      REQUIRE((f.bth.destination_qp == 0x21 || f.bth.destination_qp == 0x23));
      CHECK(f.meta.destination_mac == kPeerMac);
      CHECK(f.meta.cn_tagged == (std::holds_alternative<QcnParameters>(control)));
      ++sent[f.bth.destination_qp == 0x23];
    }
    // Each half of the link; nothing is made up for.
    CHECK(sent[0] > 150);
    CHECK(sent[1] > 150);
    CHECK(h.nic.queue_pairs()[1].counters.tx_packets == 0);
    h.receive(9 * kMillisecond, h.data(1, 3, 3));
    h.run(12 * kMillisecond);
    CHECK(h.nic.queue_pairs()[1].counters.tx_packets > 20);
    CHECK(h.nic.counters().np_cnp_sent == (std::holds_alternative<DcqcnParameters>(control) ? 1 : 0));
    for (const SentFrame& f : h.of_kind(FrameKind::cnp)) CHECK(f.meta.destination_mac == kPeerMac);
  }
}

TEST_CASE("soft nic: a stream goes on to another MAC address, without a gap") {
  for (const CongestionParameters& control : std::initializer_list<CongestionParameters>{DcqcnParameters{}, QcnParameters{}}) {
    CAPTURE(control.index());
    const NicParameters p = parameters_with(control);
    std::vector<QueuePairParameters> pairs{sender()};
    NicHarness h(p, pairs);
    h.run(2 * kMillisecond);
    pairs[0].path.destination_mac = kOtherMac;
    h.nic.reconfigure(p, pairs);
    const size_t before = h.frames.size();
    h.run(4 * kMillisecond);
    REQUIRE(h.frames.size() > before + 100);
    for (size_t i = 0; i < h.frames.size(); ++i) {
      CHECK(h.frames[i].meta.psn == i);
      // The frame on the link already has the old address.
      if (i != before) CHECK(h.frames[i].meta.destination_mac == (i < before ? kPeerMac : kOtherMac));
    }
  }
}

}  // namespace
}  // namespace weir::test
