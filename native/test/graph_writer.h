// Small message graphs for tests.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "graph/message_graph.h"

namespace weir::test {

// Operations come in the order of ranks.
class GraphWriter {
 public:
  explicit GraphWriter(uint32_t ranks) : ranks_(ranks) {}

  uint32_t send(uint32_t rank, uint32_t to, double bytes, uint32_t tag = 0, std::vector<uint32_t> after = {}) {
    return add(rank, OperationKind::send, to, tag, bytes, 0, std::move(after));
  }
  uint32_t receive(uint32_t rank, uint32_t from, double bytes, uint32_t tag = 0, std::vector<uint32_t> after = {}) {
    return add(rank, OperationKind::receive, from, tag, bytes, 0, std::move(after));
  }
  uint32_t calculate(uint32_t rank, double ns, std::vector<uint32_t> after = {}, uint8_t processor = 0) {
    return add(rank, OperationKind::calculate, 0, 0, ns, processor, std::move(after));
  }
  MessageGraphColumns take() {
    while (columns_.first.size() <= ranks_) columns_.first.push_back(static_cast<uint32_t>(columns_.kind.size()));
    columns_.first_dependency.push_back(static_cast<uint32_t>(columns_.dependencies.size()));
    return std::move(columns_);
  }

 private:
  uint32_t add(uint32_t rank, OperationKind kind, uint32_t peer, uint32_t tag, double size, uint8_t processor,
               std::vector<uint32_t> after) {
    const auto number = static_cast<uint32_t>(columns_.kind.size());
    while (columns_.first.size() <= rank) columns_.first.push_back(number);
    columns_.kind.push_back(static_cast<uint8_t>(kind));
    columns_.peer.push_back(peer);
    columns_.tag.push_back(tag);
    columns_.size.push_back(size);
    columns_.processor.push_back(processor);
    columns_.first_dependency.push_back(static_cast<uint32_t>(columns_.dependencies.size()));
    columns_.dependencies.insert(columns_.dependencies.end(), after.begin(), after.end());
    return number;
  }

  uint32_t ranks_;
  MessageGraphColumns columns_;
};

// An all-reduce by ring: each rank sends a share of `bytes` 2(n-1) times, each but the first when it has received one.
inline MessageGraphColumns ring(uint32_t ranks, double bytes) {
  GraphWriter graph(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    uint32_t received = 0;
    for (uint32_t step = 0; step < 2 * (ranks - 1); ++step) {
      graph.send(rank, (rank + 1) % ranks, bytes / ranks, 0, step == 0 ? std::vector<uint32_t>{} : std::vector{received});
      received = graph.receive(rank, (rank + ranks - 1) % ranks, bytes / ranks);
    }
  }
  return graph.take();
}

}  // namespace weir::test
