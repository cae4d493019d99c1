// A switch that is driven as by a simulator, which hands on frames at once and comes also for times that were replaced, does what
// it does on the wire: the same frames leave at the same times, and the same is counted. At one nanosecond an agenda wakes ports
// in ascending order before what arrives; the driver here does so too, so that there is nothing in which the two may differ.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "test/histogram_figures.h"
#include "test/switch_harness.h"

namespace weir::test {
namespace {

constexpr uint16_t kPorts = 5;

struct Arrival {
  enum class Kind : uint8_t { frame, pfc, pause };
  Time at = 0;
  uint16_t port = 0;
  Kind kind = Kind::frame;
  PacketMeta meta;
  uint32_t length = 0;
  uint8_t enable = 0;
  std::array<uint16_t, kPriorities> quanta{};
};

class DrivenSwitch final : public Driver {
 public:
  explicit DrivenSwitch(const SwitchParameters& parameters)
      : pool(8'192, 0), device(parameters, pool, *this, pool.size() / 3 * 2) {
    for (uint16_t port = 0; port < kPorts; ++port) {
      if (!parameters.learning) REQUIRE(device.forwarding().add_static(kHostMac + port, std::vector<uint16_t>{port}));
      for (int priority = 0; priority < kPriorities; ++priority) device.statistics().keep_distribution(port, priority);
    }
  }

  void depart(uint16_t port, PacketId id, Time at) override {
    const Packet& p = pool[id];
    departures.push_back({at, port, p.meta.kind, p.meta.psn, p.length, p.meta.ecn, p.pfc_enable, p.pfc_xoff, p.ingress_port});
    departing_.emplace(at, std::pair(port, id));
    device.set_unsent(port, 0);
  }
  void wake(uint32_t port, Time at) override {
    if (at == kNever) return;
    REQUIRE(at >= device.now());
    wakes_.emplace(at, static_cast<uint16_t>(port));
    ++asked;
  }
  void run(Time until) {
    while (!wakes_.empty() && wakes_.begin()->first <= until) {
      const auto [at, port] = *wakes_.begin();
      wakes_.erase(wakes_.begin());
      device.wake(port, at);
    }
    device.advance(until);
    collect(until);
  }
  // A frame counts as sent when its last bit has left, as on the wire.
  void collect(Time until) {
    for (; !departing_.empty() && departing_.begin()->first <= until; departing_.erase(departing_.begin())) {
      const auto [port, id] = departing_.begin()->second;
      device.left(port, id);
      pool.free(id);
    }
  }
  void receive(const Arrival& arrival, uint32_t number) {
    const PacketId id = pool.allocate();
    REQUIRE(id != kNoPacket);
    pool[id] = Packet{};
    pool[id].meta = arrival.meta;
    pool[id].meta.psn = number;
    pool[id].length = arrival.length;
    device.receive(arrival.at, arrival.port, id);
  }

  PacketPool pool;
  SoftSwitch device;
  std::vector<Departure> departures;
  uint64_t asked = 0;

 private:
  std::set<std::pair<Time, uint16_t>> wakes_;
  std::multimap<Time, std::pair<uint16_t, PacketId>> departing_;
};

// Bursts towards few ports, so that queues grow, limits are met, and neighbours stop each other.
std::vector<Arrival> arrivals(uint64_t seed, size_t count) {
  Random random(seed);
  const auto below = [&](uint64_t limit) { return random.next() % limit; };
  std::vector<Arrival> list;
  Time at = 0;
  while (list.size() < count) {
    at += static_cast<Time>(below(100) == 0 ? below(60'000) : below(900));
    Arrival a;
    a.at = at;
    a.port = static_cast<uint16_t>(below(kPorts));
    const uint64_t what = below(40);
    if (what == 0) {
      a.kind = Arrival::Kind::pause;
      a.quanta[0] = static_cast<uint16_t>(below(3) == 0 ? 0 : below(40));
    } else if (what < 4) {
      a.kind = Arrival::Kind::pfc;
      a.enable = static_cast<uint8_t>(below(256));
      for (uint16_t& quanta : a.quanta) quanta = static_cast<uint16_t>(below(3) == 0 ? 0 : below(200));
    } else {
      a.meta.kind = FrameKind::roce;
      a.meta.source_mac = kHostMac + a.port;
      a.meta.destination_mac = kHostMac + (below(3) == 0 ? below(kPorts) : (at / 400'000) % 2);
      if (below(200) == 0) a.meta.destination_mac = 0x0180c2000002;
      if (below(200) == 0) a.meta.destination_mac = 0x02ffffffffff;
      a.meta.ip_version = 4;
      a.meta.dscp = static_cast<uint8_t>(below(2) == 0 ? 3 : below(8));
      a.meta.ecn = below(5) == 0 ? 0 : 2;
      a.length = static_cast<uint32_t>(below(3) == 0 ? 60 + below(40) : 60 + below(1'455));
    }
    list.push_back(a);
  }
  return list;
}

SwitchParameters parameters_of(uint64_t seed) {
  SwitchParameters p = switch_parameters(kPorts);
  const Rate rates[kPorts] = {k1G, 2'500'000'000, 10'000'000'000, 40 * k1G, 0};
  for (size_t i = 0; i < kPorts; ++i) p.ports[i].rate = rates[(i + seed) % kPorts];
  p.ports[0].priority_rates[3] = 700'000'000;
  p.ports[1].priority_rates[5] = 90'000'000;
  p.ports[4].priority_rates[2] = 333'333'333;
  p.ports[1].queue_limits[1] = 9'000;
  p.ports[2].queue_limits[3] = 40'000;
  p.pfc_priorities = seed % 3 == 0 ? 0 : 1 << 3 | 1 << 5;
  p.ecn_priorities = 1 << 3 | 1 << 1;
  p.mark_on_dequeue = seed % 2 == 0;
  p.red = {.kmin = 3'000, .kmax = 30'000, .pmax = 0.3, .averaged = seed % 4 == 1, .weight = 0.1};
  p.scheduler.weights = {1, 2, 3, 40, 5, 6, 7, 8};
  p.buffer = {.total = 180'000, .headroom = 2'500, .beta = 4, .xon_offset = 2'000, .lossy_alpha = 0.5};
  p.learning = seed % 5 == 4;
  p.seed = seed;
  return p;
}

using ByPort = std::map<uint16_t, std::vector<Departure>>;

ByPort by_port(const std::vector<Departure>& departures) {
  ByPort sorted;
  for (const Departure& d : departures) sorted[d.port].push_back(d);
  return sorted;
}

template <class Counters>
void check_same(const Counters& wire, const Counters& driven) {
  for (int i = 0; i < Counters::kCount; ++i) {
    CAPTURE(std::string(Counters::kDescriptions[i].name));
    CHECK(wire.words()[i] == driven.words()[i]);
  }
}

void check_same(SoftSwitch& wire, SoftSwitch& driven) {
  wire.statistics().settle_counters();
  driven.statistics().settle_counters();
  CHECK(wire.held() == driven.held());
  CHECK(wire.buffer().occupied() == driven.buffer().occupied());
  for (uint16_t port = 0; port < kPorts; ++port) {
    CAPTURE(port);
    check_same(wire.counters(port), driven.counters(port));
    CHECK(wire.pauses().pausing_mask(port) == driven.pauses().pausing_mask(port));
    for (int p = 0; p < kPriorities; ++p) {
      CAPTURE(p);
      check_same(wire.counters(port, p), driven.counters(port, p));
      CHECK(wire.queue_bytes(port, p) == driven.queue_bytes(port, p));
      CHECK(wire.statistics().take_peak(port, p) == driven.statistics().take_peak(port, p));
      const Histogram& a = wire.statistics().distribution(port, p);
      const Histogram& b = driven.statistics().distribution(port, p);
      CHECK(std::tuple(a.total(), a.max(), mean(a), percentile(a, 0.5), percentile(a, 0.99)) ==
            std::tuple(b.total(), b.max(), mean(b), percentile(b, 0.5), percentile(b, 0.99)));
    }
  }
}

// The cases must contain these for the comparison to mean anything.
struct Seen {
  uint64_t marks = 0, stops = 0, pauses = 0, dropped = 0, limited = 0, flooded = 0;
};

void compare(uint64_t seed, Seen& seen) {
  const SwitchParameters parameters = parameters_of(seed);
  SwitchHarness wire(parameters);
  DrivenSwitch driven(parameters);
  uint32_t frames = 0;
  size_t looks = 0;
  const auto both_at = [&](Time now) {
    wire.run(now);
    driven.run(now);
  };
  Time last = 0;
  for (const Arrival& a : arrivals(seed, 6'000)) {
    both_at(a.at);
    last = a.at;
    if (a.kind == Arrival::Kind::pfc) {
      wire.receive_pfc(a.at, a.port, a.enable, a.quanta);
      driven.device.pauses().receive_pfc(a.at, a.port, a.enable, a.quanta);
    } else if (a.kind == Arrival::Kind::pause) {
      wire.receive_pause(a.at, a.port, a.quanta[0]);
      driven.device.pauses().receive_pause(a.at, a.port, a.quanta[0]);
    } else {
      wire.receive(a.at, a.port, a.meta, a.length);
      driven.receive(a, ++frames);
    }
    wire.collect();
    driven.collect(a.at);
    if (++looks % 500 == 0) check_same(wire.device, driven.device);
  }
  both_at(last + 50 * kMillisecond);
  CHECK(by_port(wire.departures) == by_port(driven.departures));
  check_same(wire.device, driven.device);
  wire.check_drained();
  CHECK(driven.pool.available() == driven.pool.size());
  // A driver is not asked for more than the events of the wire: that is what it is for.
  CHECK(driven.asked < 2 * driven.departures.size());
  seen.dropped += wire.dropped();
  for (uint16_t port = 0; port < kPorts; ++port) {
    const SwitchPortCounters& counters = driven.device.counters(port);
    seen.flooded += counters.flood_copies;
    seen.limited += counters.drop_queue_limit;
    for (int p = 0; p < kPriorities; ++p) {
      seen.marks += driven.device.counters(port, p).wred_ecn_marked_packets;
      seen.stops += driven.device.counters(port, p).pfc_tx_transitions;
      seen.pauses += driven.device.counters(port, p).pfc_rx_pause_duration > 0;
    }
  }
}

TEST_CASE("driver: a switch sends the same frames at the same times as on the wire") {
  Seen seen;
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    CAPTURE(seed);
    compare(seed, seen);
  }
  CHECK(seen.marks > 500);
  CHECK(seen.stops > 50);
  CHECK(seen.pauses > 50);
  CHECK(seen.dropped > 500);
  CHECK(seen.limited > 20);
  CHECK(seen.flooded > 100);
}

TEST_CASE("driver: a stop that lasts is refreshed, and a pause that is drawn out or cut short ends when it should") {
  SwitchParameters parameters = parameters_of(1);
  for (SwitchParameters::Port& port : parameters.ports) port = {k1G, 1'500, port.mac};
  parameters.learning = false;
  SwitchHarness wire(parameters);
  DrivenSwitch driven(parameters);
  const auto pfc = [&](Time at, uint16_t port, uint16_t quanta) {
    std::array<uint16_t, kPriorities> all;
    all.fill(quanta);
    wire.run(at);
    driven.run(at);
    wire.receive_pfc(at, port, 1 << 3, all);
    driven.device.pauses().receive_pfc(at, port, 1 << 3, all);
  };
  // Port 1 is paused by its peer for 100 ms in all, so that what comes from port 0 stops port 0's peer for as long.
  pfc(0, 1, 65'535);
  Arrival frame{.at = 0, .port = 0, .meta = meta(0, 1, 3), .length = 1'000};
  for (uint32_t i = 1; i <= 60; ++i) {
    frame.at = i * 8'192;
    wire.run(frame.at);
    driven.run(frame.at);
    wire.receive(frame.at, 0, frame.meta, frame.length);
    driven.receive(frame, i);
  }
  for (Time at = 10 * kMillisecond; at <= 90 * kMillisecond; at += 10 * kMillisecond) pfc(at, 1, 65'535);
  pfc(95 * kMillisecond, 1, 200);  // 102 us more
  wire.run(kSecond);
  driven.run(kSecond);
  CHECK(by_port(wire.departures) == by_port(driven.departures));
  check_same(wire.device, driven.device);
  CHECK(driven.device.counters(0).tx_pfc_frames > 5);
  const std::vector<Departure> sent = wire.at_port(1);
  REQUIRE(!sent.empty());
  CHECK(sent[0].at == 95 * kMillisecond + 200 * 512 + wire_bytes(1'000) * 8);
}

}  // namespace
}  // namespace weir::test
