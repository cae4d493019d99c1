#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "base/native_error.h"
#include "test/memory_port.h"

using namespace weir;

namespace {

std::vector<uint8_t> numbered(uint32_t number, size_t length = 64) {
  std::vector<uint8_t> bytes(length, static_cast<uint8_t>(number));
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

size_t send(PacketPort& port, const std::vector<uint8_t>& bytes) {
  const TxFrame frame{bytes.data(), static_cast<uint32_t>(bytes.size())};
  return port.transmit({&frame, 1}).sent;
}

uint32_t number_of(const RxFrame& frame) {
  uint32_t number = 0;
  std::memcpy(&number, frame.data, sizeof number);
  return number;
}

}  // namespace

TEST_CASE("memory port: frames cross both ways in order, with the sender's stamp") {
  PortClock left_clock{100, 0};
  PortClock right_clock{900, 0};
  auto [left, right] = make_memory_pair({4, 128}, left_clock, right_clock);
  std::array<RxFrame, 8> frames;
  CHECK(send(*left, numbered(1, 60)) == 1);
  left_clock.now = 200;
  CHECK(send(*left, numbered(2, 128)) == 1);
  CHECK(send(*right, numbered(7)) == 1);

  REQUIRE(right->receive(frames) == 2);
  CHECK(number_of(frames[0]) == 1);
  CHECK(frames[0].length == 60);
  CHECK(frames[0].stamp == 100);
  CHECK(std::memcmp(frames[1].data, numbered(2, 128).data(), 128) == 0);
  CHECK(frames[1].length == 128);
  CHECK(frames[1].stamp == 200);
  CHECK_FALSE(frames[0].vlan_stripped);
  CHECK(right->receive(frames) == 0);  // borrowed frames are not seen twice

  REQUIRE(left->receive(frames) == 1);
  CHECK(number_of(frames[0]) == 7);
  CHECK(frames[0].stamp == 900);
}

TEST_CASE("memory port: a full ring takes fewer frames, until some are released") {
  PortClock clock;
  auto [left, right] = make_memory_pair({3, 64}, clock, clock);
  std::array<RxFrame, 8> frames;
  std::array<std::vector<uint8_t>, 5> bytes;
  std::array<TxFrame, 5> batch;
  for (uint32_t i = 0; i < 5; ++i) {
    bytes[i] = numbered(i);
    batch[i] = {bytes[i].data(), 64};
  }
  CHECK(left->transmit(batch).sent == 3);
  CHECK(left->transmit({&batch[3], 2}).sent == 0);
  REQUIRE(right->receive(frames) == 3);
  CHECK(left->transmit({&batch[3], 2}).sent == 0);  // received is not yet released
  right->release(1);
  CHECK(left->transmit({&batch[3], 2}).sent == 1);
  CHECK(number_of(frames[1]) == 1);  // still borrowed, not overwritten
  CHECK(number_of(frames[2]) == 2);
  REQUIRE(right->receive(frames) == 1);
  CHECK(number_of(frames[0]) == 3);
  CHECK(left->losses().transmit_errors == 0);
}

TEST_CASE("memory port: order holds over many turns of the ring, in batches of every size") {
  PortClock clock;
  auto [left, right] = make_memory_pair({7, 64}, clock, clock);
  std::array<RxFrame, 8> frames;
  uint32_t sent = 0;
  uint32_t seen = 0;
  for (uint32_t turn = 0; turn < 500; ++turn) {
    for (uint32_t i = 0; i < turn % 9; ++i) sent += static_cast<uint32_t>(send(*left, numbered(sent)));
    const size_t count = right->receive({frames.data(), turn % 5});
    for (size_t i = 0; i < count; ++i) REQUIRE(number_of(frames[i]) == seen++);
    right->release(count);
  }
  CHECK(sent > 900);
  CHECK(sent - seen <= 7);
}

TEST_CASE("memory port: a frame longer than a slot is refused, counted and not delivered") {
  PortClock clock;
  auto [left, right] = make_memory_pair({2, 64}, clock, clock);
  std::array<RxFrame, 4> frames;
  CHECK(send(*left, numbered(1, 65)) == 0);
  CHECK(send(*left, numbered(2, 64)) == 1);
  CHECK(left->losses().transmit_errors == 1);
  REQUIRE(right->receive(frames) == 1);
  CHECK(number_of(frames[0]) == 2);
}

TEST_CASE("memory port: either end may go first") {
  PortClock clock;
  auto [left, right] = make_memory_pair({2, 64}, clock, clock);
  std::array<RxFrame, 4> frames;
  send(*left, numbered(1));
  left.reset();
  REQUIRE(right->receive(frames) == 1);
  CHECK(number_of(frames[0]) == 1);
  right->release(1);
  CHECK(send(*right, numbered(2)) == 1);
  CHECK(send(*right, numbered(3)) == 1);
  CHECK(send(*right, numbered(4)) == 0);
}

TEST_CASE("memory port: sizes of 0 are refused") {
  PortClock clock;
  CHECK_THROWS_AS(make_memory_pair({0, 64}, clock, clock), NativeError);
  CHECK_THROWS_AS(make_memory_pair({4, 0}, clock, clock), NativeError);
}

TEST_CASE("memory port: two threads, both ways, every byte in order") {
  constexpr uint32_t kFrames = 100'000;
  PortClock clock;
  auto pair = make_memory_pair({16, 64}, clock, clock);
  // Sends kFrames and receives kFrames; returns how many arrived in order with the right bytes.
  const auto side = [](PacketPort& port) {
    std::array<RxFrame, 8> frames;
    uint32_t sent = 0;
    uint32_t received = 0;
    uint32_t right = 0;
    while (sent < kFrames || received < kFrames) {
      const uint32_t before = sent + received;
      if (sent < kFrames) sent += static_cast<uint32_t>(send(port, numbered(sent)));
      const size_t count = port.receive(frames);
      for (size_t i = 0; i < count; ++i) {
        const std::vector<uint8_t> expected = numbered(received + static_cast<uint32_t>(i));
        right += frames[i].length == 64 && std::memcmp(frames[i].data, expected.data(), 64) == 0;
      }
      port.release(count);
      received += static_cast<uint32_t>(count);
      if (sent + received == before) std::this_thread::yield();
    }
    return right;
  };
  uint32_t right_count = 0;
  std::thread other([&] { right_count = side(*pair.second); });
  const uint32_t left_count = side(*pair.first);
  other.join();
  CHECK(left_count == kFrames);
  CHECK(right_count == kFrames);
}
