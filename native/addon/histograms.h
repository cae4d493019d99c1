// The distributions of a running worker, as a monitoring system wants them: counts below powers of two.
#pragma once

#include <string>
#include <vector>

#include "engine/counter_block.h"
#include "engine/worker.h"

namespace weir {

struct HistogramCopy {
  const char* name;
  CounterLabels labels;
  int first;                    // below[i]: how much lies below 2^(first + i)
  std::vector<uint64_t> below;  // counts, or ns
  uint64_t total;
  double sum;
};
void describe(auto& v, Of<HistogramCopy> auto& copy) {
  v.type("NativeHistogram", "A distribution of a running worker: of ns or bytes, counted once, or by the ns that they lasted.");
  v("name", copy.name, field::any("loop_gap, ecn_to_cnp, cnp_to_rate_change or queue_length."));
  v("labels", copy.labels, field::any("Whose it is."));
  v("first", copy.first, field::any("Of `below`."));
  v("below", copy.below, field::any("below[i]: how much lies below 2^(first + i)."));
  v("total", copy.total, field::any("How much there is."));
  v("sum", copy.sum, field::any("Of all values, each by its weight."));
}

// Of the loop, of the queues that carried anything, and of the NICs. Takes a few turns of the loop, of which none is long.
std::vector<HistogramCopy> copy_histograms(Worker& worker);

}  // namespace weir
