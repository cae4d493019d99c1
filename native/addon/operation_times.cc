#include "addon/operation_times.h"

#include <vector>

namespace weir {

OperationTimes times_of(const GraphState& state) {
  const auto column = [](const std::vector<Time>& times) {
    Column<double> out;
    out.reserve(times.size());
    for (const Time time : times) out.push_back(time == kNever ? -1 : static_cast<double>(time));
    return out;
  };
  return {column(state.started), column(state.ended), {state.links.begin(), state.links.end()}};
}

}  // namespace weir
