#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/wire_port.h"
#include "io/memory_port.h"

using namespace weir;

namespace {

constexpr Rate k1G = 1'000'000'000;
constexpr Time kFrameTime = 8'192;  // 1000 bytes and 24 of overhead at 1 Gb/s

struct Wire {
  explicit Wire(Rate rate, Time delay, size_t window = 64, uint32_t slots = 256) {
    auto [near, far] = make_memory_pair({.slots = slots, .slot_bytes = 2'048}, near_clock, far_clock);
    peer = std::move(far);
    port = std::make_unique<WirePort>(std::move(near), rate, delay, window);
  }
  // The peer hands over `count` frames at `stamp`; the first byte of each numbers it.
  void arrive(Time stamp, int count, uint32_t length = 1'000) {
    far_clock.now = stamp;
    for (int i = 0; i < count; ++i) {
      std::vector<uint8_t> bytes(length, next++);
      TxFrame frame;
      frame.data = bytes.data();
      frame.length = length;
      REQUIRE(peer->transmit(std::span(&frame, 1)) == 1);
    }
  }
  PortClock near_clock;
  PortClock far_clock;
  std::unique_ptr<MemoryPort> peer;
  std::unique_ptr<WirePort> port;
  uint8_t next = 0;
};

// A port whose interface is made anew at the first check: three frames are in its ring until then.
class ReplacedPort final : public PacketPort {
 public:
  size_t receive(std::span<RxFrame> frames) override {
    size_t got = 0;
    for (; got < frames.size() && left > 0; ++got, --left) frames[got] = {.data = bytes.data(), .length = 100, .stamp = 1'000};
    lent += got;
    return got;
  }
  void release(size_t count) override { lent -= count; }
  size_t transmit(std::span<const TxFrame> frames) override { return frames.size(); }
  PortLosses losses() override { return {}; }
  PortState state() override { return reopened ? PortState::up : PortState::replaced; }
  uint32_t mtu() override { return present_mtu; }
  void reopen() override {
    CHECK(lent == 0);
    reopened = true;
  }
  std::vector<uint8_t> bytes = std::vector<uint8_t>(100);
  size_t left = 3;
  size_t lent = 0;
  bool reopened = false;
  uint32_t present_mtu = 0;
};

}  // namespace

TEST_CASE("wire port: a burst with one stamp is spread at the link's rate, the delay is added") {
  Wire w(k1G, 500);
  w.arrive(100'000, 4);
  CHECK(w.port->next_arrival() == kNever);
  w.port->poll();
  for (int i = 0; i < 4; ++i) {
    CHECK(w.port->next_arrival() == 100'000 + i * kFrameTime + 500);  // the stamp is of the last bit
    CHECK(w.port->front().data[0] == i);
    w.port->pop();
  }
  CHECK(w.port->next_arrival() == kNever);
  // One that comes while the link is still busy with the burst queues behind it; a later one arrives at its stamp.
  w.arrive(110'000, 1);
  w.arrive(400'000, 1);
  w.port->poll();
  CHECK(w.port->front().stamp == 100'000 + 4 * kFrameTime + 500);
  w.port->pop();
  CHECK(w.port->front().stamp == 400'500);
  CHECK(w.port->received() == 6);
}

TEST_CASE("wire port: arrival times never go back, whatever the stamps") {
  for (const Rate rate : {Rate{0}, k1G, Rate{700'000'000}}) {
    Wire w(rate, 0);
    for (const Time stamp : {Time{500'000}, Time{400'000}, Time{500'001}, Time{0}, Time{900'000}, Time{899'999}})
      w.arrive(stamp, 3);
    w.port->poll();
    Time previous = 0;
    for (; w.port->next_arrival() != kNever; w.port->pop()) {
      CHECK(w.port->next_arrival() >= previous);
      previous = w.port->next_arrival();
    }
    CHECK(previous >= 900'000);
  }
}

TEST_CASE("wire port: without a rate a frame arrives at its stamp plus the delay") {
  Wire w(0, 2'000);
  w.arrive(7'000, 2);
  w.port->poll();
  CHECK(w.port->front().stamp == 9'000);
  w.port->pop();
  CHECK(w.port->front().stamp == 9'000);
}

TEST_CASE("wire port: no more is borrowed than fits the window; what is given back makes room, in order") {
  Wire w(k1G, 0, 8, 16);
  w.arrive(0, 16);
  w.port->poll();
  CHECK(w.port->received() == 8);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 2; ++i) {
      CHECK(w.port->front().data[0] == round * 2 + i);
      w.port->pop();
    }
    w.port->poll();  // used, but not given back: still no room
    CHECK(w.port->received() == static_cast<uint64_t>(8 + 2 * round));
    w.port->give_back();
    w.port->poll();
    CHECK(w.port->received() == static_cast<uint64_t>(10 + 2 * round));
  }
  for (int i = 8; i < 16; ++i) {
    CHECK(w.port->front().data[0] == i);
    w.port->pop();
  }
  w.port->give_back();
  w.arrive(kSecond, 16);  // all slots of the ring are free again
}

TEST_CASE("wire port: what the port does not take yet is kept, in order, and freed once sent") {
  Wire w(k1G, 0, 64, 4);
  PacketPool pool(16, 256);
  for (uint8_t i = 0; i < 10; ++i) {
    const PacketId id = pool.allocate();
    pool[id].length = 100;
    pool.data(id)[0] = i;
    w.port->send(pool, id);
  }
  uint8_t expected = 0;
  while (expected < 10) {
    CHECK(w.port->flush(pool) == 0);
    RxFrame frames[16];
    const size_t got = w.peer->receive(frames);
    REQUIRE(got > 0);
    for (size_t i = 0; i < got; ++i) CHECK(frames[i].data[0] == expected++);
    w.peer->release(got);
    CHECK(pool.available() == 6u + expected);
  }
  CHECK(w.port->unsent() == 0);
}

TEST_CASE("wire port: frames that wait when the interface is replaced are counted, read or not") {
  auto inner = std::make_unique<ReplacedPort>();
  ReplacedPort& replaced = *inner;
  WirePort port(std::move(inner), 0, kSecond, 2);  // a delay that none of them has seen the end of, room for two
  port.poll();
  CHECK(replaced.left == 1);
  CHECK(port.check().reopened);
  CHECK(port.up());
  CHECK(port.counters().host_rx_abandoned == 3);
  CHECK(port.next_arrival() == kNever);
  CHECK_FALSE(port.check().any());
}

TEST_CASE("wire port: a changed MTU is told once, and one that is gone has not changed") {
  auto inner = std::make_unique<ReplacedPort>();
  ReplacedPort& interface = *inner;
  interface.reopened = true;
  WirePort port(std::move(inner), 0, 0, 8);
  CHECK_FALSE(port.check().any());
  CHECK(port.mtu() == 0);
  interface.present_mtu = 1500;
  CHECK(port.check().mtu);
  CHECK_FALSE(port.check().any());
  interface.present_mtu = 0;
  CHECK_FALSE(port.check().any());
  CHECK(port.mtu() == 1500);
  interface.present_mtu = 9000;
  const WirePort::Changes changes = port.check();
  CHECK(changes.mtu);
  CHECK_FALSE(changes.up);
  CHECK_FALSE(changes.reopened);
  CHECK(port.mtu() == 9000);
}
