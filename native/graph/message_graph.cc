#include "graph/message_graph.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

// What is exact in a double, and within all clocks.
constexpr double kMostSize = 1e15;

bool ascends(const Column<uint32_t>& column, size_t last) {
  return !column.empty() && column.front() == 0 && column.back() == last && std::ranges::is_sorted(column);
}

}  // namespace

MessageGraph::MessageGraph(MessageGraphColumns&& columns) : columns_(std::move(columns)) {
  check_columns();
  const uint32_t count = size();
  waits_.resize(count);
  first_successor_.resize(size_t{count} + 1);
  for (uint32_t i = 0; i < count; ++i) waits_[i] = columns_.first_dependency[i + 1] - columns_.first_dependency[i];
  for (const uint32_t dependency : columns_.dependencies) ++first_successor_[(dependency & ~kStartOnly) + 1];
  for (uint32_t i = 0; i < count; ++i) first_successor_[i + 1] += first_successor_[i];
  successors_.resize(columns_.dependencies.size());
  // Filled from behind, so that the successors of each end up in their order and its first in its place.
  for (uint32_t i = count; i-- > 0;) {
    for (uint32_t j = columns_.first_dependency[i + 1]; j-- > columns_.first_dependency[i];) {
      const uint32_t dependency = columns_.dependencies[j];
      successors_[--first_successor_[(dependency & ~kStartOnly) + 1]] = i | (dependency & kStartOnly);
    }
  }
  // Now each entry is the first of the operation before it.
  std::rotate(first_successor_.begin(), first_successor_.begin() + 1, first_successor_.end());
  first_successor_.back() = static_cast<uint32_t>(successors_.size());
  columns_.dependencies = {};
  columns_.first_dependency = {};
  takes_any_.resize(ranks());
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    for (uint32_t i = first(rank); i < first(rank + 1); ++i) {
      if (kind(i) == OperationKind::receive && (peer(i) == kAny || tag(i) == kAny)) takes_any_[rank] = true;
    }
  }
}

void MessageGraph::gather(HugePages& pages) const {
  pages.add(columns_.kind);
  pages.add(columns_.peer);
  pages.add(columns_.tag);
  pages.add(columns_.size);
  pages.add(columns_.processor);
  pages.add(first_successor_);
  pages.add(successors_);
}

void MessageGraph::check_columns() const {
  const size_t count = columns_.kind.size();
  const auto same = [&](const auto& column) { return column.size() == count; };
  require(columns_.first.size() >= 2 && ascends(columns_.first, count), "graph", "first does not count the operations of ranks");
  require(count < kStartOnly && same(columns_.peer) && same(columns_.tag) && same(columns_.size) && same(columns_.processor),
          "graph", "columns are of different lengths");
  require(columns_.first_dependency.size() == count + 1 && ascends(columns_.first_dependency, columns_.dependencies.size()),
          "graph", "first_dependency does not count the dependencies");
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    for (uint32_t i = first(rank); i < first(rank + 1); ++i) {
      require(columns_.kind[i] <= static_cast<uint8_t>(OperationKind::calculate), "graph", "an operation is of no kind");
      require(columns_.size[i] >= 0 && columns_.size[i] <= kMostSize, "graph", "a size is out of range");
      const bool any = kind(i) == OperationKind::receive && peer(i) == kAny;
      require(kind(i) == OperationKind::calculate || any || peer(i) < ranks(), "graph", "a peer is no rank");
      for (uint32_t j = columns_.first_dependency[i]; j < columns_.first_dependency[i + 1]; ++j) {
        const uint32_t dependency = columns_.dependencies[j] & ~kStartOnly;
        require(dependency >= first(rank) && dependency < first(rank + 1), "graph", "a dependency is of another rank");
      }
    }
  }
}

uint32_t MessageGraph::rank_of(uint32_t operation) const {
  const auto behind = std::ranges::upper_bound(columns_.first, operation);
  return static_cast<uint32_t>(behind - columns_.first.begin()) - 1;
}

}  // namespace weir
