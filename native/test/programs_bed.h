// Programs on NICs, all in this process: a worker with two NICs joined by a link, a broker for each as the daemon has one in
// TypeScript, and libraries of programs (test/test_program.h) that find them by their sockets. It runs in real time, in the
// threads that there would be.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/worker.h"
#include "test/memory_port.h"
#include "test/nic_harness.h"
#include "test/test_broker.h"

namespace weir::test {

struct ProgramsBed {
  // `loss`: of the frames that each NIC receives.
  explicit ProgramsBed(double loss = 0, const CongestionParameters& congestion = nic_parameters().congestion)
      : ProgramsBed(config(loss, congestion), factory(), false) {}
  // `lends`: programs have paths of their own.
  ProgramsBed(const WorkerConfig& config, PortFactory ports, bool lends) : worker(config, std::move(ports)) {
    worker.open();
    worker.begin(monotonic_now());
    REQUIRE(eventually([&] { return worker.ready(); }));
    char made[] = "/tmp/weir-programs-XXXXXX";
    REQUIRE(::mkdtemp(made) != nullptr);
    folder = made;
    for (size_t nic : {0, 1}) {
      brokers[nic] = std::make_unique<TestBroker>(turns, nic, folder + "/" + std::to_string(nic), lends);
    }
  }
  ~ProgramsBed() {
    for (auto& broker : brokers) broker.reset();
    worker.stop();
    ::rmdir(folder.c_str());
  }
  PortFactory factory() {
    return [this](const PortConfig&, const PortClock& clock, LentPackets&) -> std::unique_ptr<PacketPort> {
      if (other != nullptr) return std::move(other);
      auto [near, far] = make_memory_pair({1024, 2048}, clock, clock);
      other = std::move(far);
      return std::move(near);
    };
  }
  static WorkerConfig config(double loss, const CongestionParameters& congestion) {
    WorkerConfig config;
    config.name = "test";
    config.packets = 4096;
    config.polling = Polling::adaptive;
    for (int i : {0, 1}) {
      NicDeviceConfig nic;
      nic.name = i == 0 ? "a" : "b";
      nic.port.name = nic.port.interface = nic.name;
      nic.port.rate = 10'000'000'000;
      if (loss > 0) {
        nic.port.impairment.emplace();
        nic.port.impairment->parameters.loss = loss;
        nic.port.impairment->component = static_cast<uint64_t>(i);
      }
      nic.parameters = nic_parameters();
      nic.parameters.mac = kMacs[i];
      nic.parameters.congestion = congestion;
      nic.parameters.verbs_queue_pairs = 64;
      nic.parameters.addresses.push_back({4, {10, 0, 0, static_cast<uint8_t>(kMacs[i])}});
      nic.arrears = kMillisecond;
      config.nics.push_back(nic);
    }
    return config;
  }
  uint64_t refused(size_t nic) {
    uint64_t count = 0;
    turns.between([&](auto& nics) { count = nics[nic]->soft_nic().transport_counters().drop_program_packet; });
    return count;
  }

  std::unique_ptr<MemoryPort> other;
  Worker worker;
  Turns turns{worker};
  std::string folder;
  std::unique_ptr<TestBroker> brokers[2];
};

}  // namespace weir::test
