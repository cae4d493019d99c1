// Message graphs on simulated networks.
#include <doctest/doctest.h>

#include <vector>

#include "base/native_error.h"
#include "test/graph_on_star.h"

namespace weir::test {
namespace {

TEST_CASE("simulation: a ring all-reduce on a star takes 2(n-1) messages' times") {
  constexpr uint32_t kRanks = 8;
  constexpr double kShare = 1e6;
  SimulationConfig config = on_star(ring(kRanks, kRanks * kShare), kRanks);
  without_congestion_control(config);
  Simulation simulation(std::move(config));
  finish(simulation, 10 * kMillisecond);
  const GraphTraffic& graph = *simulation.graph();
  REQUIRE(graph.ended() == graph.graph().size());
  CHECK_FALSE(graph.moves());
  // The acknowledgement of the last message comes later.
  Time last = 0;
  for (uint32_t i = 0; i < graph.graph().size(); ++i) {
    if (graph.graph().kind(i) == OperationKind::receive) last = std::max(last, graph.state().ended[i]);
  }
  // All that a NIC sends, acknowledgements too, and for each message a packet more for the second link, and two cables.
  simulation.settle();
  const NicCounters& sent = simulation.fabric().nic_at(0).counters();
  const double wire = static_cast<double>(sent.tx_bytes + kEthernetOverhead * sent.tx_packets);
  const double packet = 4'096 + 14 + 20 + 8 + 12 + 4 + kEthernetOverhead;
  CHECK(static_cast<double>(last) == doctest::Approx((wire + 14 * packet) * 8e9 / kStarRate + 14 * 2 * kCable).epsilon(0.0001));
  CHECK(simulation.finished().size() == 14 * kRanks);
}

TEST_CASE("simulation: a graph is carried out in the same way by any number of threads") {
  const auto times = [](uint32_t threads, uint32_t nics) {
    GraphWriter writer(8);
    // All to all, each after the one before has come, with calculations between; two ranks on each host, or on two machines with
    // four NICs each.
    for (uint32_t rank = 0; rank < 8; ++rank) {
      uint32_t last = writer.calculate(rank, 100 * (rank + 1));
      for (uint32_t i = 1; i < 8; ++i) {
        writer.send(rank, (rank + i) % 8, 100'000 * i, i, {last});
        last = writer.receive(rank, (rank + 8 - i) % 8, 100'000 * i, i, {last});
        last = writer.calculate(rank, 500, {last});
      }
    }
    SimulationConfig config = on_star(writer.take(), nics == 1 ? 4 : 8, threads, nics);
    config.graph->parameters.inside_rate = 900 * kGigabit;
    Simulation simulation(std::move(config), {{}, 0});
    finish(simulation, 5 * kMillisecond);
    const GraphState& state = simulation.graph()->state();
    REQUIRE(simulation.graph()->ended() == simulation.graph()->graph().size());
    std::vector<Time> all = state.started;
    all.insert(all.end(), state.ended.begin(), state.ended.end());
    return std::pair(all, everything(simulation));
  };
  for (const uint32_t nics : {1u, 4u}) {
    CAPTURE(nics);
    const auto alone = times(1, nics);
    for (const uint32_t threads : {2u, 3u, 7u}) CHECK(times(threads, nics) == alone);
  }
}

TEST_CASE("simulation: what comes in at one NIC of a machine goes on by another at the same time") {
  // Rank 0 -> rank 2 at the other machine's first NIC -> rank 3 inside -> back to rank 1 by the second.
  GraphWriter writer(4);
  writer.send(0, 2, 1e5);
  const uint32_t back = writer.receive(1, 3, 1e5);
  const uint32_t over = writer.receive(2, 0, 1e5);
  const uint32_t in = writer.send(2, 3, 1e5, 0, {over});
  const uint32_t inside = writer.receive(3, 2, 1e5);
  const uint32_t out = writer.send(3, 1, 1e5, 0, {inside});
  for (const uint32_t threads : {1u, 2u}) {
    GraphWriter copy = writer;
    SimulationConfig config = on_star(copy.take(), 4, threads, 2);
    without_congestion_control(config);
    config.graph->parameters.inside_rate = 800 * kGigabit;
    Simulation simulation(std::move(config), {{}, 0});
    finish(simulation, kMillisecond);
    const GraphState& state = simulation.graph()->state();
    REQUIRE(simulation.graph()->ended() == 6);
    CHECK(state.started[in] == state.ended[over]);
    CHECK(state.ended[inside] == state.ended[over] + 1'000);
    CHECK(state.started[out] == state.ended[inside]);
    // Both ways are as long, and nothing is lost between them.
    CHECK(state.ended[back] == 2 * state.ended[over] + 1'000);
    simulation.settle();
    CHECK(simulation.fabric().nic_at(2).counters().rx_bytes > 100'000);
    CHECK(simulation.fabric().nic_at(3).counters().tx_bytes > 100'000);
    CHECK(simulation.fabric().nic_at(0).counters().rx_bytes < 10'000);
  }
}

TEST_CASE("simulation: machines whose NICs are none, or in several partitions, are refused") {
  const auto refused = [](std::vector<uint32_t> machines, std::vector<uint32_t> division) {
    SimulationConfig config = on_star(ring(4, 4'000), 4, 2, 2);
    static_cast<std::vector<uint32_t>&>(config.graph->machine_of_nic) = std::move(machines);
    CHECK_THROWS_WITH_AS(Simulation(std::move(config), {std::move(division), 0}), doctest::Contains("machine"), NativeError);
  };
  refused({0, 0, 2, 2}, {0, 0, 0, 1, 0});
  refused({0, 0, 2}, {});
  refused({0, 0, 1, 2}, {});
  refused({0, 0, 3, 3}, {});
}

TEST_CASE("simulation: by rendezvous nothing but questions goes before receives are there") {
  GraphWriter writer(2);
  const uint32_t send = writer.send(0, 1, 1e6);
  const uint32_t busy = writer.calculate(1, 1e6);
  const uint32_t receive = writer.receive(1, 0, 1e6, 0, {busy});
  SimulationConfig config = on_star(writer.take(), 2);
  config.graph->parameters = {.eager = 0, .rendezvous = 100'000};
  Simulation simulation(std::move(config));
  finish(simulation, 900 * kMicrosecond);
  CHECK(simulation.counters(simulation.receiver(0)).rx_bytes == 0);
  finish(simulation, 2 * kMillisecond);
  CHECK(simulation.graph()->ended() == 3);
  CHECK(simulation.graph()->state().started[send] == 0);
  CHECK(simulation.graph()->state().ended[receive] > 1'080'000);
}

TEST_CASE("simulation: messages beyond the longest of a connection come whole, and once") {
  GraphWriter writer(2);
  writer.send(0, 1, 2.0 * kMaxMessage + 5);
  writer.send(0, 1, 0, 1);
  const uint32_t first = writer.receive(1, 0, 2.0 * kMaxMessage + 5), second = writer.receive(1, 0, 0, 1);
  SimulationConfig config = on_star(writer.take(), 2);
  Simulation simulation(std::move(config));
  finish(simulation, 300 * kMillisecond);
  const GraphState& state = simulation.graph()->state();
  CHECK(simulation.graph()->ended() == 4);
  CHECK(state.ended[first] > 170 * kMillisecond);
  CHECK(state.ended[second] >= state.ended[first]);
  REQUIRE(simulation.finished().size() == 2);
  CHECK(simulation.finished()[0].bytes == 2ull * kMaxMessage + 5);
}

TEST_CASE("simulation: a graph that cannot end stands still, and that shows") {
  GraphWriter writer(2);
  writer.send(0, 1, 1'000, 1);
  writer.receive(1, 0, 1'000, 2);
  Simulation simulation(on_star(writer.take(), 2));
  finish(simulation, kMillisecond);
  CHECK(simulation.graph()->ended() == 1);
  CHECK_FALSE(simulation.graph()->moves());
}

TEST_CASE("simulation: ranks begin when they are told to") {
  SimulationConfig config = on_star(ring(2, 2'000), 2);
  config.graph->begins = {0, 50'000};
  Simulation simulation(std::move(config));
  finish(simulation, kMillisecond);
  const GraphState& state = simulation.graph()->state();
  CHECK(state.started[0] == 0);
  CHECK(state.started[simulation.graph()->graph().first(1)] == 50'000);
  CHECK(simulation.graph()->ended() == simulation.graph()->graph().size());
}

}  // namespace
}  // namespace weir::test
