// Live: ports that send live frames, to veths and taps.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "io/af_packet.h"
#include "io/af_xdp.h"
#include "io/live_port.h"
#include "io/peer_program.h"
#include "io/xdp_program.h"
#include "test/live_xdp.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint32_t kPackets = 2'048;

struct Rig {
  explicit Rig(uint32_t frame_bytes = 1'518)
      : shape(Umem::shape(kPackets, frame_bytes)),
        memory(shape, map_packet_bytes(shape)),
        pool(memory),
        umem(memory, pool),
        live(memory) {
    clock.read = nullptr;  // time passes as the test says
  }
  ~Rig() { CHECK(pool.available() == kPackets); }

  std::unique_ptr<LivePort> open(const char* interface, int space = -1) {
    PortOptions options;
    options.interface = interface;
    options.namespace_fd = space;
    options.receive = false;
    options.slot_bytes = shape.stride - shape.headroom;
    return std::make_unique<LivePort>(std::make_unique<AfXdpPort>(options, umem, clock), options, live, umem, clock);
  }
  // Opens a port beside a packet socket, for XDP programs alone.
  std::unique_ptr<LivePort> open_beside(const char* interface) {
    const PortOptions options{.interface = interface, .offloads = true, .live_for_xdp = true};
    return std::make_unique<LivePort>(std::make_unique<AfPacketPort>(options, clock), options, live, umem, clock);
  }
  // Frames with these numbers, in packets of the pool.
  std::vector<TxFrame> frames(uint32_t first, uint32_t count, uint32_t length) {
    clock.now += LivePort::kLongestPause;  // a busy kernel may have left pages of the last ones
    std::vector<TxFrame> all;
    for (uint32_t i = 0; i < count; ++i) {
      const std::vector<uint8_t> bytes = make_frame(first + i, length);
      const PacketId id = pool.allocate();
      REQUIRE(id != kNoPacket);
      pool[id].reset();
      pool[id].length = length;
      std::ranges::copy(bytes, pool.data(id));
      all.push_back({.data = pool.data(id), .length = length, .packet = id});
    }
    return all;
  }

  PacketShape shape;
  PacketMemory memory;
  PacketPool pool;
  Umem umem;
  LiveTransmit live;
  PortClock clock = clock_now();
};

bool gro(const Wire& wire, bool on) {
  if (::setns(wire.far, CLONE_NEWNET) != 0) return false;
  const bool done = run("ethtool", {"-K", "far0", "gro", on ? "on" : "off"});
  return ::setns(wire.near, CLONE_NEWNET) == 0 && done;
}

// Sends them all, takes what arrives at the far end meanwhile, and compares: whole and in order.
void pass(PacketPort& out, AfPacketPort& in, std::vector<TxFrame> frames, uint32_t first) {
  size_t sent = 0, seen = 0;
  std::array<RxFrame, 64> arrived;
  const auto take = [&] {
    const size_t got = in.receive(arrived);
    for (size_t i = 0; i < got; ++i, ++seen) {
      CHECK(same(arrived[i], make_frame(first + static_cast<uint32_t>(seen), frames[std::min(seen, frames.size() - 1)].length)));
    }
    in.release(got);
  };
  wait_until([&] {
    if (sent < frames.size()) {
      const Transmitted done = out.transmit(std::span(frames).subspan(sent));
      CHECK_FALSE(done.refused);
      sent += done.sent;
    }
    take();
    return seen == frames.size();
  });
  CHECK(sent == frames.size());
  CHECK(seen == frames.size());
  out.receive({});
}

}  // namespace

TEST_CASE("live port: many frames leave as live frames, few and long ones by AF_XDP, all in order") {
  live_xdp([](Wire& wire) {
    REQUIRE(gro(wire, true));
    REQUIRE(ip({"link", "set", "near0", "mtu", "9000"}));
    REQUIRE(wire.in_far({"link", "set", "far0", "mtu", "9000"}));
    Rig rig(9'018);
    const auto out = rig.open("near0");
    CHECK_FALSE(out->falls_back());
    AfPacketPort in({.interface = "far0", .namespace_fd = wire.far, .slot_bytes = 9'018}, rig.clock);
    pass(*out, in, rig.frames(0, 200, 60), 0);
    CHECK(out->losses().transmit_live >= 200 - LivePort::kLeast);
    const uint64_t before = out->losses().transmit_live;
    pass(*out, in, rig.frames(200, LivePort::kLeast - 1, 1'514), 200);
    CHECK(out->losses().transmit_live == before);
    // One call has short ones, a long one among them, short ones again.
    std::vector<TxFrame> mixed = rig.frames(300, 40, 64);
    for (const TxFrame& frame : rig.frames(340, 2, 9'014)) mixed.push_back(frame);
    for (const TxFrame& frame : rig.frames(342, 40, LiveTransmit::kLongest)) mixed.push_back(frame);
    pass(*out, in, mixed, 300);
    CHECK(out->losses().transmit_live > before);
    CHECK(out->losses().transmit_errors == 0);
    for (uint32_t length = 60; length <= LiveTransmit::kLongest; length += 167)
      pass(*out, in, rig.frames(length, 32, length), length);
  });
}

TEST_CASE("live port: an interface in another namespace, whose peer takes none until it has GRO") {
  live_xdp([](Wire& wire) {
    Rig rig;
    // The other way round: the port's interface is far0, its peer near0 has neither GRO nor a program.
    REQUIRE(run("ethtool", {"-K", "near0", "gro", "off"}));
    const auto out = rig.open("far0", wire.far);
    CHECK(out->falls_back());
    AfPacketPort in({.interface = "near0"}, rig.clock);
    pass(*out, in, rig.frames(0, 100, 1'000), 0);
    CHECK(out->losses().transmit_live == 0);
    REQUIRE(run("ethtool", {"-K", "near0", "gro", "on"}));
    wait_until([&] { return out->state() == PortState::up; });  // the kernel takes its time to say so
    CHECK(out->falls_back());                                   // too early
    rig.clock.now += LivePort::kAskAgain;
    CHECK(out->state() == PortState::up);
    CHECK_FALSE(out->falls_back());
    std::array<RxFrame, 4> test;
    REQUIRE(receive_all(in, test, 1) == 1);  // the frame that it was asked by
    in.release(1);
    pass(*out, in, rig.frames(0, 100, 1'000), 0);
    CHECK(out->losses().transmit_live > 0);
    // There is none any more: nothing is lost.
    const uint64_t before = out->losses().transmit_live;
    REQUIRE(run("ethtool", {"-K", "near0", "gro", "off"}));
    pass(*out, in, rig.frames(0, 100, 1'000), 0);
    CHECK(out->falls_back());
    CHECK(out->losses().transmit_live == before);
  });
}

namespace {

// A tap with room for so many frames, whose other end the test reads; null where there are none.
struct Tap {
  explicit Tap(uint32_t room) {
    ifreq request{};
    std::strcpy(request.ifr_name, "tap0");
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    there = end.get() >= 0 && ::ioctl(end.get(), TUNSETIFF, &request) == 0;
    if (!there) {
      std::printf("SKIPPED: live port: no tap\n");
      MESSAGE("SKIPPED: no tap");
      return;
    }
    REQUIRE(ip({"link", "set", "tap0", "txqueuelen", std::to_string(room), "up"}));
  }
  // Reads up to so many, and compares: in order. Returns how many there were.
  uint32_t read(uint32_t most, uint32_t length) {
    std::vector<uint8_t> bytes(2'048);
    uint32_t count = 0;
    for (; count<most&& ::read(end.get(), bytes.data(), bytes.size())> 0; ++count, ++seen) {
      CHECK(std::memcmp(bytes.data(), make_frame(seen, length).data(), length) == 0);
    }
    return count;
  }
  // The frame by which a port finds out.
  void read_test() {
    std::vector<uint8_t> bytes(2'048);
    REQUIRE(::read(end.get(), bytes.data(), bytes.size()) == kMinimumFrame);
  }

  const Descriptor end{::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC)};
  bool there = false;
  uint32_t seen = 0;
};

}  // namespace

TEST_CASE("live port: frames for which an interface has no room stay the caller's, and leave in order once it has") {
  live_xdp([](Wire&) {
    constexpr uint32_t kRoom = 100;
    Tap tap(kRoom);
    if (!tap.there) return;
    Rig rig;
    const auto out = rig.open("tap0");
    REQUIRE_FALSE(out->falls_back());
    tap.read_test();
    std::vector<TxFrame> frames = rig.frames(0, 400, 500);
    size_t sent = out->transmit(frames).sent;
    CHECK(sent > kRoom / 2);  // the kernel gives places of its ring back late, and several at a time
    CHECK(sent < 2 * kRoom);
    CHECK(out->transmit(std::span(frames).subspan(sent)).sent == 0);
    while (sent < frames.size()) {
      tap.read(30, 500);
      // Pages of the last ones are in the tap's ring: too early for another call.
      CHECK(out->transmit(std::span(frames).subspan(sent)).sent == 0);
      rig.clock.now += LivePort::kLeftEvery;
      const size_t more = out->transmit(std::span(frames).subspan(sent)).sent;
      REQUIRE(more > 0);
      sent += more;
    }
    tap.read(400, 500);
    CHECK(tap.seen == 400);
    CHECK(out->losses().transmit_live == 400);
    CHECK(out->losses().transmit_errors == 0);
    out->receive({});
  });
}

TEST_CASE("live port: where pages of frames do not come back with the call, the socket has the next ones, for longer each time") {
  live_xdp([](Wire&) {
    Tap tap(1'000);
    if (!tap.there) return;
    Rig rig;
    const auto out = rig.open("tap0");
    REQUIRE_FALSE(out->falls_back());
    tap.read_test();
    CHECK(out->capabilities().batch == LivePort::kBatch);
    uint32_t sent = 0;
    uint64_t live = 0;
    const auto send = [&](bool as_live) {
      const std::vector<TxFrame> frames = rig.frames(sent, 40, 500);
      rig.clock.now -= LivePort::kLongestPause;
      CHECK(out->transmit(frames).sent == 40);
      out->receive({});
      sent += 40;
      live += as_live ? 40 : 0;
      CHECK(out->losses().transmit_live == live);
    };
    for (Time pause = LivePort::kShortestPause; pause < 2 * LivePort::kLongestPause; pause *= 2) {
      send(true);
      CHECK(out->capabilities().batch == 1);
      const Time begin = rig.clock.now, lasts = std::min(pause, LivePort::kLongestPause);
      send(false);
      rig.clock.now = begin + lasts - 1;
      send(false);
      rig.clock.now = begin + lasts;
      CHECK(out->capabilities().batch == LivePort::kBatch);
    }
    CHECK(tap.read(sent, 500) == sent);
    CHECK(out->losses().transmit_errors == 0);
  });
}

// One that passes all frames of these tests.
std::unique_ptr<XdpProgram> program_at_far(const Wire& wire, bool frags = false) {
  std::unique_ptr<XdpProgram> program;
  in_namespace(wire.far, [&] {
    XdpProgramOptions options;
    options.interface_index = static_cast<int>(::if_nametoindex("far0"));
    options.frags = frags;
    options.roce_only = true;
    program = std::make_unique<XdpProgram>(options);
    program->attach();
  });
  return program;
}

TEST_CASE("live port: beside a packet socket live frames leave while an XDP program is at the other end") {
  live_xdp([](Wire& wire) {
    REQUIRE(gro(wire, true));  // not for its sake
    Rig rig;
    const auto out = rig.open_beside("near0");
    AfPacketPort in({.interface = "far0", .namespace_fd = wire.far}, rig.clock);
    // Its packets are the caller's still.
    const auto pass_all = [&](uint32_t first, uint32_t count) {
      const std::vector<TxFrame> frames = rig.frames(first, count, 500);
      pass(*out, in, frames, first);
      for (const TxFrame& frame : frames) rig.pool.free(frame.packet);
    };
    CHECK(out->falls_back());
    pass_all(0, 100);
    CHECK(out->losses().transmit_live == 0);
    auto program = program_at_far(wire);
    CHECK(out->state() == PortState::up);
    CHECK_FALSE(out->falls_back());
    std::array<RxFrame, 4> test;
    REQUIRE(receive_all(in, test, 1) == 1);  // the frame that it was asked by
    in.release(1);
    pass_all(100, 200);
    const uint64_t live = out->losses().transmit_live;
    CHECK(live >= 200 - LivePort::kLeast);
    pass_all(300, LivePort::kLeast - 1);
    CHECK(out->losses().transmit_live == live);
    // Frames with work left to the interface cannot be live frames, which cannot tell of it.
    std::vector<TxFrame> pending = rig.frames(400, 40, 500);
    for (TxFrame& frame : pending) frame.offload = {.checksum_start = 34, .checksum_offset = 6, .needs_checksum = true};
    CHECK(out->transmit(pending).sent == 40);
    for (const TxFrame& frame : pending) rig.pool.free(frame.packet);
    CHECK(out->losses().transmit_live == live);
    std::array<RxFrame, 40> seen;
    REQUIRE(receive_all(in, seen, 40) == 40);
    in.release(40);
    program.reset();
    wait_until([&] { return out->state() == PortState::up && out->falls_back(); });
    pass_all(500, 100);
    CHECK(out->falls_back());
    CHECK(out->losses().transmit_live == live);
    CHECK(out->losses().transmit_errors == 0);
  });
}

TEST_CASE("peer program: a veth shows that its other end runs one, and nothing else that takes its offloads") {
  live_xdp([](Wire& wire) {
    const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto seen = [&] { return peer_runs_xdp(socket.get(), "near0"); };
    CHECK_FALSE(seen());
    CHECK_FALSE(peer_runs_xdp(socket.get(), "lo"));
    CHECK_FALSE(peer_runs_xdp(socket.get(), "gone0"));
    REQUIRE(run("ethtool", {"-K", "near0", "tso", "off"}));
    CHECK_FALSE(seen());
    auto program = program_at_far(wire);
    CHECK(seen());
    program.reset();
    wait_until([&] { return !seen(); });
    CHECK_FALSE(seen());
    program = program_at_far(wire, true);
    CHECK(seen());
  });
}

TEST_CASE("live port: an interface that is deleted takes nothing, and its successor does") {
  live_xdp([](Wire& wire) {
    REQUIRE(gro(wire, true));
    Rig rig;
    const auto out = rig.open("near0");
    REQUIRE(wire.in_far({"link", "delete", "far0"}));
    std::vector<TxFrame> frames = rig.frames(0, 40, 100);
    const Transmitted done = out->transmit(frames);
    CHECK(out->losses().transmit_live == 0);
    for (size_t i = done.sent; i < frames.size(); ++i) rig.pool.free(frames[i].packet);
    CHECK(out->state() == PortState::gone);
    REQUIRE(ip({"link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", wire.path_of(wire.far)}));
    REQUIRE(ip({"link", "set", "near0", "up"}));
    REQUIRE(wire.in_far({"link", "set", "far0", "up"}));
    REQUIRE(gro(wire, true));
    CHECK(out->state() == PortState::replaced);
    out->reopen();
    CHECK_FALSE(out->falls_back());
    AfPacketPort in({.interface = "far0", .namespace_fd = wire.far}, rig.clock);
    pass(*out, in, rig.frames(0, 40, 100), 0);
    CHECK(out->losses().transmit_live >= 40 - LivePort::kLeast);
  });
}
