// A soft NIC with queue pairs of verbs whose states change: what of congestion control and pacing goes with them.
#include <doctest/doctest.h>

#include <vector>

#include "test/verbs_harness.h"

namespace weir::test {
namespace {

TEST_CASE("soft nic verbs: RESET forgets what congestion control knew") {
  Two two;
  two.connect();
  const auto connect_left = [&] {
    two.left().nic.applications().modify(two.qpn(0), QueuePairState::reset, {}, {}, 3, 0);
    QueueAttributes a;
    a.domain = 1;
    a.remote_qpn = two.qpn(1);
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      two.left().nic.applications().modify(two.qpn(0), to, a, path_to(kPeerMac, kNicMac), 3, 0);
    }
  };
  int packets = 0;
  two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
    if (to_right && bytes.size() > 1'000 && ++packets % 20 == 0) mark(bytes);
    return true;
  };
  Transfer t(two, 4'000'000, WorkOpcode::write);
  two.run(2 * kMillisecond);
  const QueuePair& pair = two.pair_of(two.left(), two.qpn(0));
  CHECK(two.left().nic.allowed_rate(pair) < two.left().nic.line_rate() / 2);
  CHECK(two.left().nic.counters().rp_cur_flows == 1);
  connect_left();
  CHECK(!pair.started);
  CHECK(two.left().nic.counters().rp_cur_flows == 0);
  // The first packets of the new connection, which the peer does not know yet, leave at line rate.
  two.run(two.now() + 100 * kMicrosecond);
  const uint64_t sent = pair.counters.tx_packets;
  std::vector<Time> times;
  two.spoil = [&](bool to_right, std::vector<uint8_t>& bytes) {
    if (to_right && bytes.size() > 1'000) times.push_back(two.now());
    return false;
  };
  Transfer again(two, 100'000, WorkOpcode::write);
  two.run(two.now() + 90 * kMicrosecond);
  CHECK(two.left().nic.allowed_rate(pair) == two.left().nic.line_rate());
  CHECK(pair.counters.tx_packets - sent == 98);
  REQUIRE(times.size() == 97);  // and a short one
  CHECK(times.back() - times.front() < 97 * 1'200 * 8 / 10);
}

TEST_CASE("soft nic verbs: a queue pair that is reset while it waits for the link begins anew") {
  Two two;
  two.connect();
  std::vector<uint8_t> bytes(4'000);
  const uint32_t key = two.left().register_memory(bytes);
  // PFC holds its first packet back in the list of those that are ready.
  std::array<uint16_t, kPriorities> quanta{};
  quanta[3] = 0xffff;
  two.left().nic.receive_pfc(0, 1 << 3, quanta);
  two.left().nic.applications().post_send(two.qpn(0), work(WorkOpcode::write, bytes, key, bytes, 1));
  const QueuePair& pair = two.pair_of(two.left(), two.qpn(0));
  CHECK(pair.state == QueuePair::State::ready);
  two.left().nic.applications().modify(two.qpn(0), QueuePairState::reset, {}, {}, 3, 0);
  CHECK(two.left().completions.all.size() == 1);
  QueueAttributes a;
  a.domain = 1;
  a.remote_qpn = two.qpn(1);
  for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    two.left().nic.applications().modify(two.qpn(0), to, a, path_to(kPeerMac, kNicMac), 3, 100'000'000);
  }
  two.left().nic.applications().post_send(two.qpn(0), work(WorkOpcode::write, bytes, key, bytes, 1));
  CHECK(!pair.started);
  quanta[3] = 0;
  two.spoil = [](bool, std::vector<uint8_t>&) { return false; };
  two.left().nic.receive_pfc(0, 1 << 3, quanta);
  two.run(80 * kMicrosecond);
  CHECK(pair.started);
  CHECK(two.left().nic.allowed_rate(pair) == 100'000'000);
  CHECK(pair.counters.tx_packets == 1);  // at 100 Mb/s the second is due after 90 us
  two.run(250 * kMicrosecond);
  CHECK(pair.counters.tx_packets == 3);
}

TEST_CASE("soft nic verbs: a rate cap holds from the transition to RTS that gives it, and while it runs") {
  Two two;
  two.connect();
  QueueAttributes a;
  a.domain = 1;
  a.remote_qpn = two.qpn(1);
  const auto cap = [&](Rate rate) {
    two.left().nic.applications().modify(two.qpn(0), QueuePairState::rts, a, path_to(kPeerMac, kNicMac), 3, rate);
  };
  cap(100'000'000);
  Transfer t(two, 1'000'000, WorkOpcode::write);
  const QueuePair& pair = two.pair_of(two.left(), two.qpn(0));
  CHECK(two.left().nic.allowed_rate(pair) == 100'000'000);
  two.run(10 * kMillisecond);
  CHECK(static_cast<double>(pair.counters.tx_wire_bytes) == doctest::Approx(10e-3 * 100e6 / 8).epsilon(0.02));
  cap(1'000'000'000);
  const uint64_t before = pair.counters.tx_wire_bytes;
  two.run(two.now() + kMillisecond);
  CHECK(static_cast<double>(pair.counters.tx_wire_bytes - before) == doctest::Approx(1e-3 * 1e9 / 8).epsilon(0.03));
  cap(0);
  CHECK(two.left().nic.allowed_rate(pair) == two.left().nic.line_rate());
  two.run();
  CHECK(t.local == t.remote);
}

}  // namespace
}  // namespace weir::test
