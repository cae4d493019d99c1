// Work that sends nothing, and memory windows as the table of memory knows them.
#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Pair;
using test::Region;

SendWork local(uint64_t id) { return {id, WorkOpcode::send, kSignaled | kLocal}; }

TEST_CASE("work that sends nothing is complete when all before it is, and what is behind it goes on") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (double loss : {0.0, 0.2}) {
      Pair pair(3);
      pair.both([&](QueueAttributes& a) { a.recovery = recovery, a.path_mtu = 256; });
      pair.faults.loss = loss;
      pair.connect();
      const Region from = pair.left.make_region(5'000, 1);
      const Region to = pair.right.make_region(5'000, 2);
      const auto write = [&](uint64_t id, uint32_t length) {
        SendWork work{id, WorkOpcode::write, kSignaled, length, from.address, from.key, to.key, to.address};
        pair.left.rc.post_send(work);
      };
      pair.left.rc.post_send(local(0));
      CHECK(pair.left.take().size() == 1);  // nothing is before it
      write(1, 5'000);
      pair.left.rc.post_send(local(2));
      pair.left.rc.post_send(local(3));
      CHECK(pair.left.take().empty());
      write(4, 3'000);
      write(5, 0);
      pair.left.rc.post_send(local(6));
      REQUIRE(pair.run());
      const std::vector<Completion> done = pair.left.take();
      REQUIRE(done.size() == 6);
      for (size_t i = 0; i < done.size(); ++i) {
        CHECK(done[i].id == i + 1);
        CHECK(done[i].status == WorkStatus::success);
      }
      CHECK(std::memcmp(from.data(), to.data(), 5'000) == 0);
      write(7, 100);
      REQUIRE(pair.run());
      CHECK(pair.left.take().size() == 1);
    }
  }
}

TEST_CASE("work that sends nothing is flushed with the rest") {
  Pair pair;
  pair.connect();
  pair.left.rc.post_send({1, WorkOpcode::send, kSignaled, 0});
  pair.left.rc.post_send(local(2));
  pair.left.rc.modify(QueuePairState::error, {});
  const std::vector<Completion> done = pair.left.take();
  REQUIRE(done.size() == 2);
  CHECK(done[1].status == WorkStatus::flushed);
}

TEST_CASE("a key may be changed to one that no other region has") {
  MemoryTable memory(4);
  uint8_t bytes[16];
  const uint32_t key = memory.add({bytes, 0, sizeof bytes, 7, kRemoteRead, nullptr});
  const uint32_t other = memory.add({bytes, 0, sizeof bytes, 7, kRemoteRead, nullptr});
  CHECK_FALSE(memory.rename(key, other));
  CHECK_FALSE(memory.rename(key, 0));
  const uint32_t to = key + 1 == other || key + 1 == 0 ? key + 2 : key + 1;
  REQUIRE(memory.rename(key, to));
  CHECK(memory.find(key, 7, 0, 1, kRemoteRead) == nullptr);
  CHECK(memory.find(to, 7, 0, 1, kRemoteRead) == bytes);
  CHECK_FALSE(memory.rename(key, key));
  CHECK(memory.remove(to));
  CHECK(memory.find(other, 7, 0, 1, kRemoteRead) == bytes);
}

TEST_CASE("a window that is a queue pair's is no other's") {
  MemoryTable memory(4);
  uint8_t bytes[16];
  MemoryRegion window{bytes, 0, sizeof bytes, 7, kRemoteRead, nullptr};
  window.qpn = 21;
  const uint32_t key = memory.add(window);
  CHECK(memory.find(key, 7, 0, 1, kRemoteRead, 21) == bytes);
  CHECK(memory.find(key, 7, 0, 1, kRemoteRead, 22) == nullptr);
  CHECK(memory.find(key, 7, 0, 1, kRemoteRead) == nullptr);
}

TEST_CASE("what is written to memory that is none goes elsewhere than what is read there comes from") {
  MemoryTable memory(4);
  uint8_t zero[1];
  uint8_t sink[1];
  MemoryRegion none{zero, 0, UINT64_MAX, 7, kLocalWrite, nullptr};
  none.scratch = true;
  none.sink = sink;
  const uint32_t key = memory.add(none);
  CHECK(memory.find(key, 7, 0x1234'0000'0000, 4'096, 0) == zero);
  CHECK(memory.find(key, 7, 0x1234'0000'0000, 4'096, kLocalWrite) == sink);
}

}  // namespace
}  // namespace weir
