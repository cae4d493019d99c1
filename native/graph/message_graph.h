// Operations of ranks, and what each waits for: what clusters and MPI programs do as data. The meaning is that of GOAL (Hoefler,
// Siebert, Lumsdaine: "Group Operation Assembly Language", ICPP 2009): an operation starts when all that it requires has ended
// and all that it irequires has started. TypeScript reads the files (src/scenario/graphs/).
#pragma once

#include <cstdint>
#include <vector>

#include "base/describe.h"
#include "base/huge_pages.h"
#include "base/types.h"

namespace weir {

enum class OperationKind : uint8_t { send, receive, calculate };

struct MessageGraphColumns {
  Column<uint32_t> first;
  Column<uint8_t> kind;
  Column<uint32_t> peer, tag;
  Column<double> size;
  Column<uint8_t> processor;
  Column<uint32_t> first_dependency, dependencies;
};
void describe(auto& v, Of<MessageGraphColumns> auto& graph) {
  v.type("NativeMessageGraph", "A column for each field of operations; those of a rank stand together.");
  v("first", graph.first, field::any("First operation of each rank, and behind them the number of all."));
  v("kind", graph.kind, field::any("0 send, 1 receive, 2 calculation."));
  v("peer", graph.peer, field::any("The other rank; 0xffffffff: any."));
  v("tag", graph.tag, field::any("Of a message; 0xffffffff: any."));
  v("size", graph.size, field::any("Bytes of a message; ns of a calculation."));
  v("processor", graph.processor, field::any("Which of the rank's calculates."));
  v("first_dependency", graph.first_dependency,
    field::any("First of what each operation waits for, and behind them the number of all."));
  v("dependencies", graph.dependencies, field::any("Operations of the same rank; bit 31: they need only have started."));
}

class MessageGraph {
 public:
  static constexpr uint32_t kAny = UINT32_MAX;
  // Set in dependencies and successors: what is awaited is the start.
  static constexpr uint32_t kStartOnly = 1u << 31;

  // Throws NativeError INVALID_CONFIG unless all numbers are those of operations and ranks that there are.
  explicit MessageGraph(MessageGraphColumns&& columns);

  uint32_t ranks() const { return static_cast<uint32_t>(columns_.first.size() - 1); }
  uint32_t size() const { return static_cast<uint32_t>(columns_.kind.size()); }
  uint32_t first(uint32_t rank) const { return columns_.first[rank]; }
  uint32_t rank_of(uint32_t operation) const;
  OperationKind kind(uint32_t operation) const { return static_cast<OperationKind>(columns_.kind[operation]); }
  uint32_t peer(uint32_t operation) const { return columns_.peer[operation]; }
  uint32_t tag(uint32_t operation) const { return columns_.tag[operation]; }
  uint64_t bytes(uint32_t operation) const { return static_cast<uint64_t>(columns_.size[operation]); }
  Time duration(uint32_t operation) const { return static_cast<Time>(columns_.size[operation]); }
  uint8_t processor(uint32_t operation) const { return columns_.processor[operation]; }
  // How many operations it waits for.
  uint32_t waits(uint32_t operation) const { return waits_[operation]; }
  // Calls each(successor, start_only) for all that wait for an operation.
  template <class Each>
  void successors(uint32_t operation, Each each) const {
    for (uint32_t i = first_successor_[operation]; i < first_successor_[operation + 1]; ++i) {
      each(successors_[i] & ~kStartOnly, (successors_[i] & kStartOnly) != 0);
    }
  }
  // Adds what is looked at while it is carried out.
  void gather(HugePages& pages) const;
  // Whether the rank receives from whoever sends, or whatever the tag is.
  bool takes_any(uint32_t rank) const { return takes_any_[rank]; }

 private:
  void check_columns() const;

  MessageGraphColumns columns_;
  std::vector<uint32_t> waits_;
  std::vector<uint32_t> first_successor_;
  std::vector<uint32_t> successors_;
  std::vector<bool> takes_any_;
};

}  // namespace weir
