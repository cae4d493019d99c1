#include "engine/lent_news.h"

#include <string_view>
#include <utility>

namespace weir {
namespace {

constexpr uint32_t kPairsOfBlock = 1u << kLentBlockShift;
// More than a NIC counts between two looks.
constexpr uint64_t kMostAtOnce = uint64_t{1} << 40;

// Pauses come to both, and count once; what is there now is no count.
bool is_common(const CounterDescription& counter) {
  switch (counter.meaning) {
    case CounterMeaning::gauge:
    case CounterMeaning::control_rx:
    case CounterMeaning::pause_rx:
    case CounterMeaning::paused:
      return true;
    default:
      return std::string_view(counter.name) == "rx_prio_pause_transition";
  }
}

void tell_pair(LentPairNews& told, SoftNic& nic, const QueuePair& qp) {
  const auto index = static_cast<uint32_t>(&qp - nic.queue_pairs().data());
  const Flow& flow = nic.observation().flow_at(index, nic.now());
  const ControllerState state = flow.controller.visit([](const auto& c) { return c.state(); });
  const Rate rate = nic.allowed_rate(qp);
  const Rate held = state.target_rate > 0 ? state.target_rate : rate;
  told.state.store(static_cast<uint32_t>(qp.state), std::memory_order_relaxed);
  told.stage.store(static_cast<uint32_t>(state.stage), std::memory_order_relaxed);
  told.limited.store(flow.held ? 1 : 0, std::memory_order_relaxed);
  told.rate.store(static_cast<uint64_t>(rate), std::memory_order_relaxed);
  told.target_rate.store(static_cast<uint64_t>(flow.held ? held : nic.line_rate()), std::memory_order_relaxed);
  told.alpha.store(state.alpha, std::memory_order_relaxed);
  told.window.store(state.window, std::memory_order_relaxed);
  for (size_t i = 0; i < QpCounters::kCount; ++i) told.counted[i].store(qp.counters.words()[i], std::memory_order_relaxed);
  told.qpn.store(qp.qpn, std::memory_order_release);
}

}  // namespace

uint64_t LentAccount::take(const LentNews& news, SoftNic& nic, WirePort& port) {
  LentCounters more;
  size_t at = 0;
  const auto fill = [&](auto& set, auto& seen) {
    for (size_t i = 0; i < set.kCount; ++i) {
      const uint64_t told = news.counted[at++].load(std::memory_order_relaxed);
      const uint64_t before = std::exchange(seen.words()[i], told);
      set.words()[i] = is_common(set.kDescriptions[i]) || told < before || told - before > kMostAtOnce ? 0 : told - before;
    }
  };
  fill(more.nic, seen_.nic);
  for (size_t p = 0; p < kPriorities; ++p) fill(more.priorities[p], seen_.priorities[p]);
  fill(more.port, seen_.port);
  nic.counters().add(more.nic);
  for (size_t p = 0; p < kPriorities; ++p) nic.counters(static_cast<int>(p)).add(more.priorities[p]);
  port.count_lent(more.port);
  return more.nic.tx_packets + more.nic.rx_packets;
}

bool LentAccount::read(const LentNews& news, uint32_t qpn, QpCounters& counters) {
  const LentPairNews& told = news.pairs[qpn % kPairsOfBlock];
  if (told.qpn.load(std::memory_order_acquire) != qpn) return false;
  for (size_t i = 0; i < QpCounters::kCount; ++i) counters.words()[i] = told.counted[i].load(std::memory_order_relaxed);
  return true;
}

void tell(LentNews& news, SoftNic& nic, WirePort& port) {
  nic.observation().settle_counters();
  port.settle();
  LentCounters now{nic.counters(), {}, port.counters()};
  for (size_t p = 0; p < kPriorities; ++p) now.priorities[p] = nic.counters(static_cast<int>(p));
  size_t at = 0;
  now.each([&](const auto& set) {
    for (size_t i = 0; i < set.kCount; ++i) news.counted[at++].store(set.words()[i], std::memory_order_relaxed);
  });
  for (const QueuePair& qp : nic.queue_pairs()) {
    if (qp.verbs() != nullptr) tell_pair(news.pairs[qp.qpn % kPairsOfBlock], nic, qp);
  }
}

}  // namespace weir
