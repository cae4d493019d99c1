#include "simulation/steady_state.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace weir {
namespace {

double relative(double got, double foretold, double least) { return std::abs(got - foretold) / std::max(foretold, least); }

}  // namespace

Measures measure(Fabric& fabric, const FlowLayout& layout, size_t flows) {
  Measures out;
  out.at = fabric.now();
  out.bytes.reserve(flows);
  for (uint32_t flow = 0; flow < flows; ++flow) {
    const FlowLayout::Place place = layout.receiver(flow);
    out.bytes.push_back(fabric.nic_at(place.nic).queue_pairs()[place.index].counters.rx_bytes);
    const FlowLayout::Place sender = layout.sender(flow);
    SoftNic& nic = fabric.nic_at(sender.nic);
    out.rates += static_cast<double>(nic.allowed_rate(nic.queue_pairs()[sender.index]));
  }
  for (size_t i = 0; i < fabric.switch_count(); ++i) {
    SoftSwitch& device = fabric.switch_at(i);
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      out.drops += device.counters(port).sum(CounterMeaning::drop);
      for (int p = 0; p < kPriorities; ++p) {
        const SwitchPriorityCounters& counters = device.counters(port, p);
        out.marks += counters.wred_ecn_marked_packets;
        out.pauses += counters.pfc_tx_packets;
        out.drops += counters.trim_packets;
        if (device.statistics().keeps_distribution(port, p)) {
          out.queues += device.statistics().distribution(port, p).weighted_sum();
        }
      }
    }
  }
  for (size_t i = 0; i < fabric.nic_count(); ++i) {
    for (int p = 0; p < kPriorities; ++p) out.pauses += fabric.nic_at(i).counters(p).tx_prio_pause;
  }
  for (size_t link = 0; link < fabric.link_count(); ++link) {
    for (size_t side = 0; side < 2; ++side) out.drops += fabric.link_counters(link, side).sum(CounterMeaning::fault);
  }
  return out;
}

Differences Stretch::from(const Stretch& foretold) const {
  Differences out;
  const double scale = static_cast<double>(length()) / static_cast<double>(foretold.length());
  std::vector<double> got, expected;
  for (size_t flow = 0; flow < to_.bytes.size(); ++flow) {
    got.push_back(static_cast<double>(to_.bytes[flow] - from_.bytes[flow]));
    expected.push_back(scale * static_cast<double>(foretold.to_.bytes[flow] - foretold.from_.bytes[flow]));
  }
  const double all = std::max(std::accumulate(expected.begin(), expected.end(), 0.0), 1.0);
  const auto apart = [&] {
    return std::transform_reduce(got.begin(), got.end(), expected.begin(), 0.0, std::plus<>(),
                                 [](double a, double b) { return std::abs(a - b); }) /
           all;
  };
  out.goodput = std::abs(std::accumulate(got.begin(), got.end(), 0.0) - all) / all;
  out.shares = apart();
  std::ranges::sort(got);
  std::ranges::sort(expected);
  out.spread = apart();
  const auto counts = [&](uint64_t Measures::*of, double& difference, double& chance) {
    const auto came = static_cast<double>(to_.*of - from_.*of);
    const double due = scale * static_cast<double>(foretold.to_.*of - foretold.from_.*of);
    difference = relative(came, due, 1);
    chance = std::sqrt(std::max(came, due) + scale * due) / std::max(due, 1.0);
  };
  counts(&Measures::marks, out.marks, out.marks_chance);
  counts(&Measures::pauses, out.pauses, out.pauses_chance);
  counts(&Measures::drops, out.drops, out.drops_chance);
  const double ns = static_cast<double>(length());
  out.queues =
      relative((to_.queues - from_.queues) / ns, scale * (foretold.to_.queues - foretold.from_.queues) / ns, kShortQueue);
  return out;
}

bool within(const Differences& d, double bound) {
  return d.goodput <= bound && d.spread <= kSpread * bound && d.queues <= bound && d.marks <= bound + 2 * d.marks_chance &&
         d.pauses <= bound + 2 * d.pauses_chance && d.drops <= bound + 2 * d.drops_chance;
}

}  // namespace weir
