// Distributions as JavaScript sees them: see src/native/histogram.ts.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/histogram.h"
#include "engine/counter_block.h"
#include "engine/worker.h"

namespace weir {

// The buckets from the first that holds anything to the last.
struct FilledBuckets {
  explicit FilledBuckets(const Histogram& histogram = {});
  int first = 0;
  Column<double> counts;
  uint64_t total = 0, max = 0;
  double sum = 0;
};
void describe(auto& v, Of<FilledBuckets> auto& h) {
  v.type("NativeHistogram", "Of ns or bytes, counted once, or by the ns that they lasted.");
  v("first", h.first, field::any("The bucket of the first of `counts`."));
  v("counts", h.counts, field::any("What fell into each bucket."));
  v("total", h.total, field::any("How much there is."));
  v("max", h.max, field::any("Exact."));
  v("sum", h.sum, field::any("Of all values, each by its weight: exact."));
}

enum class HistogramName : uint8_t { loop_gap, ecn_to_cnp, cnp_to_rate_change, queue_length };
constexpr auto words_of(HistogramName) { return std::array{"loop_gap", "ecn_to_cnp", "cnp_to_rate_change", "queue_length"}; }

struct NamedHistogram {
  HistogramName name{};
  CounterLabels labels;
  Histogram histogram;
};
void describe(auto& v, Of<NamedHistogram> auto& named) {
  v.type("NamedHistogram", "A distribution of a running worker.");
  v("name", named.name, field::any("Of what."));
  v("labels", named.labels, field::any("Whose it is."));
  v.base(FilledBuckets(named.histogram));
}

// Lengths of an egress queue, over time. `Device`, `Port`: its name or number.
template <class Device, class Port>
struct QueueHistogram : FilledBuckets {
  QueueHistogram() = default;
  QueueHistogram(const Histogram& lengths, Device device_, Port port_, int priority_)
      : FilledBuckets(lengths), device(std::move(device_)), port(std::move(port_)), priority(priority_) {}
  Device device{};
  Port port{};
  int priority = 0;
};
using NamedQueue = QueueHistogram<std::string, std::string>;
using NumberedQueue = QueueHistogram<uint32_t, uint16_t>;
template <class P>
  requires Of<P, NamedQueue> || Of<P, NumberedQueue>
void describe(auto& v, P& queue) {
  v.type(Of<P, NamedQueue> ? "NamedQueueHistogram" : "QueueHistogram", "Lengths of an egress queue over time, bytes by ns.");
  v.base(static_cast<const FilledBuckets&>(queue));
  v("switch", queue.device, field::any("Its device."));
  v("port", queue.port, field::any("Of that."));
  v("priority", queue.priority, field::any("Of that."));
}

// Copies those of the loop, of the queues that carried anything, and of the NICs. Takes a few short turns of the loop.
std::vector<NamedHistogram> copy_histograms(Worker& worker);

}  // namespace weir
