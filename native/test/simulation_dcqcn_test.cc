// DCQCN over a simulated switch: what its authors promise of it for two flows into one port.
#include <doctest/doctest.h>

#include <vector>

#include "test/simulation_harness.h"

namespace weir::test {
namespace {

// Jain's index of fairness: 1 when all are equal.
double fairness(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

TEST_CASE("simulation: under DCQCN two flows into one port share it fairly, with a short queue") {
  for (const bool reliable : {false, true}) {
    CAPTURE(reliable);
    constexpr Time kHalf = 50 * kMillisecond;
    constexpr Time kWarm = 20 * kMillisecond;
    SimulationConfig config = star(3, 40 * kGigabit);
    config.transport.window = 2'048;
    for (uint32_t i = 0; i < 2; ++i) {
      config.flows.push_back(flow(i, 2, static_cast<uint16_t>(i)));
      config.flows[i].reliable = reliable;
      config.flows[i].stream.message_bytes = 1 << 20;
      // The second comes to a link that the first has for itself.
      config.flows[i].start = i * kMillisecond;
    }
    config.sampled_queues = {{0, 2, 3}};
    config.reset_after = kWarm;
    Simulation simulation(config);
    finish(simulation, kHalf);
    const auto received = [&](uint32_t i) { return static_cast<double>(simulation.counters(simulation.receiver(i)).rx_bytes); };
    const double before[2] = {received(0), received(1)};
    finish(simulation, 2 * kHalf);
    const std::vector<double> shares{received(0) - before[0], received(1) - before[1]};
    CAPTURE(shares[0]);
    CAPTURE(shares[1]);
    CHECK(fairness(shares) > 0.99);
    // 1024 of 1106 bytes of the link are payload.
    const double limit = 40e9 / 8 * 50e-3 * 1'024 / wire_bytes(kFrame);
    CHECK(shares[0] + shares[1] > 0.9 * limit);
    CHECK(shares[0] + shares[1] <= limit * 1.001);
    const Histogram& queue = simulation.queue_lengths().front().lengths;
    CHECK(queue.total() == static_cast<uint64_t>(2 * kHalf - kWarm));
    CAPTURE(queue.max());
    CHECK(queue.max() < 200'000);
    CHECK(queue.max() > 5'000);
    simulation.settle();
    CHECK(dropped(simulation) == 0);
    for (uint32_t i = 0; i < 2; ++i) {
      CHECK(simulation.counters(simulation.receiver(i)).lost == 0);
      CHECK(simulation.counters(simulation.sender(i)).cnp_handled > 50);
      CHECK(simulation.fabric().nic_at(i).counters().rp_cur_flows == 1);
    }
    CHECK(simulation.fabric().switch_at(0).counters(2, 3).wred_ecn_marked_packets > 100);
  }
}

TEST_CASE("simulation: without congestion control the same two flows fill the queue, and PFC shares the port") {
  SimulationConfig config = star(3, 40 * kGigabit);
  without_congestion_control(config);
  for (uint32_t i = 0; i < 2; ++i) config.flows.push_back(flow(i, 2, static_cast<uint16_t>(i)));
  config.sampled_queues = {{0, 2, 3}};
  Simulation simulation(config);
  finish(simulation, 10 * kMillisecond);
  CHECK(simulation.queue_lengths().front().lengths.max() > 1'000'000);
  CHECK(dropped(simulation) == 0);
  CHECK(simulation.fabric().switch_at(0).counters(0).tx_pfc_frames > 0);
  const std::vector<double> shares{static_cast<double>(simulation.counters(simulation.receiver(0)).rx_bytes),
                                   static_cast<double>(simulation.counters(simulation.receiver(1)).rx_bytes)};
  CHECK(fairness(shares) > 0.99);
}

}  // namespace
}  // namespace weir::test
