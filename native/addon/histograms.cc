#include "addon/histograms.h"

#include <utility>

namespace weir {
namespace {

constexpr std::pair<int, int> kDurations{8, 27};  // 256 ns to 134 ms
constexpr std::pair<int, int> kLengths{8, 24};    // 256 bytes to 16 MiB

HistogramCopy copy(const char* name, CounterLabels labels, const Histogram& histogram, std::pair<int, int> powers) {
  HistogramCopy out{name, std::move(labels), powers.first, {}, histogram.total(), histogram.weighted_sum()};
  uint64_t below = 0;
  int power = powers.first;
  for (int i = 0; power <= powers.second; ++i) {
    for (; power <= powers.second && Histogram::lower_bound(i) == uint64_t{1} << power; ++power) out.below.push_back(below);
    below += histogram.count_at(i);
  }
  return out;
}

void copy_port(SwitchDevice& device, uint16_t port, std::vector<HistogramCopy>& out) {
  SoftSwitch& soft_switch = device.soft_switch();
  if (!soft_switch.owns(port)) return;
  for (int p = 0; p < kPriorities; ++p) {
    if (soft_switch.counters(port, p).queue_packets == 0) continue;
    const SwitchDeviceConfig& config = device.config();
    CounterLabels labels{{"switch", config.name}, {"port", config.ports[port].name}, {"priority", std::to_string(p)}};
    out.push_back(copy("queue_length", std::move(labels), soft_switch.queue_distribution(port, p), kLengths));
  }
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
    for (uint16_t port = 0; port < device->ports().size(); ++port) {
      worker.between_turns([&] { copy_port(*device, port, out); });
    }
  }
  return out;
}

Napi::Value to_js(Napi::Env env, const std::vector<HistogramCopy>& copy) {
  Napi::Array out = Napi::Array::New(env, copy.size());
  for (uint32_t i = 0; i < copy.size(); ++i) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("name", copy[i].name);
    Napi::Object labels = Napi::Object::New(env);
    for (const auto& [key, value] : copy[i].labels) labels.Set(key, value);
    object.Set("labels", labels);
    object.Set("first", copy[i].first);
    Napi::Array below = Napi::Array::New(env, copy[i].below.size());
    for (uint32_t j = 0; j < copy[i].below.size(); ++j) below.Set(j, static_cast<double>(copy[i].below[j]));
    object.Set("below", below);
    object.Set("total", static_cast<double>(copy[i].total));
    object.Set("sum", copy[i].sum);
    out.Set(i, object);
  }
  return out;
}

}  // namespace weir
