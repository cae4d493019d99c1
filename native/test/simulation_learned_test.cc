// Fast-forward of message graphs by memory of phases, against the same simulated packet by packet.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "test/graph_on_star.h"

namespace weir::test {
namespace {

constexpr Time kEnd = 100 * kMillisecond;

struct Ran {
  std::vector<Time> started, ended;
  Time last = 0;  // last end of a receive or calculation
  uint64_t hops = 0;
  size_t finished = 0;
  LearnedReport report;
};

SimulationConfig learning(SimulationConfig config) {
  config.fast_forward = FastForwardParameters{.bound = 0.03, .due = {kEnd}};
  return config;
}

Ran run(SimulationConfig config, uint64_t events = UINT64_MAX / 2) {
  Simulation simulation(std::move(config));
  while (!simulation.run(kEnd, events)) {
  }
  const GraphTraffic& graph = *simulation.graph();
  REQUIRE(graph.ended() == graph.graph().size());
  CHECK_FALSE(graph.moves());
  Ran ran{.started = graph.state().started, .ended = graph.state().ended, .report = {}};
  for (uint32_t i = 0; i < graph.graph().size(); ++i) {
    if (graph.graph().kind(i) != OperationKind::send) ran.last = std::max(ran.last, ran.ended[i]);
  }
  ran.hops = simulation.fabric().hops();
  ran.finished = simulation.finished().size();
  if (simulation.learned() != nullptr) ran.report = simulation.learned()->report();
  return ran;
}

// Sends so many messages one after another, each when the one before has come and a calculation is over.
MessageGraphColumns one_by_one(uint32_t messages) {
  GraphWriter graph(2);
  uint32_t last = graph.calculate(0, 5'000);
  std::vector<uint32_t> back;
  for (uint32_t i = 0; i < messages; ++i) {
    graph.send(0, 1, 400'000, i, {last});
    last = graph.receive(0, 1, 8, i, {last});
    last = graph.calculate(0, 5'000, {last});
  }
  for (uint32_t i = 0; i < messages; ++i) {
    const uint32_t came = graph.receive(1, 0, 400'000, i);
    graph.send(1, 0, 8, i, {came});
  }
  return graph.take();
}

// Serialisers and pacers carry parts of a nanosecond from message to message.
TEST_CASE("learned phases: messages that are alone come when packets do, to the nanosecond or two") {
  const Ran exact = run(on_star(one_by_one(200), 2));
  const Ran learned = run(learning(on_star(one_by_one(200), 2)));
  Time most = 0;
  for (size_t i = 0; i < exact.ended.size(); ++i) most = std::max(most, std::abs(learned.ended[i] - exact.ended[i]));
  // 400 messages, one after another.
  CHECK(most <= 800);
  CHECK(learned.finished == exact.finished);
  CHECK(learned.report.reason.empty());
  CHECK(learned.report.messages == 400);
  CHECK(learned.report.skipped > 300);
  CHECK(learned.report.judged > 0);
  CHECK(learned.report.error < 0.0005);
  CHECK(learned.report.stretches == 3);
  CHECK(learned.hops * 4 < exact.hops);
}

TEST_CASE("learned phases: a ring all-reduce ends when it does by packets") {
  const auto on = [] { return on_star(ring(8, 8e6), 8); };
  const Ran exact = run(on());
  const Ran learned = run(learning(on()));
  CHECK(std::abs(static_cast<double>(learned.last - exact.last)) < 0.002 * static_cast<double>(exact.last));
  CHECK(learned.report.skipped_bytes > 0.5 * learned.report.bytes);
  CHECK(learned.hops * 2 < exact.hops);
}

TEST_CASE("learned phases: messages of one rank to another follow each other in their order") {
  const auto columns = [] {
    GraphWriter graph(2);
    uint32_t last = graph.calculate(0, 1'000);
    for (uint32_t i = 0; i < 40; ++i) {
      // The long one is before the short one at the receiver, each time.
      graph.send(0, 1, 1'000'000, 2 * i, {last});
      graph.send(0, 1, 100'000, 2 * i + 1, {last});
      last = graph.receive(0, 1, 8, i, {last});
    }
    for (uint32_t i = 0; i < 40; ++i) {
      const uint32_t longer = graph.receive(1, 0, 1'000'000, 2 * i), shorter = graph.receive(1, 0, 100'000, 2 * i + 1);
      graph.send(1, 0, 8, i, {longer, shorter});
    }
    return graph.take();
  };
  const Ran exact = run(on_star(columns(), 2));
  const Ran learned = run(learning(on_star(columns(), 2)));
  CHECK(std::abs(static_cast<double>(learned.last - exact.last)) < 0.001 * static_cast<double>(exact.last));
  CHECK(learned.report.skipped > 60);
  CHECK(learned.report.left == 0);
}

TEST_CASE("learned phases: a message that begins while another is on its way waits only where the link is not free") {
  // Each takes 8.3 us of a link and comes some 2 us behind that: not all that begin before another has come wait for it.
  const auto columns = [] {
    GraphWriter graph(2);
    uint32_t last = graph.calculate(0, 1'000);
    for (uint32_t i = 0; i < 300; ++i) {
      graph.send(0, 1, 100'000, i, {last});
      last = graph.calculate(0, i % 50 < 20 ? 7'000 + 97 * (i % 10) : 9'000 + 137 * (i % 30), {last});
    }
    for (uint32_t i = 0; i < 300; ++i) graph.receive(1, 0, 100'000, i);
    return graph.take();
  };
  const Ran exact = run(on_star(columns(), 2));
  const Ran learned = run(learning(on_star(columns(), 2)));
  Time most = 0;
  for (size_t i = 0; i < exact.ended.size(); ++i) most = std::max(most, std::abs(learned.ended[i] - exact.ended[i]));
  CHECK(most < 50);
  CHECK(learned.report.skipped > 150);
  CHECK(learned.report.left == 0);
}

// All to one, again and again: a phase of several messages.
MessageGraphColumns incasts(uint32_t senders, uint32_t times) {
  GraphWriter graph(senders + 1);
  for (uint32_t rank = 0; rank < senders; ++rank) {
    uint32_t last = graph.calculate(rank, 1'000);
    for (uint32_t i = 0; i < times; ++i) {
      graph.send(rank, senders, 500'000, i, {last});
      last = graph.receive(rank, senders, 8, i, {last});
    }
  }
  std::vector<uint32_t> waits;
  for (uint32_t i = 0; i < times; ++i) {
    std::vector<uint32_t> came;
    for (uint32_t rank = 0; rank < senders; ++rank) came.push_back(graph.receive(senders, rank, 500'000, i, waits));
    waits = {graph.calculate(senders, 20'000, came)};
    for (uint32_t rank = 0; rank < senders; ++rank) graph.send(senders, rank, 8, i, waits);
  }
  return graph.take();
}

TEST_CASE("learned phases: an incast that comes again is recalled as a whole") {
  const auto on = [] {
    SimulationConfig config = on_star(incasts(4, 60), 5);
    without_congestion_control(config);
    return config;
  };
  const Ran exact = run(on());
  const Ran learned = run(learning(on()));
  CHECK(std::abs(static_cast<double>(learned.last - exact.last)) < 0.01 * static_cast<double>(exact.last));
  CHECK(learned.report.recalled > 30);
  CHECK(learned.report.skipped_bytes > 0.5 * learned.report.bytes);
  CHECK(learned.hops * 2 < exact.hops);
}

TEST_CASE("learned phases: where somebody else sends, what is left is simulated from there on") {
  const auto columns = [] {
    GraphWriter graph(3);
    uint32_t last = graph.calculate(0, 1'000);
    for (uint32_t i = 0; i < 30; ++i) {
      graph.send(0, 2, 2'000'000, i, {last});
      last = graph.receive(0, 2, 8, i, {last});
    }
    // In the middle of the 21st, which alone takes 163 us.
    const uint32_t late = graph.calculate(1, 3'400'000);
    graph.send(1, 2, 2'000'000, 0, {late});
    for (uint32_t i = 0; i < 30; ++i) graph.send(2, 0, 8, i, {graph.receive(2, 0, 2'000'000, i)});
    graph.receive(2, 1, 2'000'000, 0);
    return graph.take();
  };
  const auto on = [&] {
    SimulationConfig config = on_star(columns(), 3);
    without_congestion_control(config);
    return config;
  };
  const Ran exact = run(on());
  const Ran learned = run(learning(on()));
  CHECK(learned.report.left == 1);
  CHECK(learned.report.left_bytes > 100'000);
  CHECK(learned.report.left_bytes < 2'000'000);
  CHECK(std::abs(static_cast<double>(learned.last - exact.last)) < 0.01 * static_cast<double>(exact.last));
}

TEST_CASE("learned phases: the same for any number of threads, and however a run is cut") {
  const auto on = [](uint32_t threads) { return learning(on_star(incasts(3, 20), 4, threads)); };
  const Ran whole = run(on(1));
  for (const uint32_t threads : {2u, 4u}) CHECK(run(on(threads)).ended == whole.ended);
  const Ran cut = run(on(1), 777);
  CHECK(cut.ended == whole.ended);
  CHECK(cut.hops == whole.hops);
}

TEST_CASE("learned phases: what phases do not say all of is simulated whole, and why is told") {
  const auto reason = [](auto change) {
    SimulationConfig config = learning(on_star(one_by_one(5), 2));
    change(config);
    const Ran ran = run(std::move(config));
    CHECK(ran.report.skipped == 0);
    return ran.report.reason;
  };
  CHECK(reason([](SimulationConfig& c) { c.links[0].impairment = ImpairmentParameters{}; }) == "links are impaired by chance");
  CHECK(reason([](SimulationConfig& c) {
          c.fast_forward->due = {kMillisecond, kEnd};
        }) == "something happens to the network during the run");
  CHECK(reason([](SimulationConfig& c) { c.taps.push_back({0, 0}); }) == "frames are traced");
  CHECK(reason([](SimulationConfig& c) { c.nics[0].parameters.verbs_queue_pairs = 1; }) ==
        "there are programs beside message graphs");
}

}  // namespace
}  // namespace weir::test
