#include "addon/samples.h"

#include <algorithm>

namespace weir {

void write_record(const Record& record, double* words) {
  words[0] = static_cast<double>(record.time);
  words[1] = static_cast<double>(record.kind);
  words[2] = record.device;
  words[3] = record.index;
  std::ranges::copy(record.values, words + 4);
}

Napi::Object distribution(Napi::Env env, const Histogram& histogram) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("mean", histogram.mean());
  out.Set("p50", static_cast<double>(histogram.percentile(0.5)));
  out.Set("p95", static_cast<double>(histogram.percentile(0.95)));
  out.Set("p99", static_cast<double>(histogram.percentile(0.99)));
  out.Set("max", static_cast<double>(histogram.max()));
  out.Set("weight", static_cast<double>(histogram.total()));
  Napi::Array cdf = Napi::Array::New(env);
  double seen = 0;
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    if (histogram.count_at(i) == 0) continue;
    seen += static_cast<double>(histogram.count_at(i));
    Napi::Array point = Napi::Array::New(env, 2);
    const uint64_t upper = i + 1 < Histogram::kBuckets ? Histogram::lower_bound(i + 1) - 1 : histogram.max();
    point.Set(0u, static_cast<double>(std::min(upper, histogram.max())));
    point.Set(1u, seen / static_cast<double>(histogram.total()));
    cdf.Set(cdf.Length(), point);
  }
  out.Set("cdf", cdf);
  return out;
}

}  // namespace weir
