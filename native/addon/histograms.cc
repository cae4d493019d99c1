#include "addon/histograms.h"

#include <utility>

namespace weir {
namespace {

// Copied in one turn at most, which takes some 20 us.
constexpr size_t kQueuesPerTurn = 16;

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
    out.push_back({"queue_length", std::move(labels), soft_switch.queue_distribution(port, p)});
  }
  return next;
}

}  // namespace

std::vector<HistogramCopy> copy_histograms(Worker& worker) {
  std::vector<HistogramCopy> out;
  worker.between_turns([&] {
    out.push_back({"loop_gap", {{"worker", worker.name()}}, worker.fidelity().loop_gap});
    for (const auto& nic : worker.nics()) {
      const CounterLabels labels{{"device", nic->name()}};
      out.push_back({"ecn_to_cnp", labels, nic->latencies().ecn_to_cnp});
      out.push_back({"cnp_to_rate_change", labels, nic->latencies().cnp_to_rate_change});
    }
  });
  for (const auto& device : worker.switches()) {
    out.reserve(out.size() + device->ports().size() * kPriorities);  // not while the loop stands still
    for (size_t next = 0; next < device->ports().size() * kPriorities;) {
      worker.between_turns([&] { next = copy_queues(*device, next, out); });
    }
  }
  return out;
}

Napi::Object to_js(Napi::Env env, const Histogram& histogram) {
  int first = 0, end = Histogram::kBuckets;
  while (end > 0 && histogram.count_at(end - 1) == 0) --end;
  while (first < end && histogram.count_at(first) == 0) ++first;
  Napi::Float64Array counts = Napi::Float64Array::New(env, static_cast<size_t>(end - first));
  for (int i = first; i < end; ++i) counts[static_cast<size_t>(i - first)] = static_cast<double>(histogram.count_at(i));
  Napi::Object out = Napi::Object::New(env);
  out.Set("first", first);
  out.Set("counts", counts);
  out.Set("total", static_cast<double>(histogram.total()));
  out.Set("max", static_cast<double>(histogram.max()));
  out.Set("sum", histogram.weighted_sum());
  return out;
}

Napi::Value to_js(Napi::Env env, const std::vector<HistogramCopy>& copy) {
  Napi::Array out = Napi::Array::New(env, copy.size());
  for (uint32_t i = 0; i < copy.size(); ++i) {
    Napi::Object object = to_js(env, copy[i].histogram);
    object.Set("name", copy[i].name);
    Napi::Object labels = Napi::Object::New(env);
    for (const auto& [key, value] : copy[i].labels) labels.Set(key, value);
    object.Set("labels", labels);
    out.Set(i, object);
  }
  return out;
}

}  // namespace weir
