#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/native_error.h"
#include "engine/worker.h"
#include "test/memory_port.h"
#include "test/nic_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr Rate k100M = 100'000'000;

// Ports by interface name: a name that was asked for once gets the other end of the same link the second time.
struct Links {
  std::map<std::string, std::unique_ptr<MemoryPort>> waiting;
  std::string refuse;
  const PortClock* test_clock = nullptr;  // clock of far ends that the test's thread uses
  int opened = 0;

  PortFactory factory() {
    return [this](const PortConfig& config, const PortClock& clock, LentPackets&) -> std::unique_ptr<PacketPort> {
      if (config.interface == refuse) throw NativeError("ENODEV", 19, "bind", "no interface " + refuse, "create it");
      ++opened;
      const auto found = waiting.find(config.interface);
      if (found != waiting.end()) {
        std::unique_ptr<MemoryPort> port = std::move(found->second);
        waiting.erase(found);
        return port;
      }
      auto [near, far] = make_memory_pair({}, clock, test_clock != nullptr ? *test_clock : clock);
      waiting.emplace(config.interface, std::move(far));
      return std::move(near);
    };
  }
};

PortConfig port(const std::string& interface) {
  PortConfig config;
  config.name = config.interface = interface;
  config.rate = k100M;
  return config;
}

NicDeviceConfig nic(const std::string& name, uint64_t mac, uint64_t peer, bool sends) {
  NicDeviceConfig config;
  config.name = name;
  config.port = port(name);
  config.parameters = nic_parameters(k100M);
  config.parameters.mac = mac;
  config.arrears = kMillisecond;
  QueuePairParameters qp = sends ? sender(kFirstQpn) : receiver(kFirstQpn);
  qp.path = path_to(peer, mac);
  config.queue_pairs = {qp};
  config.queue_pair_settings = {{"flow"}};
  return config;
}

// h1 -- sw -- h2 in one worker.
WorkerConfig lab() {
  WorkerConfig config;
  config.name = "test";
  config.packets = 512;
  config.sample_interval = kMillisecond;
  SwitchDeviceConfig sw;
  sw.name = "sw";
  sw.ports = {port("h1"), port("h2")};
  sw.parameters.ports = {{k100M, 1'500, 0x025753000000}, {k100M, 1'500, 0x025753000001}};
  sw.parameters.priority_map.dscp[26] = 3;
  sw.routes = {{kNicMac, {0}}, {kPeerMac, {1}}};
  config.switches = {sw};
  config.nics = {nic("h1", kNicMac, kPeerMac, true), nic("h2", kPeerMac, kNicMac, false)};
  return config;
}

// Waits (bounded) until `done`; the worker runs in real time.
bool eventually(const std::function<bool()>& done) {
  for (int i = 0; i < 5'000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

uint64_t counter(const Worker& worker, const std::string& name, const std::string& device) {
  uint64_t sum = 0;
  size_t index = 0;
  for (const CounterGroup& group : worker.counters().manifest()) {
    for (const CounterDescription& description : group.descriptions) {
      const bool wanted = name == description.name && group.labels[0].second == device && group.labels.size() == 1;
      sum += wanted ? worker.counters().read(index) : 0;
      ++index;
    }
  }
  return sum;
}

std::vector<double> ended(Worker& worker) {
  std::vector<double> values;
  for (Record record; worker.records().pop(record);) {
    if (record.kind == Record::Kind::ended) values.push_back(record.values[0]);
  }
  return values;
}

}  // namespace

TEST_CASE("worker: traffic flows, counters and records are read meanwhile, and all adds up at the end") {
  Links links;
  Worker worker(lab(), links.factory());
  uint64_t rung = 0;
  worker.doorbell().set([&rung] { ++rung; });
  worker.open();
  CHECK(links.opened == 4);
  CHECK_FALSE(worker.ready());
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.ready(); }));
  uint64_t queue_records = 0;
  uint64_t last = 0;
  REQUIRE(eventually([&] {
    for (Record record; worker.records().pop(record);) queue_records += record.kind == Record::Kind::transmit ? 1 : 0;
    const uint64_t received = counter(worker, "rx_packets", "h2");
    CHECK(received >= last);
    last = received;
    return received > 50 && queue_records > 3;
  }));
  worker.stop_traffic();
  const auto sent = [&] { return counter(worker, "tx_packets", "h1"); };
  // Published counters lag by up to 2 ms; once they stand still all has arrived.
  REQUIRE(eventually([&] { return sent() > 0 && sent() == counter(worker, "rx_packets", "h2"); }));
  worker.stop();
  worker.stop();
  CHECK_FALSE(worker.failed());
  CHECK(rung > 0);
  CHECK(ended(worker) == std::vector<double>{0});
  QpCounters& out = worker.nics()[0]->soft_nic().queue_pairs()[0].counters;
  QpCounters& in = worker.nics()[1]->soft_nic().queue_pairs()[0].counters;
  CHECK(out.tx_packets > 50);
  CHECK(in.rx_packets + in.lost <= out.tx_packets);
  CHECK(in.rx_packets > 50);
  CHECK(worker.fidelity().loop_gap.total() > 0);
  CHECK(worker.fidelity().inject_refused == 0);
}

TEST_CASE("worker: counters are never behind the state that a look shows") {
  Links links;
  Worker worker(lab(), links.factory());
  worker.look([] {});
  worker.open();
  worker.look([] {});
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.ready() && counter(worker, "tx_packets", "h1") > 0; }));
  for (int i = 0; i < 50; ++i) {
    uint64_t sent = 0;
    worker.look([&] { sent = worker.nics()[0]->soft_nic().counters().tx_packets; });
    CHECK(counter(worker, "tx_packets", "h1") >= sent);
    // The pause is not in step with the publishing that happens anyway.
    std::this_thread::sleep_for(std::chrono::microseconds(700));
  }
  // Once it sleeps, nothing is left to tell: what it told last is of now.
  worker.stop_traffic();
  const auto ignore = [](size_t, uint64_t) {};
  CHECK(eventually([&] {
    const Time now = monotonic_now();
    return worker.counters().read(now, ignore, 0) == now;
  }));
  worker.look([&] { CHECK(counter(worker, "tx_packets", "h1") == worker.nics()[0]->soft_nic().counters().tx_packets); });
  worker.stop();
  worker.look([] {});
}

TEST_CASE("worker: stop before open, before begin, and by the destructor") {
  Links links;
  { Worker worker(lab(), links.factory()); }
  {
    Worker worker(lab(), links.factory());
    worker.stop();
  }
  {
    Worker worker(lab(), links.factory());
    worker.open();
    worker.stop();
    CHECK_FALSE(worker.ready());
    CHECK_FALSE(worker.failed());
  }
  {
    Worker worker(lab(), links.factory());
    worker.open();
    worker.begin(monotonic_now());
  }
}

TEST_CASE("worker: is opened once, whatever became of it") {
  Links links;
  Worker worker(lab(), links.factory());
  worker.open();
  CHECK_THROWS_AS(worker.open(), NativeError);
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.ready(); }));
  worker.stop();
  CHECK_THROWS_AS(worker.open(), NativeError);
  CHECK(links.opened == 4);
  Links none;
  none.refuse = "h2";
  Worker refused(lab(), none.factory());
  CHECK_THROWS_AS(refused.open(), NativeError);
  CHECK_THROWS_AS(refused.open(), NativeError);
}

TEST_CASE("worker: what it cannot run with is refused when it is made") {
  const auto refused = [](const std::function<void(WorkerConfig&)>& change) {
    Links links;
    WorkerConfig config = lab();
    change(config);
    try {
      Worker worker(config, links.factory());
    } catch (const NativeError& e) {
      return e.code;
    }
    return std::string();
  };
  CHECK(refused([](WorkerConfig&) {}) == "");
  CHECK(refused([](WorkerConfig& c) { c.packets = 0; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.super_frames = UINT32_MAX; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.packet_bytes = UINT32_MAX; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.packet_bytes = kHeaderStride; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.quantum = -1; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.sample_interval = 1; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.switches[0].ports[1].receive_slots = 0; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.nics[1].port.delay = -1; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.nics[1].arrears = -1; }) == "INVALID_CONFIG");
  const auto shared = std::make_shared<SharedSwitch>(lab().shape(), std::vector<uint8_t>{0, 1}, 2);
  CHECK(refused([&](WorkerConfig& c) { c.shared = shared; }) == "INVALID_CONFIG");  // it has NICs
  CHECK(refused([&](WorkerConfig& c) { c.shared = shared, c.nics.clear(), c.share = 2; }) == "INVALID_CONFIG");
  CHECK(refused([&](WorkerConfig& c) { c.shared = shared, c.nics.clear(), c.switches[0].ports.pop_back(); }) == "INVALID_CONFIG");
  CHECK(refused([&](WorkerConfig& c) { c.shared = shared, c.nics.clear(), c.share = 1; }) == "");
  CHECK_THROWS_AS(SharedSwitch(lab().shape(), {0, 2}, 2), NativeError);
  CHECK_THROWS_AS(SharedSwitch(lab().shape(), {}, 0), NativeError);
  CHECK_THROWS_AS(SharedSwitch(lab().shape(), {0}, 65), NativeError);
  CHECK_THROWS_AS(SharedSwitch({.count = kMostPackets, .stride = 192}, {0, 1}, 2), NativeError);
}

TEST_CASE("worker: one device's parameters that are refused leave all devices as they were") {
  Links links;
  WorkerConfig config = lab();
  Worker worker(config, links.factory());
  worker.open();
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.ready(); }));
  config.switches[0].parameters.red.kmax = 77'777;
  config.nics[1].parameters.scheduler.weights[0] = 0;
  CHECK_THROWS_AS(worker.reconfigure(config), NativeError);
  uint64_t kmax = 0;
  const auto look = [&] { worker.look([&] { kmax = worker.switches()[0]->soft_switch().parameters().red.kmax; }); };
  look();
  CHECK(kmax != 77'777);
  config.nics[1].parameters.scheduler.weights[0] = 1;
  worker.reconfigure(config);
  look();
  CHECK(kmax == 77'777);
}

TEST_CASE("worker: a change of a switch on several workers is one for all of them, or for none") {
  Links links[2];
  WorkerConfig config = lab();
  config.nics.clear();
  config.switches[0].parameters.fdb_capacity = 16;
  config.shared = std::make_shared<SharedSwitch>(config.shape(), std::vector<uint8_t>{0, 1}, 2);
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t share = 0; share < 2; ++share) {
    config.share = share;
    workers.push_back(std::make_unique<Worker>(config, links[share].factory()));
  }
  for (auto& worker : workers) worker->open();
  for (auto& worker : workers) worker->begin(monotonic_now());
  for (auto& worker : workers) REQUIRE(eventually([&] { return worker->ready(); }));
  Worker* const others[] = {workers[1].get()};
  const auto has = [&](uint64_t kmax, size_t routes) {
    for (auto& worker : workers) {
      worker->look([&] {
        SwitchDevice& device = *worker->switches()[0];
        CHECK(device.soft_switch().parameters().red.kmax == kmax);
        size_t there = 0;
        for (const auto& entry : device.soft_switch().forwarding().entries()) there += entry.expires == kNever ? 1 : 0;
        CHECK(there == routes);
      });
    }
  };
  config.switches[0].parameters.red.kmax = 77'777;
  config.switches[0].routes.push_back({kPeerMac + 10, {1}});
  workers[0]->reconfigure(config, others);
  has(77'777, 3);
  // A configuration that does not fit is found out before anybody has changed.
  WorkerConfig crowded = config;
  crowded.switches[0].parameters.red.kmax = 88'888;
  for (uint64_t i = 0; i < 20; ++i) crowded.switches[0].routes.push_back({kPeerMac + 100 + i, {1}});
  CHECK_THROWS_AS(workers[0]->reconfigure(crowded, others), NativeError);
  has(77'777, 3);
  // All stand still while it is done: no turn of one comes between the changes of two.
  for (uint64_t kmax = 100'000; kmax < 100'050; ++kmax) {
    config.switches[0].parameters.red.kmax = kmax;
    workers[0]->reconfigure(config, others);
    has(kmax, 3);
  }
}

TEST_CASE("worker: a port that cannot be opened makes open() throw, and nothing is left behind") {
  Links links;
  links.refuse = "h2";
  Worker worker(lab(), links.factory());
  try {
    worker.open();
    FAIL("open() did not throw");
  } catch (const NativeError& e) {
    CHECK(e.code == "ENODEV");
    CHECK(e.syscall == "bind");
  }
  worker.stop();
  CHECK_FALSE(worker.ready());
}

TEST_CASE("worker: a device that cannot be built ends the worker with record `ended` = 1") {
  Links links;
  WorkerConfig config = lab();
  config.switches[0].parameters.fdb_capacity = 16;
  for (uint64_t i = 0; i < 100; ++i) config.switches[0].routes.push_back({kPeerMac + 10 + i, {1}});
  Worker worker(config, links.factory());
  worker.open();
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.failed(); }));
  // Its ports went with the device.
  const auto capture = std::make_shared<Capture>(CaptureOptions{}, 1);
  const Worker::PortPlace place;
  CHECK_THROWS_AS(worker.attach(capture, {&place, 1}), NativeError);
  worker.detach(*capture);
  worker.stop();
  CHECK(worker.failure().find("forwarding table") != std::string::npos);
  CHECK(ended(worker) == std::vector<double>{1});
  CHECK_FALSE(worker.ready());
}

TEST_CASE("worker: injected frames leave, frames for the slow path come up") {
  Links links;
  PortClock clock;
  clock.now = monotonic_now();
  links.test_clock = &clock;
  WorkerConfig config;
  config.name = "inject";
  config.packets = 64;
  config.nics = {nic("h1", kNicMac, kPeerMac, false)};
  Worker worker(config, links.factory());
  worker.open();
  std::unique_ptr<MemoryPort> peer = std::move(links.waiting.at("h1"));
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.ready(); }));
  std::vector<uint8_t> arp(60, 0x55);
  store_ethernet(arp.data(), {.destination_mac = 0xffffffffffff, .source_mac = kPeerMac}, 0x0806);
  REQUIRE(worker.inject(0, 0, arp));
  CHECK(worker.inject(0, 1, arp));  // no such port
  CHECK(worker.inject(7, 0, arp));  // no such device
  CHECK_FALSE(worker.inject(0, 0, std::vector<uint8_t>(PuntedFrame::kMaxLength + 1)));
  RxFrame frame;
  REQUIRE(eventually([&] { return peer->receive(std::span(&frame, 1)) == 1; }));
  CHECK(std::vector<uint8_t>(frame.data, frame.data + frame.length) == arp);
  peer->release(1);
  TxFrame up;
  up.data = arp.data();
  up.length = static_cast<uint32_t>(arp.size());
  REQUIRE(peer->transmit(std::span(&up, 1)).sent == 1);
  const auto punted = std::make_unique<PuntedFrame>();
  REQUIRE(eventually([&] { return worker.punted().pop(*punted); }));
  CHECK(punted->device == 0);
  CHECK(std::vector<uint8_t>(punted->bytes, punted->bytes + punted->length) == arp);
  worker.stop();
  CHECK(worker.fidelity().inject_refused == 3);
}

TEST_CASE("worker: actions run between turns, their errors come back, and after the end they run at once") {
  Links links;
  Worker worker(lab(), links.factory());
  worker.open();
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.ready(); }));
  std::thread::id where;
  worker.between_turns([&] { where = std::this_thread::get_id(); });
  CHECK(where != std::thread::id{});
  CHECK(where != std::this_thread::get_id());
  CHECK_THROWS_AS(worker.between_turns([] { throw NativeError("X", 0, "", "no", ""); }), NativeError);
  WorkerConfig other = lab();
  other.nics.pop_back();
  CHECK_THROWS_AS(worker.reconfigure(other), NativeError);
  worker.reconfigure(lab());
  worker.stop();
  worker.between_turns([&] { where = std::this_thread::get_id(); });
  CHECK(where == std::this_thread::get_id());
}

namespace {

// The reader's part: takes what waits, and counts frames by tap.
std::map<uint32_t, uint64_t> drain(Capture& capture) {
  std::map<uint32_t, uint64_t> frames;
  std::vector<uint8_t> chunk(1 << 20);
  for (size_t bytes = 0; (bytes = capture.drain(chunk)) > 0;) {
    CapturedFrame frame;
    for (size_t at = 0; at < bytes; at += frame.length()) {
      std::memcpy(&frame, chunk.data() + at, sizeof frame);
      ++frames[frame.tap];
    }
  }
  return frames;
}

}  // namespace

TEST_CASE("worker: captures come and go while it runs, and see what the counters count") {
  Links links;
  Worker worker(lab(), links.factory());
  worker.open();
  // The capture begins before anything lives: it has all that h1 ever sends.
  const auto early = std::make_shared<Capture>(CaptureOptions{}, 1);
  worker.attach(early, std::vector<Worker::PortPlace>{{.tap = 0, .device = 1, .port = 0}});
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return early->counts(0).captured > 100; }));
  const auto late = std::make_shared<Capture>(CaptureOptions{}, 2);
  worker.attach(late, std::vector<Worker::PortPlace>{{.tap = 1, .device = 0, .port = 1}, {.tap = 0, .device = 2, .port = 0}});
  REQUIRE(eventually([&] { return late->counts(0).captured > 100; }));
  worker.detach(*late);
  const uint64_t seen = late->counts(0).seen;
  const uint64_t then = early->counts(0).seen;
  REQUIRE(eventually([&] { return early->counts(0).seen > then + 100; }));
  CHECK(late->counts(0).seen == seen);
  const std::map<uint32_t, uint64_t> frames = drain(*late);
  CHECK(frames.at(0) == late->counts(0).captured);
  CHECK(frames.at(1) == late->counts(1).captured);
  CHECK(late->counts(1).captured + late->counts(1).dropped == late->counts(1).seen);

  worker.stop_traffic();
  // Links have no delay: what is counted as sent has left at the end of its turn.
  CHECK(eventually([&] { return early->counts(0).seen == counter(worker, "tx_packets", "h1"); }));
  worker.stop();
  CHECK(drain(*early).at(0) == early->counts(0).captured);
  worker.detach(*early);
}

TEST_CASE("worker: a capture of a port or tap that there is none of is refused, and nothing is captured") {
  Links links;
  Worker worker(lab(), links.factory());
  worker.open();
  const auto capture = std::make_shared<Capture>(CaptureOptions{}, 1);
  const auto refused = [&](const Worker::PortPlace& place) {
    const std::vector<Worker::PortPlace> places = {{.tap = 0, .device = 1, .port = 0}, place};
    CHECK_THROWS_AS(worker.attach(capture, places), NativeError);
  };
  const auto all = [&] {
    refused({.tap = 0, .device = 0, .port = 2});
    refused({.tap = 0, .device = 1, .port = 1});
    refused({.tap = 0, .device = 3, .port = 0});
    refused({.tap = 0, .device = SIZE_MAX, .port = 0});
    refused({.tap = 0, .device = 0, .port = SIZE_MAX});
    refused({.tap = 1, .device = 1, .port = 0});
  };
  all();
  worker.begin(monotonic_now());
  REQUIRE(eventually([&] { return worker.ready() && counter(worker, "tx_packets", "h1") > 10; }));
  all();
  CHECK(capture->counts(0).seen == 0);
  worker.stop();
}

TEST_CASE("worker: a capture outlives its worker") {
  const auto capture = std::make_shared<Capture>(CaptureOptions{}, 1);
  {
    Links links;
    Worker worker(lab(), links.factory());
    worker.open();
    worker.attach(capture, std::vector<Worker::PortPlace>{{.tap = 0, .device = 1, .port = 0}});
    worker.begin(monotonic_now());
    REQUIRE(eventually([&] { return capture->counts(0).captured > 10; }));
  }
  CHECK(drain(*capture).at(0) == capture->counts(0).captured);
}
