#include "addon/histograms.h"

#include <utility>

namespace weir {
namespace {

// Copied in one turn at most, which takes some 20 us.
constexpr size_t kQueuesPerTurn = 16;

// Copies from queue `next` on, which counts ports and their priorities; returns the first queue that is left for another turn.
size_t copy_queues(SwitchDevice& device, size_t next, std::vector<NamedHistogram>& out) {
  SoftSwitch& soft_switch = device.soft_switch();
  const SwitchDeviceConfig& config = device.config();
  const size_t most = out.size() + kQueuesPerTurn;
  for (; next < soft_switch.port_count() * kPriorities && out.size() < most; ++next) {
    const auto port = static_cast<uint16_t>(next / kPriorities);
    const int p = static_cast<int>(next % kPriorities);
    if (!soft_switch.owns(port) || soft_switch.counters(port, p).queue_packets == 0) continue;
    CounterLabels labels{{"switch", config.name}, {"port", config.ports[port].name}, {"priority", std::to_string(p)}};
    out.push_back({HistogramName::queue_length, std::move(labels), soft_switch.statistics().distribution(port, p)});
  }
  return next;
}

}  // namespace

FilledBuckets::FilledBuckets(const Histogram& histogram)
    : total(histogram.total()), max(histogram.max()), sum(histogram.weighted_sum()) {
  int end = Histogram::kBuckets;
  while (end > 0 && histogram.count_at(end - 1) == 0) --end;
  while (first < end && histogram.count_at(first) == 0) ++first;
  for (int i = first; i < end; ++i) counts.push_back(static_cast<double>(histogram.count_at(i)));
}

std::vector<NamedHistogram> copy_histograms(Worker& worker) {
  std::vector<NamedHistogram> out;
  worker.between_turns([&] {
    out.push_back({HistogramName::loop_gap, {{"worker", worker.name()}}, worker.fidelity().loop_gap});
    for (const auto& nic : worker.nics()) {
      const CounterLabels labels{{"device", nic->name()}};
      out.push_back({HistogramName::ecn_to_cnp, labels, nic->latencies().ecn_to_cnp});
      out.push_back({HistogramName::cnp_to_rate_change, labels, nic->latencies().cnp_to_rate_change});
    }
  });
  for (const auto& device : worker.switches()) {
    const size_t queues = device->soft_switch().port_count() * kPriorities;
    out.reserve(out.size() + queues);  // allocates here, not while the loop stands still
    for (size_t next = 0; next < queues;) {
      worker.between_turns([&] { next = copy_queues(*device, next, out); });
    }
  }
  return out;
}

}  // namespace weir
