// A daemon's NIC as an application of this process has it, with the daemon's engine at the other end.
#include <atomic>
#include <vector>

#include "engine/daemon_nic.h"
#include "test/programs_bed.h"

namespace weir::test {
namespace {

struct Application {
  Application(ProgramsBed& bed, size_t at) : nic(bed.brokers[at]->path(), [this] { ++rings; }) {
    region.data = bytes.data();
    region.address = reinterpret_cast<uintptr_t>(bytes.data());
    region.length = bytes.size();
    region.domain = 1;
    region.access = kLocalWrite | kRemoteWrite;
    key = nic.register_memory(region);
    qpn = nic.create_queue_pair({.send_depth = 16, .receive_depth = 16});
  }
  void modify(QueuePairState state, uint64_t peer_mac, uint32_t peer) {
    ProgramChange change;
    change.state = state;
    change.attributes.domain = 1;
    change.attributes.access = kRemoteWrite;
    change.attributes.remote_qpn = peer;
    change.attributes.timeout = 18;
    change.way.gid[15] = static_cast<uint8_t>(peer_mac);
    nic.modify_queue_pair(qpn, change);
  }
  void connect(uint64_t peer_mac, uint32_t peer) {
    for (const auto state : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) modify(state, peer_mac, peer);
  }
  void post(const WorkCommand& command) {
    bool first = true;
    nic.post([&](WorkCommand& out) {
      out = command;
      return std::exchange(first, false);
    });
  }
  Completion wait() {
    Completion completion;
    REQUIRE(eventually([&] {
      nic.rearm();
      return nic.completions().pop(completion);
    }));
    return completion;
  }

  std::atomic<uint32_t> rings{0};
  std::vector<uint8_t> bytes = std::vector<uint8_t>(100'000);
  MemoryRegion region;
  DaemonNic nic;
  uint32_t key = 0;
  uint32_t qpn = 0;
};

TEST_CASE("daemon's NIC: a WRITE arrives, and the doorbell rings for its completion") {
  ProgramsBed bed;
  Application left(bed, 0);
  Application right(bed, 1);
  left.connect(kMacs[1], right.qpn);
  right.connect(kMacs[0], left.qpn);
  for (size_t i = 0; i < left.bytes.size(); ++i) left.bytes[i] = static_cast<uint8_t>(i * 7);
  WorkCommand command;
  command.qpn = left.qpn;
  command.work = {.id = 5, .opcode = WorkOpcode::write, .flags = kSignaled, .length = 100'000};
  command.work.local_address = left.region.address;
  command.work.local_key = left.key;
  command.work.remote_address = right.region.address;
  command.work.remote_key = right.key;
  left.post(command);
  const Completion completion = left.wait();
  CHECK(completion.id == 5);
  CHECK(completion.status == WorkStatus::success);
  CHECK(left.rings > 0);
  right.nic.close();
  CHECK(right.bytes == left.bytes);
  left.nic.close();
}

TEST_CASE("daemon's NIC: when the daemon is gone, what was posted is flushed and each queue pair hears of it") {
  ProgramsBed bed;
  Application left(bed, 0);
  left.modify(QueuePairState::init, 0, 0);
  WorkCommand command;
  command.qpn = left.qpn;
  command.receive = true;
  command.work.id = 8;
  left.post(command);
  bed.brokers[0]->hang_up();
  const Completion flushed = left.wait();
  CHECK(flushed.id == 8);
  CHECK(flushed.status == WorkStatus::flushed);
  const Completion event = left.wait();
  CHECK(event.retired == 0);
  CHECK(event.status == WorkStatus::flushed);
  CHECK(eventually([&] { return left.nic.over(); }));
  CHECK_THROWS_AS(left.nic.create_queue_pair({}), NativeError);
  // It is in the error state already, and may be told to be.
  left.modify(QueuePairState::error, 0, 0);
  left.nic.close();
}

TEST_CASE("daemon's NIC: queue pairs hold no more work than completions find room for") {
  ProgramsBed bed;
  Application left(bed, 0);
  CHECK_THROWS_AS(left.nic.create_queue_pair({.send_depth = WorkBudget::kMost, .receive_depth = 1}), NativeError);
  CHECK(left.nic.destroy_queue_pair(left.qpn));
  CHECK_FALSE(left.nic.destroy_queue_pair(left.qpn));
}

}  // namespace
}  // namespace weir::test
