#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>

#include "base/random.h"
#include "switching/shared_buffer.h"

using weir::Admission;
using weir::BufferParameters;
using weir::SharedBuffer;

namespace {

constexpr uint8_t kLossless = 1 << 3;

// The switch of the paper's section 4: 12 MB, 32 ports, 8 priorities, 22.4 KB of headroom, beta 8.
BufferParameters paper() { return {}; }

}  // namespace

TEST_CASE("shared buffer: the thresholds of section 4 of the DCQCN paper") {
  SharedBuffer buffer(paper(), 32, kLossless);
  // B - P n t_flight = 12 MB - 8 * 32 * 22.4 KB
  CHECK(buffer.shared_size() == 6'265'600);
  // Static bound (B - P n t_flight) / (P n) = 24.47 KB, as the paper states.
  CHECK(buffer.shared_size() / (8 * 32) == 24'475);
  CHECK(buffer.pfc_threshold() == 6'265'600);  // beta (B - P n t_flight - s) / P with beta = P and s = 0
  for (int i = 0; i < 100; ++i) REQUIRE(buffer.admit(0, 1, 3, 10'000) == Admission::admitted);
  CHECK(buffer.pfc_threshold() == 5'265'600);

  BufferParameters other = paper();
  other.beta = 2;
  SharedBuffer quarter(other, 32, kLossless);
  REQUIRE(quarter.admit(0, 1, 3, 65'600) == Admission::admitted);
  CHECK(quarter.pfc_threshold() == 1'550'000);  // 2 * 6.2 MB / 8
}

TEST_CASE("shared buffer: without PFC nothing is reserved for headroom") {
  SharedBuffer buffer(paper(), 32, 0);
  CHECK(buffer.shared_size() == 12'000'000);
}

TEST_CASE("shared buffer: XOFF above the fixed threshold, then headroom, then loss; headroom is left first") {
  BufferParameters p = paper();
  p.threshold = BufferParameters::Threshold::fixed;
  p.fixed_threshold = 10'000;
  p.headroom = 3'000;
  p.lateness_headroom = 1'000;
  SharedBuffer buffer(p, 4, kLossless);
  for (int i = 0; i < 10; ++i) REQUIRE(buffer.admit(0, 1, 3, 1'000) == Admission::admitted);
  CHECK_FALSE(buffer.above_xoff(0, 3));
  CHECK(buffer.headroom_bytes(0, 3) == 0);
  for (int i = 0; i < 4; ++i) {
    REQUIRE(buffer.admit(0, 1, 3, 1'000) == Admission::admitted);
    CHECK(buffer.above_xoff(0, 3));
    CHECK(buffer.headroom_bytes(0, 3) == (i + 1) * 1'000);
  }
  CHECK(buffer.admit(0, 1, 3, 1'000) == Admission::headroom_full);
  CHECK(buffer.admit(0, 1, 3, 1) == Admission::headroom_full);
  CHECK_FALSE(buffer.above_xoff(2, 3));  // another ingress
  buffer.release(0, 1, 3, 1'000);
  CHECK(buffer.headroom_bytes(0, 3) == 3'000);
  CHECK(buffer.ingress_bytes(0, 3) == 13'000);
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(buffer.below_xon(0, 3));
    buffer.release(0, 1, 3, 1'000);
  }
  CHECK(buffer.headroom_bytes(0, 3) == 0);
  CHECK(buffer.ingress_bytes(0, 3) == 7'000);  // = threshold - xon_offset
  CHECK(buffer.below_xon(0, 3));
}

TEST_CASE("shared buffer: no XON while the headroom is in use, although the threshold has risen") {
  BufferParameters p = paper();
  p.total = 100'000 + 2 * 10'000 * 8;
  p.headroom = 10'000;
  SharedBuffer buffer(p, 2, kLossless);
  REQUIRE(buffer.shared_size() == 100'000);
  for (int i = 0; i < 49; ++i) REQUIRE(buffer.admit(1, 0, 3, 1'000) == Admission::admitted);
  while (buffer.headroom_bytes(0, 3) < 5'000) REQUIRE(buffer.admit(0, 1, 3, 1'000) == Admission::admitted);
  // The other ingress drains: t_PFC is far above, yet the next pause could not rely on its whole headroom.
  for (int i = 0; i < 49; ++i) buffer.release(1, 0, 3, 1'000);
  CHECK(buffer.ingress_bytes(0, 3) + 3'000 < buffer.pfc_threshold());
  CHECK_FALSE(buffer.below_xon(0, 3));
  for (int i = 0; i < 5; ++i) buffer.release(0, 1, 3, 1'000);
  CHECK(buffer.below_xon(0, 3));
}

TEST_CASE("shared buffer: a lossless frame that is in the headroom because the shared part is full stops its sender") {
  BufferParameters p = paper();
  p.threshold = BufferParameters::Threshold::fixed;
  p.fixed_threshold = 10'000;
  p.headroom = 5'000;
  p.total = 20'000 + 2 * 8 * 5'000;
  p.lossy_alpha = 1'000;
  SharedBuffer buffer(p, 2, kLossless);
  for (int i = 0; i < 20; ++i) REQUIRE(buffer.admit(1, 0, 0, 1'000) == Admission::admitted);
  REQUIRE(buffer.admit(0, 1, 3, 1'000) == Admission::admitted);
  CHECK(buffer.headroom_bytes(0, 3) == 1'000);
  CHECK(buffer.above_xoff(0, 3));
}

TEST_CASE("shared buffer: a lossy egress queue holds at most alpha times what is free") {
  BufferParameters p = paper();
  p.total = 90'000;
  p.lossy_alpha = 0.5;
  SharedBuffer buffer(p, 4, 0);
  int admitted = 0;
  while (buffer.admit(0, 1, 0, 100) == Admission::admitted) ++admitted;
  // q <= (90000 - q) / 2, whose solution is 30000; the frame before it saw 30000 - 100 in use.
  CHECK(buffer.egress_bytes(1, 0) == admitted * 100);
  CHECK(buffer.egress_bytes(1, 0) == 30'000);
  CHECK(buffer.admit(0, 1, 0, 100) == Admission::lossy_threshold);
  CHECK(buffer.admit(0, 2, 0, 100) == Admission::admitted);  // another queue has its own share of the rest
  p.lossy_alpha = 1'000;
  SharedBuffer greedy(p, 4, 0);
  while (greedy.admit(0, 1, 0, 100) == Admission::admitted) continue;
  CHECK(greedy.occupied() <= 90'000);
  CHECK(greedy.occupied() > 89'000);
}

TEST_CASE("shared buffer: queues of a fixed length are as long as that, whatever is free, and others as they were") {
  BufferParameters p = paper();
  p.total = 100'000;
  p.lossy_alpha = 0.05;
  SharedBuffer buffer(p, 4, 0);
  buffer.reconfigure(p, 0, {}, {.priority = 5, .bytes = 20'000});
  for (int i = 0; i < 40; ++i) REQUIRE(buffer.admit(0, 1, 5, 500) == Admission::admitted);
  CHECK(buffer.admit(0, 1, 5, 500) == Admission::lossy_threshold);
  CHECK(buffer.egress_bytes(1, 5) == 20'000);
  // 5% of 80 KB
  for (int i = 0; i < 7; ++i) REQUIRE(buffer.admit(0, 1, 1, 500) == Admission::admitted);
  CHECK(buffer.admit(0, 1, 1, 500) == Admission::lossy_threshold);
  CHECK(buffer.passes(0, 2, 5, 20'000));
  CHECK_FALSE(buffer.passes(0, 2, 5, 20'001));
  CHECK(buffer.takes(2, 5, 20'000, 500));
  CHECK_FALSE(buffer.takes(2, 5, 20'500, 500));
  // There is still no more than the memory.
  for (int port = 0; port < 4; ++port) {
    while (buffer.admit(0, port, 5, 500) == Admission::admitted) continue;
  }
  CHECK(buffer.occupied() <= 100'000);
  CHECK(buffer.admit(0, 3, 5, 500) != Admission::admitted);
  buffer.reconfigure(p, 0);
  CHECK(buffer.admit(0, 2, 5, 500) == Admission::lossy_threshold);
}

TEST_CASE("shared buffer: what comes in goes out, under random admissions and releases") {
  struct Held {
    int in;
    int out;
    int priority;
    uint32_t length;
  };
  BufferParameters p = paper();
  p.headroom = 4'000;
  p.total = 4 * 8 * 4'000 + 150'000;
  SharedBuffer buffer(p, 4, kLossless | 1 << 5);
  weir::Random random(3);
  std::deque<Held> held;
  int refused = 0;
  int64_t most = 0;
  for (int step = 0; step < 50'000; ++step) {
    const uint64_t phase = static_cast<uint64_t>(step / 5'000 % 2);  // mostly in, mostly out
    if (random.next() % 10 < 4 + 3 * phase) {
      const Held frame{static_cast<int>(random.next() % 4), static_cast<int>(random.next() % 4),
                       static_cast<int>(random.next() % 8), static_cast<uint32_t>(60 + random.next() % 1'460)};
      if (buffer.admit(frame.in, frame.out, frame.priority, frame.length) == Admission::admitted) {
        held.push_back(frame);
      } else {
        ++refused;
      }
    } else if (!held.empty()) {
      const size_t which = random.next() % held.size();
      const Held frame = held[which];
      held[which] = held.back();
      held.pop_back();
      buffer.release(frame.in, frame.out, frame.priority, frame.length);
    }
    most = std::max(most, buffer.occupied());
    REQUIRE(buffer.watermark() == most);
    if (step % 97 != 0) continue;
    int64_t total = 0;
    int64_t in_headroom = 0;
    std::array<std::array<int64_t, 8>, 4> ingress{};
    std::array<std::array<int64_t, 8>, 4> egress{};
    for (const Held& frame : held) {
      total += frame.length;
      ingress[static_cast<size_t>(frame.in)][static_cast<size_t>(frame.priority)] += frame.length;
      egress[static_cast<size_t>(frame.out)][static_cast<size_t>(frame.priority)] += frame.length;
    }
    REQUIRE(buffer.occupied() == total);
    for (int port = 0; port < 4; ++port) {
      for (int priority = 0; priority < 8; ++priority) {
        REQUIRE(buffer.ingress_bytes(port, priority) == ingress[static_cast<size_t>(port)][static_cast<size_t>(priority)]);
        REQUIRE(buffer.egress_bytes(port, priority) == egress[static_cast<size_t>(port)][static_cast<size_t>(priority)]);
        const int64_t headroom = buffer.headroom_bytes(port, priority);
        REQUIRE(headroom >= 0);
        REQUIRE(headroom <= 4'000);
        REQUIRE(headroom <= buffer.ingress_bytes(port, priority));
        in_headroom += headroom;
      }
    }
    REQUIRE(buffer.occupied() <= p.total);
    REQUIRE(buffer.pfc_threshold() >= 0);
  }
  CHECK(refused > 100);
  for (const Held& frame : held) buffer.release(frame.in, frame.out, frame.priority, frame.length);
  CHECK(buffer.occupied() == 0);
  CHECK(buffer.pfc_threshold() == 150'000);
}
