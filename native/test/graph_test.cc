// What message graphs mean: hosts that carry them out, and an ideal network between them.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include "base/native_error.h"
#include "base/random.h"
#include "graph/ideal_network.h"
#include "graph/matching.h"
#include "test/graph_writer.h"

namespace weir::test {
namespace {

constexpr Time kLatency = 1'000;
constexpr Rate kRate = 8'000'000'000;  // a byte takes 1 ns

Columns<IdealWay> all_ways(uint32_t ranks) {
  Columns<IdealWay> ways;
  for (uint32_t from = 0; from < ranks; ++from) {
    for (uint32_t to = 0; to < ranks; ++to) {
      if (from != to) ways.push_back({from, to, kLatency, kRate});
    }
  }
  return ways;
}

std::vector<uint32_t> each_alone(uint32_t ranks) {
  std::vector<uint32_t> hosts(ranks);
  std::iota(hosts.begin(), hosts.end(), 0u);
  return hosts;
}

IdealNetwork ideal(MessageGraphColumns graph, const GraphParameters& parameters = {}) {
  const auto ranks = static_cast<uint32_t>(graph.first.size() - 1);
  return IdealNetwork(std::move(graph), parameters, each_alone(ranks), all_ways(ranks));
}

TEST_CASE("graph: a ring all-reduce takes 2(n-1)(L + S/n G)") {
  for (const uint32_t ranks : {2u, 3u, 8u, 64u}) {
    const double bytes = 1e6 * ranks;
    IdealNetwork network = ideal(ring(ranks, bytes));
    REQUIRE(network.run(UINT64_MAX));
    CHECK(network.ended() == network.graph().size());
    CHECK(network.now() == 2 * (ranks - 1) * (kLatency + 1'000'000));
  }
}

TEST_CASE("graph: a calculation waits for what it requires to end, and for what it irequires to start") {
  GraphWriter graph(1);
  const uint32_t a = graph.calculate(0, 100);
  const uint32_t b = graph.calculate(0, 10, {a}, 1);
  const uint32_t c = graph.calculate(0, 10, {a | MessageGraph::kStartOnly}, 2);
  IdealNetwork network = ideal(graph.take());
  REQUIRE(network.run(UINT64_MAX));
  CHECK(network.state().started[b] == 100);
  CHECK(network.state().started[c] == 0);
  CHECK(network.now() == 110);
}

TEST_CASE("graph: calculations of one processor follow each other, and sends wait for it") {
  GraphWriter graph(2);
  const uint32_t first = graph.calculate(0, 100), second = graph.calculate(0, 50), other = graph.calculate(0, 30, {}, 1);
  const uint32_t send = graph.send(0, 1, 8);
  const uint32_t receive = graph.receive(1, 0, 8);
  IdealNetwork network = ideal(graph.take());
  REQUIRE(network.run(UINT64_MAX));
  const GraphState& state = network.state();
  CHECK(state.ended[first] == 100);
  CHECK(state.started[second] == 100);
  CHECK(state.ended[second] == 150);
  CHECK(state.ended[other] == 30);
  CHECK(state.started[send] == 150);
  CHECK(state.ended[receive] == 150 + kLatency + 8);
}

TEST_CASE("graph: short sends end when they start, long ones when they are acknowledged") {
  GraphWriter graph(2);
  const uint32_t eager = graph.send(0, 1, 1'000), longer = graph.send(0, 1, 1'001, 1);
  graph.receive(1, 0, 1'000);
  graph.receive(1, 0, 1'001, 1);
  IdealNetwork network = ideal(graph.take(), {.eager = 1'000});
  REQUIRE(network.run(UINT64_MAX));
  CHECK(network.state().ended[eager] == 0);
  CHECK(network.state().ended[longer] == kLatency + 1'001);
}

TEST_CASE("graph: by rendezvous a message moves when its receive is there") {
  GraphWriter graph(2);
  const uint32_t send = graph.send(0, 1, 5'000);
  const uint32_t busy = graph.calculate(1, 10'000);
  const uint32_t receive = graph.receive(1, 0, 5'000, 0, {busy});
  IdealNetwork network = ideal(graph.take(), {.eager = 0, .rendezvous = 4'000});
  REQUIRE(network.run(UINT64_MAX));
  // The question is there before the receive; then the answer and the message go.
  CHECK(network.state().ended[receive] == 10'000 + kLatency + kLatency + 5'000);
  CHECK(network.state().ended[send] == network.state().ended[receive]);
  CHECK(network.ended() == 3);
}

TEST_CASE("graph: ranks of one host reach each other by its inside, one message after another") {
  GraphWriter graph(3);
  graph.send(0, 1, 1'000);
  graph.send(0, 2, 1'000);
  const uint32_t first = graph.receive(1, 0, 1'000);
  const uint32_t second = graph.receive(2, 0, 1'000);
  IdealNetwork network(graph.take(), {.inside_rate = 2 * kRate, .inside_latency = 50}, {0, 0, 0}, {});
  REQUIRE(network.run(UINT64_MAX));
  CHECK(network.state().ended[first] == 550);
  CHECK(network.state().ended[second] == 1'050);
}

TEST_CASE("graph: what nobody sends is waited for without an end, and that shows") {
  GraphWriter graph(2);
  graph.send(0, 1, 8, 1);
  const uint32_t receive = graph.receive(1, 0, 8, 2);
  IdealNetwork network = ideal(graph.take());
  CHECK(network.run(UINT64_MAX));
  CHECK(network.ended() == 1);
  CHECK(network.state().ended[receive] == kNever);
}

TEST_CASE("graph: a chain of a million joints takes no time and no stack") {
  GraphWriter graph(1);
  uint32_t last = graph.calculate(0, 7);
  for (int i = 0; i < 1'000'000; ++i) last = graph.calculate(0, 0, {last});
  IdealNetwork network = ideal(graph.take());
  REQUIRE(network.run(UINT64_MAX));
  CHECK(network.now() == 7);
  CHECK(network.state().ended[last] == 7);
}

TEST_CASE("graph: words from the network that are for nobody here change nothing") {
  GraphWriter writer(3);
  const uint32_t send = writer.send(0, 1, 8), longer = writer.send(0, 1, 5'000);
  const uint32_t receive = writer.receive(1, 0, 8);
  const uint32_t calculation = writer.calculate(2, 0);
  const MessageGraph graph(writer.take());
  GraphState state(graph);
  const GraphParameters parameters{.eager = 0, .rendezvous = 1'000};
  const std::vector<uint32_t> hosts = each_alone(3);
  GraphHost host(graph, state, parameters, hosts, 2);
  for (const uint32_t word : {send, longer, receive, calculation, 77u, GraphHost::kAsks, GraphHost::kAsks | longer, ~0u}) {
    host.arrived(5, word);
  }
  CHECK(host.ended() == 0);
  CHECK(host.outgoing().empty());
  // A message that has not asked is for the host, but nobody has said that its receive is there.
  GraphHost peer(graph, state, parameters, hosts, 1);
  peer.arrived(5, longer);
  CHECK(peer.ended() == 0);
}

TEST_CASE("graph: columns that are none of a graph are refused") {
  const auto refused = [](auto change) {
    GraphWriter writer(2);
    const uint32_t first = writer.send(0, 1, 8);
    writer.send(0, 1, 8, 0, {first});
    writer.receive(1, 0, 8);
    MessageGraphColumns columns = writer.take();
    change(columns);
    CHECK_THROWS_AS(MessageGraph(std::move(columns)), NativeError);
  };
  refused([](MessageGraphColumns& c) { c.first.clear(); });
  refused([](MessageGraphColumns& c) { c.first[1] = 4; });
  refused([](MessageGraphColumns& c) { c.peer.pop_back(); });
  refused([](MessageGraphColumns& c) { c.peer[0] = 2; });
  refused([](MessageGraphColumns& c) { c.kind[0] = 3; });
  refused([](MessageGraphColumns& c) { c.size[0] = -1; });
  refused([](MessageGraphColumns& c) { c.size[0] = 1e300; });
  refused([](MessageGraphColumns& c) { c.dependencies[0] = 2; });
  refused([](MessageGraphColumns& c) { c.dependencies[0] = MessageGraph::kStartOnly | 7; });
  refused([](MessageGraphColumns& c) { c.first_dependency.back() = 9; });
}

// The order of MPI in its plainest form: two lists.
class Lists {
 public:
  explicit Lists(const MessageGraph& graph) : graph_(graph) {}
  uint32_t arrive(uint32_t source, uint32_t message) {
    const auto found = std::ranges::find_if(receives_, [&](uint32_t one) { return fits(one, source, message); });
    if (found == receives_.end()) return messages_.push_back({source, message}), Matching::kNone;
    const uint32_t receive = *found;
    receives_.erase(found);
    return receive;
  }
  uint32_t post(uint32_t receive) {
    const auto found = std::ranges::find_if(messages_, [&](const auto& one) { return fits(receive, one.first, one.second); });
    if (found == messages_.end()) return receives_.push_back(receive), Matching::kNone;
    const uint32_t message = found->second;
    messages_.erase(found);
    return message;
  }

 private:
  bool fits(uint32_t receive, uint32_t source, uint32_t message) const {
    return (graph_.peer(receive) == MessageGraph::kAny || graph_.peer(receive) == source) &&
           (graph_.tag(receive) == MessageGraph::kAny || graph_.tag(receive) == graph_.tag(message));
  }
  const MessageGraph& graph_;
  std::deque<uint32_t> receives_;
  std::deque<std::pair<uint32_t, uint32_t>> messages_;
};

TEST_CASE("graph: receives take messages as two lists would have them") {
  for (const uint32_t any : {0u, 5u}) {
    Random random(17, any);
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random.next() % limit); };
    constexpr uint32_t kSources = 6, kEach = 400;
    GraphWriter writer(kSources + 1);
    for (uint32_t i = 0; i < kSources * kEach; ++i) {
      const bool from_any = any > 0 && below(any) == 0, with_any = any > 0 && below(any) == 0;
      writer.receive(0, from_any ? MessageGraph::kAny : 1 + below(kSources), 8, with_any ? MessageGraph::kAny : below(50));
    }
    for (uint32_t source = 1; source <= kSources; ++source) {
      for (uint32_t i = 0; i < kEach; ++i) writer.send(source, 0, 8, below(50));
    }
    const MessageGraph graph(writer.take());
    std::vector<uint32_t> links(graph.size());
    Matching matching(graph, links);
    Lists lists(graph);
    uint32_t receive = 0, left = kSources * kEach;
    std::vector<uint32_t> next;
    for (uint32_t source = 1; source <= kSources; ++source) next.push_back(graph.first(source));
    while (receive < graph.first(1) || left > 0) {
      if (receive < graph.first(1) && below(2) == 0) {
        const uint32_t expected = lists.post(receive);
        REQUIRE(matching.post(0, receive) == expected);
        ++receive;
        continue;
      }
      const uint32_t source = below(kSources);
      if (next[source] == graph.first(source + 2)) continue;
      const uint32_t message = next[source]++;
      const uint32_t expected = lists.arrive(source + 1, message);
      REQUIRE(matching.arrive(0, source + 1, message) == expected);
      --left;
    }
  }
}

}  // namespace
}  // namespace weir::test
