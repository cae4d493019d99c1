#include "simulation/division.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/native_error.h"
#include "link/serializer.h"
#include "simulation/schedule.h"
#include "wire/packet.h"

namespace weir {
namespace {

// More make the work more even; each costs a look at all others in each window.
constexpr uint32_t kPerThread = 8;
constexpr uint32_t kMostPartitions = 128;
// Most windows of a round. Events after so many wait in a heap.
constexpr uint64_t kMostWindows = 64;
// A block, kept together for the sake of longer rounds, is at most so many times what a partition would have.
constexpr double kLargestBlock = 4;

Rate rate_of(const SimulationConfig& config, const LinkEnd& end) {
  const size_t switches = config.switches.size();
  return end.device < switches ? config.switches[end.device].parameters.ports[end.port].rate
                               : config.nics[end.device - switches].parameters.rate;
}

std::vector<double> weights_of(const SimulationConfig& config) {
  std::vector<double> weights;
  for (const SimulatedSwitch& s : config.switches) {
    double& weight = weights.emplace_back(1);
    for (const SwitchParameters::Port& port : s.parameters.ports) weight += static_cast<double>(port.rate);
  }
  for (const SimulatedNic& nic : config.nics) weights.push_back(1 + static_cast<double>(nic.parameters.rate));
  return weights;
}

uint64_t windows_within(Time delay, Time window) {
  return std::clamp<uint64_t>(static_cast<uint64_t>(delay / window), 1, kMostWindows);
}

// Returns for each device the first of those that links shorter than `delay`, or a machine, join to it.
std::vector<uint32_t> blocks_of(const SimulationConfig& config, Time delay) {
  std::vector<uint32_t> first(config.switches.size() + config.nics.size());
  std::iota(first.begin(), first.end(), 0);
  const auto find = [&](uint32_t device) {
    while (first[device] != device) device = first[device] = first[first[device]];
    return device;
  };
  const auto join = [&](uint32_t one, uint32_t other) {
    const uint32_t a = find(one), b = find(other);
    first[std::max(a, b)] = std::min(a, b);
  };
  const auto switches = static_cast<uint32_t>(config.switches.size());
  const std::vector<uint32_t> machines = machines_of(config);
  for (uint32_t nic = 0; nic < machines.size(); ++nic) join(switches + machines[nic], switches + nic);
  for (const SimulatedLink& link : config.links) {
    if (link.delay < delay) join(link.ends[0].device, link.ends[1].device);
  }
  for (uint32_t device = 0; device < first.size(); ++device) first[device] = find(device);
  return first;
}

// Chooses the devices that are to be together: the longest links that may separate partitions of about equal weight do so.
std::vector<uint32_t> choose_blocks(const SimulationConfig& config, const std::vector<double>& weights, uint32_t partitions) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto largest = [&](const std::vector<uint32_t>& blocks) {
    std::vector<double> sums(blocks.size());
    for (size_t device = 0; device < blocks.size(); ++device) sums[blocks[device]] += weights[device];
    return *std::ranges::max_element(sums);
  };
  const double most = std::max(largest(blocks_of(config, 0)), kLargestBlock * total / partitions);
  const auto even = [&](const std::vector<uint32_t>& blocks) { return largest(blocks) <= most; };
  const Time window = longest_window(config);
  std::vector<Time> delays;
  for (const SimulatedLink& link : config.links) {
    if (windows_within(link.delay, window) > 1) delays.push_back(link.delay);
  }
  std::ranges::sort(delays);
  delays.erase(std::unique(delays.begin(), delays.end()), delays.end());
  const auto chosen = std::ranges::partition_point(delays, [&](Time delay) { return even(blocks_of(config, delay)); });
  return blocks_of(config, chosen == delays.begin() ? 0 : *std::prev(chosen));
}

// Devices such that neighbours are near each other: each switch with hosts and these, and every other switch in the middle of
// those that it is linked to.
std::vector<uint32_t> near_order(const SimulationConfig& config) {
  constexpr double kNowhere = -1;
  const auto switches = static_cast<uint32_t>(config.switches.size());
  const auto devices = static_cast<uint32_t>(switches + config.nics.size());
  std::vector<std::vector<uint32_t>> neighbours(devices);
  for (const SimulatedLink& link : config.links) {
    neighbours[link.ends[0].device].push_back(link.ends[1].device);
    neighbours[link.ends[1].device].push_back(link.ends[0].device);
  }
  std::vector<double> places(devices, kNowhere);
  double next = 0;
  for (uint32_t device = 0; device < switches; ++device) {
    for (const uint32_t host : neighbours[device]) {
      if (host >= switches) places[device] = places[host] = next;
    }
    next += places[device] == kNowhere ? 0 : 1;
  }
  for (bool changed = true; std::exchange(changed, false);) {
    std::vector<double> found = places;
    for (uint32_t device = 0; device < switches; ++device) {
      if (places[device] != kNowhere) continue;
      double sum = 0, count = 0;
      for (const uint32_t other : neighbours[device]) {
        if (places[other] == kNowhere) continue;
        sum += places[other];
        ++count;
      }
      if (count == 0) continue;
      found[device] = sum / count;
      changed = true;
    }
    places = std::move(found);
  }
  std::vector<uint32_t> order(devices);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t device) { return places[device]; });
  return order;
}

}  // namespace

Time lookahead_of(const SimulationConfig& config, const SimulatedLink& link) {
  Time least = kNever;
  for (const LinkEnd& end : link.ends) {
    least = std::min(least, link.delay + Serializer(rate_of(config, end)).finish(0, wire_bytes(kMinimumFrame)));
  }
  return least;
}

Time longest_window(const SimulationConfig& config) {
  Time least = Schedule::kLongest;
  for (const SimulatedLink& link : config.links) least = std::min(least, lookahead_of(config, link));
  if (least <= 0) {
    throw NativeError("INVALID_CONFIG", 0, "", "a link has neither a rate nor a delay", "give it one of them, 1 ns at least");
  }
  return least;
}

// Delays alone, where there are several: a rate may change in a run.
uint64_t windows_of_round(const SimulationConfig& config, const std::vector<uint32_t>& division) {
  Time least = kNever;
  for (const SimulatedLink& link : config.links) {
    if (division[link.ends[0].device] != division[link.ends[1].device]) least = std::min(least, link.delay);
  }
  return least == kNever ? 1 : windows_within(least, longest_window(config));
}

uint32_t worthwhile_threads(const SimulationConfig& config, uint32_t threads) {
  // Bytes of a frame that fills a link, about.
  constexpr double kFrameBytes = 1'100;
  // Frames that hosts can send in a round for each thread: below, most of the gain goes into waiting for each other.
  constexpr double kWorthwhile = 128;
  double line = 0;
  for (const SimulatedNic& nic : config.nics) line += static_cast<double>(nic.parameters.rate);
  const Time window = longest_window(config);
  const uint64_t windows = windows_of_round(config, divide(config, partitions_for(threads)));
  const double frames = line * static_cast<double>(windows * static_cast<uint64_t>(window)) / 8e9 / kFrameBytes;
  return static_cast<uint32_t>(std::clamp(frames / kWorthwhile, 1.0, static_cast<double>(threads)));
}

uint32_t partitions_for(uint32_t threads) {
  return threads == 1 ? 1 : std::max(threads, std::min(kPerThread * threads, kMostPartitions));
}

std::vector<uint32_t> divide(const SimulationConfig& config, uint32_t partitions) {
  const std::vector<double> weights = weights_of(config);
  std::vector<uint32_t> division(weights.size());
  if (partitions == 1) return division;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::vector<uint32_t> block_of = choose_blocks(config, weights, partitions);
  std::vector<std::vector<uint32_t>> blocks(weights.size());
  for (uint32_t device = 0; device < weights.size(); ++device) blocks[block_of[device]].push_back(device);
  double before = 0;
  uint32_t number = 0, piece = 0;
  bool first = true;
  for (const uint32_t device : near_order(config)) {
    const std::vector<uint32_t> block = std::exchange(blocks[block_of[device]], {});
    if (block.empty()) continue;
    double weight = 0;
    for (const uint32_t one : block) weight += weights[one];
    // The middle decides to which it belongs.
    const auto here = std::min(partitions - 1, static_cast<uint32_t>((before + weight / 2) * partitions / total));
    if (here != piece && !first) ++number;
    piece = here;
    first = false;
    for (const uint32_t one : block) division[one] = number;
    before += weight;
  }
  return division;
}

Shares::Shares(uint32_t partitions, uint32_t threads) : shares_(threads) {
  for (uint32_t i = 0; i < partitions; ++i) shares_[static_cast<uint64_t>(i) * threads / partitions].partitions.push_back(i);
}

void Shares::balance(std::vector<uint64_t>& loads) {
  // Below this, work that is taken from others evens it out.
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

// A thread that has taken one knows that the round is under way, and that nothing is dealt until it has done it.
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
