// Times of a message graph's operations, as JavaScript is told them.
#pragma once

#include "base/describe.h"
#include "graph/graph_host.h"

namespace weir {

// When each operation started and ended.
struct OperationTimes {
  Column<double> started, ended;
  Column<uint32_t> taken;
};
void describe(auto& v, Of<OperationTimes> auto& times) {
  v.type("OperationTimes", "By operation of a graph.");
  v("started", times.started, field::any("-1: not yet.", "ns"));
  v("ended", times.ended, field::any("-1: not yet.", "ns"));
  v("taken", times.taken, field::any("Of a receive that has ended: the send whose message it took."));
}
OperationTimes times_of(const GraphState& state);

}  // namespace weir
