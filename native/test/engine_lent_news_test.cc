// What a program's own NIC tells the daemon's, and what that makes of it.
#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/lent_news.h"
#include "test/nic_harness.h"
#include "test/rig/port.h"
#include "test/verbs_harness.h"

namespace weir::test {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 40;

template <class Counters>
size_t place_of(const std::string& name) {
  for (size_t i = 0; i < Counters::kCount; ++i) {
    if (Counters::kDescriptions[i].name == name) return i;
  }
  FAIL("there is no counter ", name);
  return 0;
}
size_t of_nic(const std::string& name) { return place_of<NicCounters>(name); }
size_t of_priority(size_t priority, const std::string& name) {
  return NicCounters::kCount + priority * NicPriorityCounters::kCount + place_of<NicPriorityCounters>(name);
}
size_t of_port(const std::string& name) {
  return of_priority(kPriorities, NicPriorityCounters::kDescriptions[0].name) + place_of<WirePortCounters>(name);
}

// A daemon's NIC, with counts of its own, and the news of one program.
struct Daemon {
  Daemon() {
    harness.nic.counters().tx_packets = 1'000;
    harness.nic.counters(3).tx_prio_packets = 500;
  }
  void tell(size_t place, uint64_t count) { news->counted[place] = count; }
  uint64_t take() { return account.take(*news, harness.nic, port); }

  std::unique_ptr<LentNews> news = std::make_unique<LentNews>();
  LentAccount account;
  NicHarness harness{nic_parameters(), {}};
  PortScript script;
  WirePort port{std::make_unique<ScriptedPort>(script), 0, 0, 64};
};

TEST_CASE("lent news: what a program's NIC counts is added once to what the daemon's has counted itself") {
  Daemon d;
  CHECK(d.take() == 0);
  d.tell(of_nic("tx_packets"), 5);
  d.tell(of_nic("rx_packets"), 7);
  d.tell(of_priority(3, "tx_prio_packets"), 4);
  d.tell(of_priority(7, "rx_prio_bytes"), 900);
  CHECK(d.take() == 12);
  CHECK(d.take() == 0);
  CHECK(d.harness.nic.counters().tx_packets == 1'005);
  CHECK(d.harness.nic.counters().rx_packets == 7);
  CHECK(d.harness.nic.counters(3).tx_prio_packets == 504);
  CHECK(d.harness.nic.counters(7).rx_prio_bytes == 900);
  CHECK(d.harness.nic.counters(6).rx_prio_bytes == 0);
  d.tell(of_nic("tx_packets"), 6);
  ++d.harness.nic.counters().tx_packets;
  CHECK(d.take() == 1);
  CHECK(d.harness.nic.counters().tx_packets == 1'007);
}

TEST_CASE("lent news: programs with paths of their own are counted each by itself") {
  Daemon d;
  const auto other = std::make_unique<LentNews>();
  LentAccount account;
  d.tell(of_nic("rx_packets"), 10);
  other->counted[of_nic("rx_packets")] = 3;
  CHECK(d.take() == 10);
  CHECK(account.take(*other, d.harness.nic, d.port) == 3);
  CHECK(d.take() == 0);
  CHECK(d.harness.nic.counters().rx_packets == 13);
}

TEST_CASE("lent news: a count that goes back or leaps is not believed, and what comes after it is") {
  Daemon d;
  d.tell(of_nic("rx_packets"), 100);
  CHECK(d.take() == 100);
  for (const auto& [told, believed] : std::initializer_list<std::pair<uint64_t, uint64_t>>{
           {40, 0}, {45, 5}, {45 + kMost, kMost}, {46 + 2 * kMost, 0}, {47 + 2 * kMost, 1}, {UINT64_MAX, 0}, {0, 0}, {2, 2}}) {
    CAPTURE(told);
    const uint64_t before = d.harness.nic.counters().rx_packets;
    d.tell(of_nic("rx_packets"), told);
    CHECK(d.take() == believed);
    CHECK(d.harness.nic.counters().rx_packets == before + believed);
  }
}

TEST_CASE("lent news: pauses, which come to both, and what is there now, which is no count, are not added") {
  Daemon d;
  for (size_t i = 0; i < LentNews::kCounters; ++i) d.tell(i, 10 + i);
  d.take();
  const auto common = [](const std::string& name) {
    for (const char* each : {"rp_cur_flows", "rx_pfc_frames", "rx_pause_frames", "rx_unsupported_op_phy", "rx_prio_pause",
                             "rx_prio_pause_transition", "rx_prio_pause_duration"}) {
      if (name == each) return true;
    }
    return false;
  };
  NicCounters own;
  own.tx_packets = 1'000;
  for (size_t i = 0; i < NicCounters::kCount; ++i) {
    const std::string name = NicCounters::kDescriptions[i].name;
    CAPTURE(name);
    CHECK(d.harness.nic.counters().words()[i] == own.words()[i] + (common(name) ? 0 : 10 + i));
  }
  for (size_t p = 0; p < kPriorities; ++p) {
    for (size_t i = 0; i < NicPriorityCounters::kCount; ++i) {
      const std::string name = NicPriorityCounters::kDescriptions[i].name;
      CAPTURE(name);
      const uint64_t before = p == 3 && name == "tx_prio_packets" ? 500 : 0;
      CHECK(d.harness.nic.counters(static_cast<int>(p)).words()[i] == before + (common(name) ? 0 : 10 + of_priority(p, name)));
    }
  }
}

TEST_CASE("lent news: what the host did to a program's frames is the daemon's port's, beside its own") {
  Daemon d;
  d.script.losses.receive_overrun = 2;
  d.script.losses.transmit_errors = 3;
  d.tell(of_port("host_rx_overrun"), 20);
  d.tell(of_port("host_rx_truncated"), 21);
  d.tell(of_port("host_tx_errors"), 22);
  d.tell(of_port("tx_super_frames"), 23);
  d.tell(of_port("rx_super_frames"), 24);
  CHECK(d.take() == 0);
  d.port.settle();
  d.port.settle();
  CHECK(d.port.counters().host_rx_overrun == 22);
  CHECK(d.port.counters().host_rx_truncated == 21);
  CHECK(d.port.counters().host_tx_errors == 25);
  CHECK(d.port.counters().tx_super_frames == 23);
  CHECK(d.port.counters().rx_super_frames == 24);
  d.tell(of_port("host_rx_overrun"), 21);
  d.take();
  d.port.settle();
  CHECK(d.port.counters().host_rx_overrun == 23);
}

TEST_CASE("lent news: what a NIC tells of itself and of its queue pairs is what the daemon reads") {
  Two two;
  two.connect();
  const Transfer transfer(two, 5'000, WorkOpcode::write);
  two.run();
  SoftNic& nic = two.left().nic;
  PortScript script;
  script.losses.super_frames_sent = 6;
  WirePort port(std::make_unique<ScriptedPort>(script), 0, 0, 64);
  const auto news = std::make_unique<LentNews>();
  tell(*news, nic, port);
  REQUIRE(nic.counters().tx_packets >= 5);
  CHECK(news->counted[of_nic("tx_packets")] == nic.counters().tx_packets);
  CHECK(news->counted[of_nic("rx_bytes")] == nic.counters().rx_bytes);
  CHECK(news->counted[of_priority(3, "tx_prio_packets")] == nic.counters(3).tx_prio_packets);
  CHECK(news->counted[of_port("tx_super_frames")] == 6);

  const uint32_t qpn = two.qpn(0);
  QpCounters counters;
  REQUIRE(LentAccount::read(*news, qpn, counters));
  const QueuePair& qp = two.pair_of(two.left(), qpn);
  CHECK(counters.tx_packets == 5);
  CHECK(counters.tx_bytes == 5'000);
  for (int i = 0; i < QpCounters::kCount; ++i) CHECK(counters.words()[i] == qp.counters.words()[i]);
  const LentPairNews& told = news->pairs[qpn % (1u << kLentBlockShift)];
  CHECK(told.state == static_cast<uint32_t>(QueuePair::State::idle));
  CHECK(told.limited == 0);
  CHECK(told.target_rate == static_cast<uint64_t>(nic.line_rate()));

  // Another of the same place has told nothing, nor has one of another place.
  counters.tx_packets = 77;
  CHECK_FALSE(LentAccount::read(*news, qpn + (1u << kLentBlockShift), counters));
  CHECK_FALSE(LentAccount::read(*news, qpn + 1, counters));
  CHECK(counters.tx_packets == 77);

  Daemon daemon;
  CHECK(daemon.account.take(*news, daemon.harness.nic, daemon.port) == nic.counters().tx_packets + nic.counters().rx_packets);
  CHECK(daemon.harness.nic.counters().tx_bytes == nic.counters().tx_bytes);
}

}  // namespace
}  // namespace weir::test
