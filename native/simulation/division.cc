#include "simulation/division.h"

#include <algorithm>
#include <numeric>

namespace weir {
namespace {

// More make the work more even; each costs a look at all others in each window.
constexpr uint32_t kPerThread = 8;
constexpr uint32_t kMostPartitions = 128;

// Devices such that neighbours are near each other: each switch and its hosts, then switches without hosts.
std::vector<uint32_t> near_order(const SimulationConfig& config) {
  const auto switches = static_cast<uint32_t>(config.switches.size());
  const auto devices = static_cast<uint32_t>(switches + config.nics.size());
  std::vector<std::vector<uint32_t>> hosts(devices);
  for (const SimulatedLink& link : config.links) {
    const uint32_t a = link.ends[0].device, b = link.ends[1].device;
    if (a < switches && b >= switches) hosts[a].push_back(b);
    if (b < switches && a >= switches) hosts[b].push_back(a);
  }
  std::vector<uint32_t> order;
  for (uint32_t device = 0; device < switches; ++device) {
    if (hosts[device].empty()) continue;
    order.push_back(device);
    order.insert(order.end(), hosts[device].begin(), hosts[device].end());
  }
  std::vector<bool> listed(devices);
  for (const uint32_t device : order) listed[device] = true;
  for (uint32_t device = 0; device < devices; ++device) {
    if (!listed[device]) order.push_back(device);
  }
  return order;
}

}  // namespace

uint32_t partitions_for(uint32_t threads) {
  return threads == 1 ? 1 : std::max(threads, std::min(kPerThread * threads, kMostPartitions));
}

std::vector<uint32_t> divide(const SimulationConfig& config, uint32_t partitions) {
  const size_t switches = config.switches.size();
  std::vector<double> weights;
  for (const SimulatedSwitch& s : config.switches) {
    double& weight = weights.emplace_back(1);
    for (const SwitchParameters::Port& port : s.parameters.ports) weight += static_cast<double>(port.rate);
  }
  for (const SimulatedNic& nic : config.nics) weights.push_back(1 + static_cast<double>(nic.parameters.rate));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint32_t> division(switches + config.nics.size());
  double before = 0;
  uint32_t number = 0, piece = 0;
  bool first = true;
  for (const uint32_t device : near_order(config)) {
    // By where its middle lies.
    const auto here = std::min(partitions - 1, static_cast<uint32_t>((before + weights[device] / 2) * partitions / total));
    if (here != piece && !first) ++number;
    piece = here;
    first = false;
    division[device] = number;
    before += weights[device];
  }
  return division;
}

Shares::Shares(uint32_t partitions, uint32_t threads) : shares_(threads) {
  for (uint32_t i = 0; i < partitions; ++i) shares_[static_cast<uint64_t>(i) * threads / partitions].partitions.push_back(i);
}

void Shares::balance(std::vector<uint64_t>& loads) {
  // Below, what is taken from others evens it out.
  constexpr double kTolerated = 1.05;
  // Fewer events say little.
  constexpr uint64_t kEnough = 20'000;
  const uint64_t total = std::accumulate(loads.begin(), loads.end(), uint64_t{0});
  if (total < kEnough) return;
  std::vector<uint64_t> sums;
  for (const Share& share : shares_) {
    uint64_t& sum = sums.emplace_back(0);
    for (const uint32_t partition : share.partitions) sum += loads[partition];
  }
  if (static_cast<double>(*std::ranges::max_element(sums)) * static_cast<double>(shares_.size()) >
      kTolerated * static_cast<double>(total)) {
    std::vector<uint32_t> order(loads.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater{}, [&](uint32_t partition) { return loads[partition]; });
    std::ranges::fill(sums, 0);
    for (Share& share : shares_) share.partitions.clear();
    for (const uint32_t partition : order) {
      const auto least = static_cast<size_t>(std::ranges::min_element(sums) - sums.begin());
      shares_[least].partitions.push_back(partition);
      sums[least] += loads[partition];
    }
  }
  std::ranges::fill(loads, 0);
}

void Shares::begin_round(uint32_t round) {
  const uint64_t above = static_cast<uint64_t>(round) << 32;
  for (Share& share : shares_) share.left.store(above | share.partitions.size(), std::memory_order_release);
}

// Who has taken one knows that the round is under way, and that nothing is dealt until it has done it.
uint32_t Shares::take(uint32_t thread, uint32_t round) {
  for (size_t offset = 0; offset < shares_.size(); ++offset) {
    Share& share = shares_[(thread + offset) % shares_.size()];
    uint64_t left = share.left.load(std::memory_order_relaxed);
    while (left >> 32 == round && static_cast<uint32_t>(left) > 0) {
      if (!share.left.compare_exchange_weak(left, left - 1, std::memory_order_acquire, std::memory_order_relaxed)) continue;
      return share.partitions[share.partitions.size() - static_cast<uint32_t>(left)];
    }
  }
  return kNone;
}

}  // namespace weir
