// Distributions as JavaScript sees them: see src/native/histogram.ts.
#pragma once

#include <napi.h>

#include <vector>

#include "base/histogram.h"
#include "engine/counter_block.h"
#include "engine/worker.h"

namespace weir {

struct HistogramCopy {
  const char* name;
  CounterLabels labels;
  Histogram histogram;
};

// Of the loop, of the queues that carried anything, and of the NICs. Takes a few turns of the loop, of which none is long.
std::vector<HistogramCopy> copy_histograms(Worker& worker);

Napi::Object to_js(Napi::Env env, const Histogram& histogram);
Napi::Value to_js(Napi::Env env, const std::vector<HistogramCopy>& copy);

}  // namespace weir
