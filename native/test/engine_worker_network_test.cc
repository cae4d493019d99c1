#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/worker.h"
#include "test/memory_port.h"
#include "test/nic_harness.h"
#include "test/refusal.h"

using namespace weir;
using namespace weir::test;

namespace {

// NICs 1 and 2 of a network of three; 1 sends two messages to 2, which sends to 0, too.
WorkerConfig part_of_network() {
  WorkerConfig config;
  config.packets = 512;
  for (const uint64_t place : {1, 2}) {
    NicDeviceConfig& nic = config.nics.emplace_back();
    nic.name = nic.port.name = nic.port.interface = "h" + std::to_string(place);
    nic.port.rate = 100'000'000;
    nic.parameters = nic_parameters(nic.port.rate);
    nic.parameters.mac = kNicMac + place;
    nic.arrears = kMillisecond;
    nic.lab = true;
  }
  WorkerNetwork& network = config.network.emplace();
  network.nics = {{{10, 0, 0, 1}}, {{10, 0, 0, 2}}, {{10, 0, 0, 3}}};
  network.first_mac = kNicMac;
  network.names = {"away", "messages"};
  network.sizes = {9, 3'000, 1'000};
  network.flows.resize(2);
  network.flows[0].from = 2;
  network.flows[0].to = 0;
  network.flows[0].start = kSecond;
  network.flows[1].from = 1;
  network.flows[1].to = 2;
  network.flows[1].sizes_first = 1;
  network.flows[1].sizes_count = 2;
  for (NetworkFlow& flow : network.flows) flow.reliable = true;
  return config;
}

}  // namespace

TEST_CASE("worker's network: its NICs have their queue pairs, by their names, and others' have none") {
  const WorkerConfig config = laid_out(part_of_network());
  const NicDeviceConfig &first = config.nics[0], &second = config.nics[1];
  REQUIRE(first.queue_pairs.size() == 1);
  REQUIRE(second.queue_pairs.size() == 2);
  CHECK(first.queue_pair_settings[0].name == "messages");
  CHECK(second.queue_pair_settings[0].name == "away");
  CHECK(second.queue_pair_settings[1].name == "messages");
  CHECK(first.queue_pairs[0].remote_qpn == 0x12);
  CHECK(first.queue_pairs[0].path.destination_mac == kNicMac + 2);
  CHECK(second.queue_pairs[0].remote_qpn == 0x11);
  CHECK(second.queue_pairs[0].path.destination_mac == kNicMac);
  CHECK(second.queue_pairs[0].start == kSecond);
  CHECK(second.queue_pairs[1].start == kNever);
}

TEST_CASE("worker's network: a graph's flows are places among their senders' queue pairs") {
  WorkerConfig config = part_of_network();
  config.graph.emplace().connections = {{0, 1, 0}, {1, 0, 1}};
  std::swap(config.network->flows[0], config.network->flows[1]);
  config.network->flows[0].from = 2;
  config.network->flows[0].to = 1;
  const WorkerConfig laid = laid_out(config);
  CHECK(laid.graph->connections[0].stream == 0);
  CHECK(laid.graph->connections[1].stream == 1);
  config.graph->connections[1].stream = 2;
  CHECK(refusal([&] { laid_out(config); }) == "INVALID_CONFIG");
}

TEST_CASE("worker's network: NICs that are not of it, flows without a name and numbers beyond are refused") {
  const auto refused = [](const std::function<void(WorkerConfig&)>& change) {
    WorkerConfig config = part_of_network();
    change(config);
    return refusal([&] { laid_out(config); });
  };
  CHECK(refused([](WorkerConfig&) {}) == "");
  CHECK(refused([](WorkerConfig& c) { c.nics[0].parameters.mac = kNicMac + 3; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.nics[0].parameters.mac = kNicMac - 1; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.nics[0].parameters.first_qpn = 0x20; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.network->names.pop_back(); }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.network->flows[1].to = 3; }) == "INVALID_CONFIG");
  CHECK(refused([](WorkerConfig& c) { c.network->flows[1].priority = 8; }) == "INVALID_CONFIG");
}

TEST_CASE("worker's network: messages of a list of sizes arrive, and a change finds the queue pairs that run") {
  std::unique_ptr<MemoryPort> other;
  const PortFactory factory = [&](const PortConfig&, const PortClock& clock, LentPackets&) -> std::unique_ptr<PacketPort> {
    if (other != nullptr) return std::move(other);
    auto [near, far] = make_memory_pair({}, clock, clock);
    other = std::move(far);
    return std::move(near);
  };
  Worker worker(part_of_network(), factory);
  worker.open();
  worker.begin(monotonic_now());
  std::vector<double> sizes;
  for (int i = 0; i < 5'000 && sizes.size() < 2; ++i) {
    for (Record record; worker.records().pop(record);) {
      if (record.kind == Record::Kind::message) sizes.push_back(record.values[1]);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(sizes == std::vector<double>{3'000, 1'000});
  WorkerConfig changed = part_of_network();
  changed.network->flows[0].rate_cap = 1'000'000;
  worker.reconfigure(changed);
  CHECK(worker.nics()[1]->queue_pair_name(0) == "away");
  worker.look([&] { CHECK(worker.nics()[1]->soft_nic().queue_pairs()[0].parameters.rate_cap == 1'000'000); });
  changed.network->flows.pop_back();
  changed.network->names.pop_back();
  CHECK(refusal([&] { worker.reconfigure(changed); }) == "INVALID_CONFIG");
}
