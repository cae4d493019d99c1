// The distributions of a running worker, as a monitoring system wants them: counts below powers of two.
#pragma once

#include <napi.h>

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

// Of the loop, of the queues that carried anything, and of the NICs. Takes a few turns of the loop, of which none is long.
std::vector<HistogramCopy> copy_histograms(Worker& worker);

Napi::Value to_js(Napi::Env env, const std::vector<HistogramCopy>& copy);

}  // namespace weir
