// A NIC on a port that is slow to begin: how much of what it owes it hands over, and in how many calls.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "engine/nic_device.h"
#include "test/nic_harness.h"
#include "test/rig/port.h"

using namespace weir;
using namespace weir::test;

namespace {

// Frames of each call after a millisecond without a turn.
std::vector<size_t> hand_over(size_t batch, Rate rate) {
  PacketPool pool(1'024, 2'048);
  FrameRing punted(16);
  SpscRing<Record> records(16);
  NicDeviceConfig config;
  config.name = "h1";
  config.parameters = nic_parameters(rate);
  config.arrears = 25 * kMicrosecond;
  config.queue_pairs = {sender(), receiver()};
  config.queue_pair_settings = {{"a"}, {"b"}};
  PortScript script;
  script.capabilities.batch = batch;
  NicDevice nic(config, 0, WirePort(std::make_unique<ScriptedPort>(script), rate, 0, 64), pool, punted, records, 0);
  nic.turn(0, 0);
  nic.turn(kMillisecond, kMillisecond);
  return script.calls;
}

}  // namespace

TEST_CASE("nic device: a port that is slow to begin gets what became due meanwhile, in calls for as many as it likes") {
  // A packet takes 885 ns at 10 Gb/s, a fourth at 40.
  const std::vector<size_t> few = hand_over(1, 10'000'000'000);
  REQUIRE(few.size() == 1);
  CHECK(few[0] >= 25'000 / 885 - 1);
  CHECK(few[0] <= 25'000 / 885 + 2);
  const std::vector<size_t> many = hand_over(512, 10'000'000'000);
  REQUIRE(many.size() == 1);
  CHECK(many[0] >= 500'000 / 885 - 2);
  CHECK(many[0] <= 500'000 / 885 + 2);
  const std::vector<size_t> fast = hand_over(512, 40'000'000'000);
  REQUIRE(fast.size() > 1);
  for (size_t i = 0; i + 1 < fast.size(); ++i) {
    CHECK(fast[i] >= 512);
    CHECK(fast[i] < 512 + 130);  // and those of a piece of 128 KiB
  }
}
