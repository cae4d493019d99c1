// Message graphs on fair shares of links: closed forms, and the ideal network where nothing is shared.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"
#include "graph/fair_network.h"
#include "graph/ideal_network.h"
#include "test/graph_writer.h"

namespace weir::test {
namespace {

constexpr Time kDelay = 500;         // of a link; a way has two
constexpr double kByteEachNs = 8e9;  // bit/s

std::vector<uint32_t> alone(uint32_t ranks) {
  std::vector<uint32_t> machines(ranks);
  std::iota(machines.begin(), machines.end(), 0u);
  return machines;
}

// One switch: link 2r leads from rank r to it, 2r + 1 back. A link more, if it has a rate, is between both halves of the ranks.
class Star {
 public:
  Star(uint32_t ranks, double rate, double between = 0) : rates_(size_t{2} * ranks, rate) {
    hops_.reserve(size_t{ranks} * ranks * 3);
    if (between > 0) rates_.push_back(between);
    for (uint32_t from = 0; from < ranks; ++from) {
      for (uint32_t to = 0; to < ranks; ++to) {
        const size_t first = hops_.size();
        hops_.push_back({2 * from, 1});
        if (between > 0 && (from < ranks / 2) != (to < ranks / 2)) hops_.push_back({2 * ranks, 1});
        hops_.push_back({2 * to + 1, 1});
        if (from != to) ways_.push_back({from, to, 2 * kDelay, std::span(hops_).subspan(first)});
      }
    }
  }
  FairNetwork run(MessageGraphColumns graph, const std::vector<double>& begins = {}) const {
    const auto ranks = static_cast<uint32_t>(graph.first.size() - 1);
    return FairNetwork(std::move(graph), {.eager = 0}, alone(ranks), begins, rates_, ways_);
  }

 private:
  std::vector<double> rates_;
  std::vector<FairHop> hops_;
  std::vector<FairNetwork::Way> ways_;
};

TEST_CASE("fair network: n messages to one receiver share its link, and all end when it has carried all") {
  constexpr uint32_t kSenders = 5;
  GraphWriter graph(kSenders + 1);
  for (uint32_t from = 1; from <= kSenders; ++from) graph.receive(0, from, 1e6);
  for (uint32_t from = 1; from <= kSenders; ++from) graph.send(from, 0, 1e6);
  FairNetwork network = Star(kSenders + 1, kByteEachNs).run(graph.take());
  REQUIRE(network.run(UINT64_MAX));
  for (uint32_t i = 0; i < kSenders; ++i) CHECK(network.state().ended[i] == kSenders * 1'000'000 + 2 * kDelay);
  CHECK(network.carried()[1] == kSenders * 1e6);
  CHECK(network.carried()[2] == 1e6);
}

TEST_CASE("fair network: whoever has less to send ends first, and leaves its share to others") {
  GraphWriter graph(3);
  const uint32_t small = graph.receive(0, 1, 1e6), large = graph.receive(0, 2, 3e6);
  graph.send(1, 0, 1e6);
  graph.send(2, 0, 3e6);
  FairNetwork network = Star(3, kByteEachNs).run(graph.take());
  REQUIRE(network.run(UINT64_MAX));
  // At a half until the first has gone, and alone then: 4 MB in 4 ms in all.
  CHECK(network.state().ended[small] == 2'000'000 + 2 * kDelay);
  CHECK(network.state().ended[large] == 4'000'000 + 2 * kDelay);
}

TEST_CASE("fair network: one that begins later takes its share from then on") {
  GraphWriter graph(3);
  const uint32_t early = graph.receive(0, 1, 3e6), late = graph.receive(0, 2, 1e6);
  graph.send(1, 0, 3e6);
  graph.send(2, 0, 1e6);
  FairNetwork network = Star(3, kByteEachNs).run(graph.take(), {0, 0, 1e6});
  REQUIRE(network.run(UINT64_MAX));
  CHECK(network.state().ended[late] == 3'000'000 + 2 * kDelay);
  CHECK(network.state().ended[early] == 4'000'000 + 2 * kDelay);
}

TEST_CASE("fair network: messages of one rank to another follow each other, those of no bytes, too") {
  GraphWriter graph(2);
  std::vector<uint32_t> received;
  for (const double bytes : {1e6, 0.0, 2e6}) received.push_back(graph.receive(0, 1, bytes));
  for (const double bytes : {1e6, 0.0, 2e6}) graph.send(1, 0, bytes);
  FairNetwork network = Star(2, kByteEachNs).run(graph.take());
  REQUIRE(network.run(UINT64_MAX));
  CHECK(network.state().ended[received[0]] == 1'000'000 + 2 * kDelay);
  CHECK(network.state().ended[received[1]] == 1'000'000 + 2 * kDelay);
  CHECK(network.state().ended[received[2]] == 3'000'000 + 2 * kDelay);
}

// Two rings of ranks that are on both sides of a link which has room for the half of what crosses it.
TEST_CASE("fair network: two rings that share a link take twice as long as one of them alone") {
  const auto rings = [](uint32_t count) {
    // Ranks 0 and 1, and in the other half 2 and 3: one ring of 0 and 2, another of 1 and 3.
    GraphWriter graph(4);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      if (rank % 2 >= count) continue;
      uint32_t received = 0;
      for (uint32_t step = 0; step < 2; ++step) {
        graph.send(rank, (rank + 2) % 4, 1e6, 0, step == 0 ? std::vector<uint32_t>{} : std::vector{received});
        received = graph.receive(rank, (rank + 2) % 4, 1e6);
      }
    }
    return graph.take();
  };
  // Both directions of a ring cross the one link, which carries both at half of its rate.
  const Star star(4, kByteEachNs, kByteEachNs);
  FairNetwork one = star.run(rings(1)), both = star.run(rings(2));
  REQUIRE(one.run(UINT64_MAX));
  REQUIRE(both.run(UINT64_MAX));
  CHECK(one.now() == 2 * (2'000'000 + 2 * kDelay));
  CHECK(both.now() == 2 * (4'000'000 + 2 * kDelay));
}

TEST_CASE("fair network: a ring all-reduce, in which nothing is shared, takes what it takes on the ideal network") {
  for (const uint32_t ranks : {2u, 3u, 8u, 33u}) {
    Columns<IdealWay> ways;
    for (uint32_t from = 0; from < ranks; ++from) ways.push_back({from, (from + 1) % ranks, 2 * kDelay, 7'000'000'000});
    IdealNetwork ideal(ring(ranks, 1e6), {.eager = 0}, alone(ranks), ways);
    FairNetwork fair = Star(ranks, 7e9).run(ring(ranks, 1e6));
    REQUIRE(ideal.run(UINT64_MAX));
    REQUIRE(fair.run(UINT64_MAX));
    CHECK(fair.state().started == ideal.state().started);
    CHECK(fair.state().ended == ideal.state().ended);
  }
}

TEST_CASE(
    "fair network: an all-to-all takes as long as the link of a NIC, however it is cut into calls, and the same each time") {
  constexpr uint32_t kRanks = 12;
  const auto graph = [] {
    GraphWriter writer(kRanks);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      for (uint32_t other = 0; other < kRanks; ++other) {
        if (other == rank) continue;
        writer.receive(rank, other, 1e5);
        writer.send(rank, other, 1e5);
      }
    }
    return writer.take();
  };
  const Star star(kRanks, kByteEachNs);
  FairNetwork whole = star.run(graph()), cut = star.run(graph());
  REQUIRE(whole.run(UINT64_MAX));
  while (!cut.run(3)) {
  }
  CHECK(whole.now() >= (kRanks - 1) * 100'000 + 2 * kDelay);
  CHECK(whole.now() <= (kRanks - 1) * 100'000 + 2 * kDelay + 1);
  CHECK(cut.state().ended == whole.state().ended);
}

// What a link carries while any of its messages are under way cannot be more than its rate allows.
TEST_CASE("fair network: of random messages no link carries more than it could in the time") {
  Random random(3, 1, 1);
  constexpr uint32_t kRanks = 9;
  for (int i = 0; i < 20; ++i) {
    GraphWriter writer(kRanks);
    std::vector<std::pair<uint32_t, double>> into[kRanks], out[kRanks];
    double bytes_in[kRanks] = {}, bytes_out[kRanks] = {};
    for (int n = 0; n < 60; ++n) {
      const auto from = static_cast<uint32_t>(random.next() % kRanks), to = static_cast<uint32_t>(random.next() % kRanks);
      const double bytes = static_cast<double>(1 + random.next() % 1'000'000);
      if (from == to) continue;
      out[from].emplace_back(to, bytes);
      into[to].emplace_back(from, bytes);
      bytes_out[from] += bytes;
      bytes_in[to] += bytes;
    }
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      for (const auto& [to, bytes] : out[rank]) writer.send(rank, to, bytes);
      for (const auto& [from, bytes] : into[rank]) writer.receive(rank, from, bytes);
    }
    FairNetwork network = Star(kRanks, kByteEachNs, 2 * kByteEachNs).run(writer.take());
    REQUIRE(network.run(UINT64_MAX));
    CHECK(network.ended() == network.graph().size());
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      CHECK(network.carried()[2 * rank] == bytes_out[rank]);
      CHECK(network.carried()[2 * rank + 1] == bytes_in[rank]);
    }
    // A ns is lost for each message, whose end is rounded down.
    const size_t between = network.carried().size() - 1;
    for (size_t link = 0; link <= between; ++link) {
      const double takes = network.carried()[link] / (link == between ? 2 : 1);
      CHECK(takes + 2 * kDelay <= static_cast<double>(network.now()) + 60);
    }
  }
}

}  // namespace
}  // namespace weir::test
