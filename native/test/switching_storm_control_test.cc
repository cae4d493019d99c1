#include "switching/storm_control.h"
#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint64_t kBroadcast = 0xffffffffffff;
constexpr uint64_t kMulticast = 0x01005e000001;
constexpr uint64_t kUnknown = 0x02deadbeef00;

SwitchParameters storm_parameters(StormRates rates) {
  SwitchParameters p = switch_parameters(3);
  for (SwitchParameters::Port& port : p.ports) port.rate = 0;
  p.learning = true;
  p.ports[0].storm_rates = rates;
  return p;
}

void send_to(SwitchHarness& h, Time now, uint16_t from, uint64_t to, uint32_t length = 976) {
  PacketMeta m = meta(from, 0, 0);
  m.destination_mac = to;
  h.receive(now, from, m, length);
  h.run(now);
}

}  // namespace

TEST_CASE("storm control: what is flooded of one kind is limited to its rate, and counted by kind") {
  // 8 Mb/s are 1,000 frames of 1,000 bytes on the link a second; 50 of them may come at once, and one more.
  SwitchHarness h(storm_parameters({8'000'000, 16'000'000, 0}));
  for (int i = 0; i < 200; ++i) send_to(h, 0, 0, kBroadcast);
  const SwitchPortCounters& counters = h.device.counters(0);
  CHECK(counters.drop_storm_broadcast == 200 - 51);
  for (int i = 0; i < 200; ++i) send_to(h, 0, 0, kUnknown + static_cast<uint64_t>(i));
  CHECK(counters.drop_storm_unknown_unicast == 200 - 101);
  for (int i = 0; i < 200; ++i) send_to(h, 0, 0, kMulticast);
  CHECK(counters.drop_storm_multicast == 0);
  // Ten times the rate for ten seconds.
  const uint64_t before = counters.drop_storm_broadcast;
  for (int i = 0; i < 100'000; ++i) send_to(h, kSecond + i * 100 * kMicrosecond, 0, kBroadcast);
  const uint64_t passed = 100'000 - (counters.drop_storm_broadcast - before);
  CHECK(passed >= 10'000);
  CHECK(passed <= 10'051);
  h.check_drained();
}

TEST_CASE("storm control: other ports and known addresses are not limited, nor is anything by default") {
  SwitchHarness h(storm_parameters({1'000, 1'000, 1'000}));
  send_to(h, 0, 1, kHostMac + 9);  // makes itself known
  for (int i = 0; i < 100; ++i) send_to(h, kSecond, 0, kHostMac + 1);
  CHECK(h.dropped() == 0);
  for (int i = 0; i < 100; ++i) send_to(h, kSecond, 1, kBroadcast);
  CHECK(h.dropped() == 0);
  // However low the limit, a frame passes now and then.
  for (int i = 0; i < 100; ++i) send_to(h, 2 * kSecond, 0, kBroadcast);
  CHECK(h.device.counters(0).drop_storm_broadcast == 99);
  send_to(h, 20 * kSecond, 0, kBroadcast);
  CHECK(h.device.counters(0).drop_storm_broadcast == 99);
  h.check_drained();
}

TEST_CASE("storm control: new limits hold at once") {
  SwitchParameters p = storm_parameters({8'000'000, 0, 0});
  SwitchHarness h(p);
  for (int i = 0; i < 60; ++i) send_to(h, 0, 0, kBroadcast);
  CHECK(h.dropped() == 9);
  p.ports[0].storm_rates = {};
  h.device.reconfigure(p);
  for (int i = 0; i < 60; ++i) send_to(h, 0, 0, kBroadcast);
  CHECK(h.dropped() == 9);
  p.ports[0].storm_rates = {-1, 0, 0};
  CHECK_THROWS_AS(h.device.reconfigure(p), NativeError);
}
