#include "addon/histograms.h"

#include <utility>

namespace weir {
namespace {

constexpr std::pair<int, int> kDurations{8, 27};  // 256 ns to 134 ms
constexpr std::pair<int, int> kLengths{8, 24};    // 256 bytes to 16 MiB

// Copied in one turn at most, which takes some 20 us.
constexpr size_t kQueuesPerTurn = 16;

HistogramCopy copy(const char* name, CounterLabels labels, const Histogram& histogram, std::pair<int, int> powers) {
  HistogramCopy out{name, std::move(labels), powers.first, {}, histogram.total(), histogram.weighted_sum()};
  uint64_t below = 0;
  int bucket = 0;
  for (int power = powers.first; power <= powers.second; ++power) {
    for (; Histogram::lower_bound(bucket) < uint64_t{1} << power; ++bucket) below += histogram.count_at(bucket);
    out.below.push_back(below);
  }
  return out;
}

// From queue `next` on, which counts ports and their priorities; returns the first queue that is left for another turn.
size_t copy_queues(SwitchDevice& device, size_t next, std::vector<HistogramCopy>& out) {
  SoftSwitch& soft_switch = device.soft_switch();
  const SwitchDeviceConfig& config = device.config();
  const size_t most = out.size() + kQueuesPerTurn;
  for (; next < device.ports().size() * kPriorities && out.size() < most; ++next) {
    const auto port = static_cast<uint16_t>(next / kPriorities);
    const int p = static_cast<int>(next % kPriorities);
    if (!soft_switch.owns(port) || soft_switch.counters(port, p).queue_packets == 0) continue;
    CounterLabels labels{{"switch", config.name}, {"port", config.ports[port].name}, {"priority", std::to_string(p)}};
    out.push_back(copy("queue_length", std::move(labels), soft_switch.queue_distribution(port, p), kLengths));
  }
  return next;
}

}  // namespace

std::vector<HistogramCopy> copy_histograms(Worker& worker) {
  std::vector<HistogramCopy> out;
  worker.between_turns([&] {
    out.push_back(copy("loop_gap", {{"worker", worker.name()}}, worker.fidelity().loop_gap, kDurations));
    for (const auto& nic : worker.nics()) {
      const CounterLabels labels{{"device", nic->name()}};
      out.push_back(copy("ecn_to_cnp", labels, nic->latencies().ecn_to_cnp, kDurations));
      out.push_back(copy("cnp_to_rate_change", labels, nic->latencies().cnp_to_rate_change, kDurations));
    }
  });
  for (const auto& device : worker.switches()) {
    for (size_t next = 0; next < device->ports().size() * kPriorities;) {
      worker.between_turns([&] { next = copy_queues(*device, next, out); });
    }
  }
  return out;
}

}  // namespace weir
