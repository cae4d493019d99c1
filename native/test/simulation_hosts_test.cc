// What hosts in a simulation send and hear besides their queue pairs, and that a run stops for it.
#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <vector>

#include "link/serializer.h"
#include "test/rig/frames.h"
#include "test/simulation_harness.h"
#include "transport/opcode.h"

namespace weir::test {
namespace {

constexpr Time kAsked = 1'500;

// Two hosts with programs; the first sends a message to queue pair 1 of the second.
struct Hosts final : HostWork {
  struct Heard {
    uint32_t nic;
    Time at;
    std::vector<uint8_t> frame;
    bool operator==(const Heard&) const = default;
  };

  Hosts() {
    config = star(2, 40 * kGigabit);
    for (SimulatedNic& nic : config.nics) {
      nic.parameters.verbs_queue_pairs = 4;
      nic.parameters.stack_queue = 1 << 16;
    }
    RocePath path = path_to(config.nics[1].parameters.mac, config.nics[0].parameters.mac);
    std::memcpy(path.source_ip, config.nics[0].ip, 4);
    std::memcpy(path.destination_ip, config.nics[1].ip, 4);
    frame = roce(kOpcodeUdSendOnly).on(path).to(kGsiQpn).payload(256, 7).bytes();
  }
  void wake(uint32_t nic, Time now) override { fabric->send_for_stack(nic, now, frame); }
  void punted(uint32_t nic, Time now, std::span<const uint8_t> bytes) override {
    heard.push_back({nic, now, {bytes.begin(), bytes.end()}});
    if (pauses) fabric->pause(nic);
  }

  SimulationConfig config;
  std::vector<uint8_t> frame;
  std::vector<Heard> heard;
  Fabric* fabric = nullptr;
  bool pauses = false;
};

// Two cables, and the frame on each of them once.
Time arrival(const Hosts& hosts) {
  Serializer link(40 * kGigabit);
  const Time taken = link.finish(0, wire_bytes(static_cast<uint32_t>(hosts.frame.size())));
  return kAsked + 2 * (taken + kCable);
}

TEST_CASE("simulation: a message of connection management crosses the network whole") {
  Hosts hosts;
  Simulation simulation(hosts.config, {}, &hosts);
  hosts.fabric = &simulation.fabric();
  hosts.fabric->wake_host(0, kAsked);
  CHECK(simulation.run(kMillisecond, UINT64_MAX / 2));
  REQUIRE(hosts.heard.size() == 1);
  CHECK(hosts.heard[0].nic == 1);
  CHECK(hosts.heard[0].frame == hosts.frame);
  CHECK(hosts.heard[0].at >= arrival(hosts));
  CHECK(hosts.heard[0].at <= arrival(hosts) + 1);
  CHECK(simulation.fabric().packets() == 0);
}

TEST_CASE("simulation: a run stops at the time of what was heard, and goes on as if it had not") {
  Hosts once, stopped;
  Simulation whole(once.config, {}, &once), parts(stopped.config, {}, &stopped);
  once.fabric = &whole.fabric();
  stopped.fabric = &parts.fabric();
  stopped.pauses = true;
  for (Hosts* hosts : {&once, &stopped}) {
    hosts->fabric->wake_host(0, kAsked);
    hosts->fabric->wake_host(0, kAsked + 100);
  }
  CHECK(whole.run(kMillisecond, UINT64_MAX / 2));
  for (size_t number = 0; number < 2; ++number) {
    CHECK_FALSE(parts.run(kMillisecond, UINT64_MAX / 2));
    REQUIRE(stopped.heard.size() == number + 1);
    CHECK(parts.now() == stopped.heard[number].at);
  }
  CHECK(parts.run(kMillisecond, UINT64_MAX / 2));
  CHECK(parts.now() == kMillisecond);
  CHECK(stopped.heard == once.heard);
  CHECK(everything(parts) == everything(whole));
}

TEST_CASE("simulation: what is no frame is not sent") {
  Hosts hosts;
  hosts.frame.resize(20);
  Simulation simulation(hosts.config, {}, &hosts);
  hosts.fabric = &simulation.fabric();
  hosts.fabric->wake_host(0, kAsked);
  CHECK(simulation.run(kMillisecond, UINT64_MAX / 2));
  CHECK(hosts.heard.empty());
  CHECK(simulation.fabric().packets() == 0);
}

}  // namespace
}  // namespace weir::test
