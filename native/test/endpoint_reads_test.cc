// READs under congestion control by acknowledgements: the end that asks keeps to its rate and its window, the end that answers to
// none.
#include <doctest/doctest.h>

#include "test/verbs_harness.h"
#include "transport/psn.h"

namespace weir::test {
namespace {

constexpr uint32_t kBytes = 1'000'000;

// A rate of its own that does not change.
void timely_at(NicParameters& p, Rate rate) {
  TimelyParameters& timely = under<TimelyParameters>(p);
  timely.min_rtt = 10 * kSecond;
  p.line_rate_start = false;
  p.initial_rate = rate;
}

}  // namespace

TEST_CASE("soft nic reads: the requester's rate is that of what it asks for, whatever the responder's is") {
  Two two([](NicParameters& p) { timely_at(p, p.mac == kNicMac ? 1'000'000'000 : 100'000'000); });
  two.connect();
  Transfer t(two, kBytes, WorkOpcode::read);
  two.run();
  REQUIRE(two.left().completions.all.size() == 1);
  CHECK(t.local == t.remote);
  const uint64_t wire = two.pair_of(two.right(), two.qpn(1)).counters.tx_wire_bytes;
  CHECK(two.delivered() == doctest::Approx(static_cast<double>(wire) * 8).epsilon(0.01));  // ns at 1 Gb/s
}

TEST_CASE("soft nic reads: at line rate requests are no nearer to each other than what they ask for is long") {
  Two two([](NicParameters& p) { timely_at(p, p.rate); });
  two.connect();
  Time last = -1;
  uint32_t asked = 0;
  two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
    if (!to_right) return true;
    PacketMeta meta;
    REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
    if (last >= 0) CHECK(two.now() - last >= static_cast<Time>(asked) * 8 / 10 - 100);
    last = two.now();
    asked = load_reth(bytes.data() + meta.bth_offset + kBthHeader).dma_length;
    return true;
  };
  Transfer t(two, kBytes, WorkOpcode::read);
  two.run();
  CHECK(t.local == t.remote);
}

TEST_CASE("soft nic reads: two that READ from each other each have the whole of their rate") {
  Two two([](NicParameters& p) { timely_at(p, 1'000'000'000); });
  two.connect();
  Transfer t(two, kBytes, WorkOpcode::read);
  std::vector<uint8_t> local(kBytes, 3);
  std::vector<uint8_t> remote(kBytes, 4);
  const uint32_t key = two.right().register_memory(local);
  const uint32_t remote_key = two.left().register_memory(remote);
  two.right().nic.applications().post_send(two.qpn(1), work(WorkOpcode::read, local, key, remote, remote_key));
  two.run();
  REQUIRE(two.left().completions.all.size() == 1);
  REQUIRE(two.right().completions.all.size() == 1);
  CHECK(t.local == t.remote);
  CHECK(local == remote);
  CHECK(two.delivered() < 9 * kMillisecond);
}

TEST_CASE("soft nic reads: no more is under way than the window") {
  Two two([](NicParameters& p) {
    SwiftParameters& swift = under<SwiftParameters>(p);
    swift.initial_window = swift.max_cwnd = swift.min_cwnd = 2;
  });
  two.connect();
  uint32_t asked = 0;
  uint32_t came = 0;
  uint32_t most = 0;
  two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
    PacketMeta meta;
    REQUIRE(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
    if (to_right) asked += packets_of(load_reth(bytes.data() + meta.bth_offset + kBthHeader).dma_length, 1'024);
    came += !to_right;
    most = std::max(most, asked - came);
    return true;
  };
  Transfer t(two, kBytes, WorkOpcode::read);
  two.run();
  CHECK(t.local == t.remote);
  CHECK(asked == came);
  CHECK(most == 2);
  // Two packets in a round-trip time, which is 2 us, and the time of a response and of its request on the link.
  const double round_trip = 2e3 + (1'106 + 98) * 0.8;
  CHECK(two.delivered() == doctest::Approx(kBytes / 1'024.0 / 2 * round_trip).epsilon(0.05));
}

}  // namespace weir::test
