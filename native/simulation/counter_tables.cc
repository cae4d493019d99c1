#include "simulation/counter_tables.h"

#include "simulation/counters.h"

namespace weir {
namespace {

constexpr CounterTable CounterTables::*kTables[] = {
    &CounterTables::switch_ports, &CounterTables::switch_priorities, &CounterTables::nics,      &CounterTables::nic_priorities,
    &CounterTables::transports,   &CounterTables::senders,           &CounterTables::receivers, &CounterTables::links};

}  // namespace

uint64_t CounterTable::sum(CounterMeaning wanted) const {
  uint64_t total = 0;
  for (size_t i = 0; i < words.size(); ++i) total += meaning(i) == wanted ? words[i] : 0;
  return total;
}

void CounterTables::add(const CounterTables& growth, uint64_t part, uint64_t whole) {
  for (const auto table : kTables) {
    std::vector<uint64_t>& words = (this->*table).words;
    const std::vector<uint64_t>& more = (growth.*table).words;
    for (size_t i = 0; i < more.size(); ++i) words[i] += portion(more[i], part, whole);
  }
}

CounterTables CounterTables::times(uint64_t part, uint64_t whole) const {
  CounterTables out = *this;
  for (const auto table : kTables) {
    for (uint64_t& word : (out.*table).words) word = portion(word, part, whole);
  }
  return out;
}

CounterTables CounterTables::since(const CounterTables& before) const {
  CounterTables growth = *this;
  for (const auto table : kTables) {
    CounterTable& grown = growth.*table;
    const std::vector<uint64_t>& words = (before.*table).words;
    for (size_t i = 0; i < words.size(); ++i) {
      grown.words[i] = grown.meaning(i) == CounterMeaning::gauge ? 0 : grown.words[i] - words[i];
    }
  }
  return growth;
}

void settle_counters(Fabric& fabric) {
  for (size_t i = 0; i < fabric.switch_count(); ++i) {
    fabric.switch_at(i).advance(fabric.now());
    fabric.switch_at(i).statistics().settle_counters();
  }
  for (size_t i = 0; i < fabric.nic_count(); ++i) fabric.nic_at(i).observation().settle_counters();
}

CounterTables count(Fabric& fabric, const FlowLayout& layout, size_t flows) {
  CounterTables out;
  for (size_t i = 0; i < fabric.switch_count(); ++i) {
    SoftSwitch& device = fabric.switch_at(i);
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      out.switch_ports.add(device.counters(port));
      for (int p = 0; p < kPriorities; ++p) out.switch_priorities.add(device.counters(port, p));
    }
  }
  for (size_t i = 0; i < fabric.nic_count(); ++i) {
    SoftNic& device = fabric.nic_at(i);
    out.nics.add(device.counters());
    for (int p = 0; p < kPriorities; ++p) out.nic_priorities.add(device.counters(p));
    out.transports.add(device.transport_counters());
  }
  const auto of = [&](FlowLayout::Place place) -> const QpCounters& {
    return fabric.nic_at(place.nic).queue_pairs()[place.index].counters;
  };
  for (uint32_t flow = 0; flow < flows; ++flow) {
    out.senders.add(of(layout.sender(flow)));
    out.receivers.add(of(layout.receiver(flow)));
  }
  for (size_t link = 0; link < fabric.link_count(); ++link) {
    for (size_t side = 0; side < 2; ++side) out.links.add(fabric.link_counters(link, side));
  }
  return out;
}

}  // namespace weir
