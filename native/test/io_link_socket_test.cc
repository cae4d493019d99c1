// An interface that others use, too: devices hear their own, and JavaScript hears frames of its EtherType.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/native_error.h"
#include "io/af_packet.h"
#include "io/link_socket.h"
#include "io/network_namespace.h"
#include "test/live_wire.h"

using namespace weir;
using namespace weir::test;

TEST_CASE("af_packet: with a prefix of source addresses no other frames arrive") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .source_prefix = 0x0257}, clock);
    const auto from = [](uint32_t number, uint8_t first, uint8_t second) {
      std::vector<uint8_t> frame = make_frame(number, 200);
      frame[6] = first;
      frame[7] = second;
      return frame;
    };
    const std::vector<uint8_t> own = from(4, 0x02, 0x57), tagged = [&] {
      std::vector<uint8_t> frame = make_frame(5, 200, 0x6064);
      frame[7] = 0x57;
      return frame;
    }();
    REQUIRE(send(near, from(1, 0x02, 0x00)) == 1);
    REQUIRE(send(near, from(2, 0x57, 0x02)) == 1);
    REQUIRE(send(near, from(3, 0x00, 0x57)) == 1);
    REQUIRE(send(near, own) == 1);
    REQUIRE(send(near, tagged) == 1);
    std::array<RxFrame, 8> frames;
    REQUIRE(receive_all(far, frames, 2) == 2);
    CHECK(same(frames[0], own));
    CHECK(frames[1].vlan_tci == 0x6064);
    CHECK(far.losses().receive_overrun == 0);
  });
}

TEST_CASE("link socket: frames of one EtherType pass both ways, with the time at which they came") {
  live([](Wire& wire) {
    constexpr uint16_t kType = 0x88b5;  // that of make_frame()
    int far = -1;
    in_namespace(wire.far, [&] { far = open_link_socket("far0", kType); });
    const Descriptor held(far), near(open_link_socket("near0", kType));
    std::array<uint8_t, 256> data;
    std::array<double, 2> words{};
    const auto reads = [&] {
      bool got = false;
      wait_until([&] { return got = read_link(far, data, words); });
      return got;
    };
    CHECK_FALSE(read_link(far, data, words));
    std::vector<uint8_t> other = make_frame(1, 100);
    other[12] = 0x08;
    const std::vector<uint8_t> frame = make_frame(2, 100), longer = make_frame(3, 300);
    const Time before = clock_time(CLOCK_MONOTONIC);
    for (const std::vector<uint8_t>& one : {other, frame, longer}) {
      REQUIRE(::write(near.get(), one.data(), one.size()) == static_cast<ssize_t>(one.size()));
    }
    REQUIRE(reads());
    CHECK(words[0] == 100);
    CHECK(std::equal(frame.begin(), frame.end(), data.begin()));
    // It came after it was sent, and before it was read, whatever the wall clock was set by meanwhile.
    CHECK(words[1] > static_cast<double>(before - kMillisecond));
    CHECK(words[1] <= static_cast<double>(clock_time(CLOCK_MONOTONIC)));
    REQUIRE(reads());
    CHECK(words[0] == 256);  // cut
    CHECK_FALSE(read_link(far, data, words));
    CHECK_FALSE(read_link(near.get(), data, words));  // not its own
    CHECK_THROWS_AS(read_link(far, data, std::span(words).first(1)), NativeError);
    CHECK_THROWS_AS(open_link_socket("nowhere0", kType), NativeError);
  });
}
