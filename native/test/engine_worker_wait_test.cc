// Waits of a worker's loop, which others may turn.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "base/native_error.h"
#include "engine/worker.h"
#include "test/memory_port.h"
#include "test/nic_harness.h"
#include "test/super_frames.h"

using namespace weir;
using namespace weir::test;

namespace {

// A NIC of applications; the test has the other end of its link.
struct Bed {
  explicit Bed(const WorkerConfig& config)
      : worker(config, [this](const PortConfig&, const PortClock& own, LentPackets&) -> std::unique_ptr<PacketPort> {
          auto [near, other] = make_memory_pair({}, own, clock);
          far = std::move(other);
          return std::move(near);
        }) {
    clock.read = monotonic_now;
    worker.open();
    worker.begin(monotonic_now());
    REQUIRE(eventually([&] { return worker.ready(); }));
  }
  ~Bed() { worker.stop(); }
  static WorkerConfig config(Polling polling) {
    WorkerConfig config;
    config.name = "test";
    config.packets = 512;
    config.polling = polling;
    NicDeviceConfig nic;
    nic.name = nic.port.name = nic.port.interface = "nic";
    nic.port.rate = 10'000'000'000;
    nic.parameters = nic_parameters();
    nic.parameters.mac = kNicMac;
    nic.parameters.verbs_queue_pairs = 4;
    nic.arrears = kMillisecond;
    config.nics = {nic};
    return config;
  }
  static bool eventually(const std::function<bool()>& done) {
    for (int i = 0; i < 20'000; ++i) {
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  }
  // Sends to the worker's NIC, for the slow path.
  bool offer() const {
    uint8_t arp[60] = {};
    store_ethernet(arp, {.destination_mac = 0xffffffffffff, .source_mac = kPeerMac}, 0x0806);
    TxFrame frame;
    frame.data = arp;
    frame.length = sizeof arp;
    return far->transmit(std::span(&frame, 1)).sent == 1;
  }
  // Takes what comes from the worker.
  bool comes() const {
    RxFrame frame;
    if (far->receive(std::span(&frame, 1)) == 0) return false;
    far->release(1);
    return true;
  }

  PortClock clock;
  std::unique_ptr<MemoryPort> far;
  Worker worker;
};

TEST_CASE("worker: who polls turns the loop, and its own thread is there again afterwards") {
  Bed bed(Bed::config(Polling::adaptive));
  // A helper may find that the thread was there before it, also often.
  REQUIRE(Bed::eventually([&] { return bed.offer() && bed.worker.help(); }));
  uint64_t before = 0;
  const auto received = [&] {
    uint64_t count = 0;
    bed.worker.between_turns([&] { count = bed.worker.nics()[0]->ports()[0].received(); });
    return count;
  };
  before = received();
  // Nobody says that it rests; then somebody does.
  REQUIRE(bed.offer());
  CHECK(Bed::eventually([&] { return received() > before; }));
  bed.worker.help();
  bed.worker.rest();
  before = received();
  REQUIRE(bed.offer());
  CHECK(Bed::eventually([&] { return received() > before; }));
}

TEST_CASE("worker: what is asked for between turns is done while others turn the loop, and stop() ends that") {
  Bed bed(Bed::config(Polling::adaptive));
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> turns{0};
  std::thread helper([&] {
    while (!ends) turns += bed.worker.help() ? 1 : 0;
  });
  for (int i = 0; i < 50; ++i) {
    int done = 0;
    bed.worker.between_turns([&] { ++done; });
    CHECK(done == 1);
    CHECK_THROWS_AS(bed.worker.between_turns([] { throw NativeError("REFUSED", 0, "", "no", "none"); }), NativeError);
    REQUIRE(bed.offer());
  }
  CHECK(Bed::eventually([&] {
    bed.offer();  // those before may have been the thread's, or there is no room for more of them yet
    return turns > 0;
  }));
  bed.worker.stop();
  ends = true;
  helper.join();
  CHECK_FALSE(bed.worker.help());
  CHECK_FALSE(bed.worker.failed());
}

TEST_CASE("worker: one that spins turns many times between two naps while frames come, and sleeps when they do not") {
  Bed bed(Bed::config(Polling::spinning));
  uint64_t naps = 0;  // and other waits
  const auto turns = [&] {
    uint64_t count = 0;
    bed.worker.between_turns([&] {
      rusage own{};
      ::getrusage(RUSAGE_THREAD, &own);
      naps = static_cast<uint64_t>(own.ru_nvcsw);
      count = bed.worker.fidelity().loop_gap.total();
    });
    return count;
  };
  const Time begin = monotonic_now();
  turns();
  const uint64_t naps_before = naps;
  CHECK(Bed::eventually([&] {
    bed.offer();
    const uint64_t count = turns();
    return naps > naps_before + 10 && count > 20 * naps;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const uint64_t before = turns();
  const Time idle_from = monotonic_now();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // It tells what was counted, and looks at its interfaces.
  CHECK(turns() - before < 20 + static_cast<uint64_t>((monotonic_now() - idle_from) / kMillisecond));
  bed.worker.stop();
  CHECK(bed.worker.fidelity().busy > 0);
  CHECK(bed.worker.fidelity().busy <= static_cast<uint64_t>(monotonic_now() - begin));
}

TEST_CASE("worker: one that is to have real-time priority has it, or says that it has not") {
  WorkerConfig config = Bed::config(Polling::interrupt);
  for (const bool wanted : {false, true}) {
    config.real_time = wanted;
    Bed bed(config);
    int policy = 0;
    bed.worker.between_turns([&] { policy = ::sched_getscheduler(0); });
    bed.worker.stop();
    const Worker::Fidelity& fidelity = bed.worker.fidelity();
    CHECK(fidelity.real_time == (policy == (SCHED_RR | SCHED_RESET_ON_FORK)));
    const bool refused =
        std::ranges::any_of(fidelity.tuning, [](const std::string& what) { return what.starts_with("real-time"); });
    CHECK(refused == (wanted && !fidelity.real_time));
    CHECK((wanted || !fidelity.real_time));
  }
}

// Its port fails.
struct FailingPort final : PacketPort {
  explicit FailingPort(const std::atomic<bool>& fails) : fails_(fails) {}
  size_t receive(std::span<RxFrame>) override {
    if (fails_) throw NativeError("EIO", 5, "recv", "the port has failed", "none");
    return 0;
  }
  void release(size_t) override {}
  Transmitted transmit(std::span<const TxFrame> frames) override { return {frames.size()}; }
  PortLosses losses() override { return {}; }
  const std::atomic<bool>& fails_;
};

TEST_CASE("worker: what fails in a helper's turn ends the worker, and nobody turns it any more") {
  std::atomic<bool> fails{false};
  Worker worker(Bed::config(Polling::adaptive),
                [&](const PortConfig&, const PortClock&, LentPackets&) { return std::make_unique<FailingPort>(fails); });
  worker.open();
  worker.begin(monotonic_now());
  REQUIRE(Bed::eventually([&] { return worker.ready(); }));
  for (int i = 0; i < 1'000; ++i) worker.help();
  fails = true;
  CHECK(Bed::eventually([&] {
    CHECK_FALSE(worker.help());
    return worker.failed();
  }));
  CHECK_FALSE(worker.help());
  worker.stop();
  CHECK(worker.failure().find("the port has failed") != std::string::npos);
}

TEST_CASE("worker: where little comes, a nap is not what makes it wait") {
  WorkerConfig config = Bed::config(Polling::interrupt);
  config.quantum = 5 * kSecond;  // eight of these naps, and the test has lost its patience
  config.prompt = true;
  Bed bed(config);
  uint8_t frame[60] = {};
  store_ethernet(frame, {.destination_mac = kPeerMac, .source_mac = kNicMac}, 0x0806);
  const Time began = monotonic_now();
  for (int i = 0; i < 8; ++i) {
    REQUIRE(bed.worker.inject(0, 0, frame));
    CHECK(Bed::eventually([&] { return bed.comes(); }));
  }
  CHECK(monotonic_now() - began < 8 * config.quantum);
}

// Has a super-frame in each 10 us for who looks, and says so by its descriptor only when it is told to.
struct BulkPort final : PacketPort {
  BulkPort() : event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~BulkPort() override { ::close(event); }
  size_t receive(std::span<RxFrame> frames) override {
    const Time now = monotonic_now();
    if (frames.empty() || now - given_at < 10 * kMicrosecond) return 0;
    given_at = now;
    bytes = super.bytes;
    frames[0] = {};
    frames[0].data = bytes.data();
    frames[0].length = static_cast<uint32_t>(bytes.size());
    frames[0].stamp = now - 5 * kMicrosecond;  // the time is before the turn began
    frames[0].offload = super.offload;
    ++given;
    return 1;
  }
  void release(size_t) override {}
  Transmitted transmit(std::span<const TxFrame> frames) override { return {frames.size()}; }
  int wait_descriptor() const override { return event; }

  const int event;
  const SuperFrame super = join_all(roce_packets(path_to(kNicMac, kPeerMac), 10, 100, 100));
  Bytes bytes;  // the NIC takes it apart in place
  Time given_at = 0;
  std::atomic<uint64_t> given{0};
};

TEST_CASE("worker: where super-frames follow closely it stays awake for the next") {
  WorkerConfig config = Bed::config(Polling::interrupt);
  config.prompt = true;
  config.nics[0].port.rate = 0;
  BulkPort* port = nullptr;
  Worker worker(config, [&](const PortConfig&, const PortClock&, LentPackets&) {
    auto made = std::make_unique<BulkPort>();
    port = made.get();
    return made;
  });
  worker.open();
  worker.begin(monotonic_now());
  REQUIRE(Bed::eventually([&] { return worker.ready(); }));
  // Woken for each it sees that they come closely; then nobody wakes it.
  CHECK(Bed::eventually([&] {
    eventfd_t ignored;
    ::eventfd_write(port->event, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::eventfd_read(port->event, &ignored);
    const uint64_t before = port->given;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return port->given > before + 20;
  }));
  worker.stop();
}

}  // namespace
