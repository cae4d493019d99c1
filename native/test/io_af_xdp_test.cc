// Live: AF_XDP ports on veth pairs, with a packet socket at the far ends.
#include <doctest/doctest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

#include "io/af_packet.h"
#include "io/af_xdp.h"
#include "io/network_namespace.h"
#include "test/live_xdp.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint32_t kPackets = 1'024;
constexpr uint32_t kRing = 64;

// near0 (a namespace) <- far0, and out0 (another one) -> out1.
struct Rig {
  Rig(Wire& wire, uint32_t mtu) : memory(Umem::shape(kPackets, mtu + 18)), pool(memory), umem(memory, pool), mtu_(mtu) {
    const std::string bytes = std::to_string(mtu);
    REQUIRE(wire.in_far({"link", "add", "out0", "type", "veth", "peer", "name", "out1"}));
    for (const char* name : {"far0", "out0", "out1"}) REQUIRE(wire.in_far({"link", "set", name, "mtu", bytes, "up"}));
    REQUIRE(ip({"link", "set", "near0", "mtu", bytes}));
    // A packet socket's long frame is one that the kernel would cut only on its way out.
  }
  ~Rig() { CHECK(pool.available() == kPackets); }  // its ports, which were made after it, have given all back
  PortOptions options(const char* interface, int namespace_fd = -1) const {
    PortOptions options;
    options.interface = interface;
    options.namespace_fd = namespace_fd;
    options.ring = kRing;
    options.slot_bytes = mtu_ + 18;
    return options;
  }

  PacketMemory memory;
  PacketPool pool;
  Umem umem;
  PortClock clock = clock_now();
  uint32_t mtu_;
};

// Sends frames of all lengths through `in` and `out`, and compares what comes out.
void forward(Rig& rig, PacketPort& sender, AfXdpPort& in, AfXdpPort& out, PacketPort& receiver, uint32_t step) {
  uint32_t number = 0;
  for (uint32_t length = 60; length <= rig.mtu_ + 14; length += step, ++number) {
    CAPTURE(length);
    const std::vector<uint8_t> bytes = make_frame(number, length);
    REQUIRE(send(sender, bytes) == 1);
    std::array<RxFrame, 4> frames;
    REQUIRE(receive_all(in, frames, 1) == 1);
    REQUIRE(frames[0].length == length);
    REQUIRE(frames[0].packet != nullptr);
    const PacketId id = take(frames[0]);
    CHECK(frames[0].data == rig.pool.data(id));  // it leaves from where it lies
    rig.pool[id].length = frames[0].length;
    const TxFrame leaving{rig.pool.data(id), rig.pool[id].length, {}, id};
    REQUIRE(out.transmit({&leaving, 1}).sent == 1);
    in.release(1);
    REQUIRE(receive_all(receiver, frames, 1) == 1);
    CHECK(std::vector<uint8_t>(frames[0].data, frames[0].data + frames[0].length) == bytes);
    receiver.release(1);
  }
  CHECK(in.losses().receive_overrun == 0);
  CHECK(in.losses().receive_truncated == 0);
  CHECK(out.losses().transmit_errors == 0);
}

}  // namespace

TEST_CASE("af_xdp: frames leave from where they came in, by ports in two network namespaces") {
  for (const uint32_t mtu : {1'500u, 4'200u, 9'000u}) {
    live_xdp([mtu](Wire& wire) {
      CAPTURE(mtu);
      Rig rig(wire, mtu);
      AfXdpPort in(rig.options("near0"), rig.umem, rig.clock);
      AfXdpPort out(rig.options("out0", wire.far), rig.umem, rig.clock);
      AfPacketPort sender({.interface = "far0", .namespace_fd = wire.far}, rig.clock);
      AfPacketPort receiver({.interface = "out1", .namespace_fd = wire.far, .slot_bytes = mtu + 18}, rig.clock);
      forward(rig, sender, in, out, receiver, mtu / 30);
    });
  }
}

TEST_CASE("af_xdp: frames that are not taken, too long, or more than the rings hold give their packets back") {
  live_xdp([](Wire& wire) {
    Rig rig(wire, 1'500);
    PortOptions options = rig.options("near0");
    options.slot_bytes = 600;
    AfXdpPort in(options, rig.umem, rig.clock);
    AfPacketPort sender({.interface = "far0", .namespace_fd = wire.far}, rig.clock);
    std::array<RxFrame, 8> frames;
    uint64_t received = 0;
    for (uint32_t i = 0; i < 3 * kRing; ++i) {
      REQUIRE(send(sender, make_frame(i, i % 3 == 0 ? 601 : 600)) == 1);
      wait_until([&] {
        const size_t got = in.receive(frames);
        in.release(got);
        return (received += got) + in.losses().receive_truncated > i;
      });
    }
    CHECK(received == 2 * kRing);
    CHECK(in.losses().receive_truncated == kRing);
    CHECK(in.losses().receive_overrun == 0);
    for (uint32_t i = 0; i < 2 * kRing; ++i) REQUIRE(send(sender, make_frame(i, 100)) == 1);
    wait_until([&] { return in.losses().receive_overrun >= kRing; });
    CHECK(in.losses().receive_overrun == kRing);
  });
}

TEST_CASE("af_xdp: an interface that is made anew is opened anew, and its packets are not lost") {
  live_xdp([](Wire& wire) {
    Rig rig(wire, 1'500);
    AfXdpPort in(rig.options("near0"), rig.umem, rig.clock);
    AfXdpPort out(rig.options("out0", wire.far), rig.umem, rig.clock);
    AfPacketPort receiver({.interface = "out1", .namespace_fd = wire.far}, rig.clock);
    CHECK(in.state() == PortState::up);
    for (int round = 0; round < 3; ++round) {
      REQUIRE(ip({"link", "del", "near0"}));
      CHECK(in.state() == PortState::gone);
      REQUIRE(wire.in_far({"link", "add", "far0", "type", "veth", "peer", "name", "new0"}));
      REQUIRE(wire.in_far({"link", "set", "new0", "netns", wire.path_of(wire.near)}));
      REQUIRE(ip({"link", "set", "new0", "name", "near0", "up"}));
      REQUIRE(wire.in_far({"link", "set", "far0", "up"}));
      CHECK(in.state() == PortState::replaced);
      in.reopen();
      // The kernel calls a new link running a moment after it is.
      wait_until([&] { return in.state() == PortState::up; });
      CHECK(in.state() == PortState::up);
      AfPacketPort sender({.interface = "far0", .namespace_fd = wire.far}, rig.clock);
      forward(rig, sender, in, out, receiver, 400);
    }
  });
}

TEST_CASE("af_xdp: behind an interface that is slow the kernel holds no more than it may, and closing gives all of it back") {
  live_xdp([](Wire& wire) {
    Rig rig(wire, 1'500);
    // AF_XDP passes by the queueing discipline of its own interface, not by that of the one below.
    REQUIRE(ip({"link", "add", "link", "near0", "name", "above0", "type", "macvlan", "mode", "private"}));
    REQUIRE(ip({"link", "set", "above0", "up"}));
    REQUIRE(run("tc", {"qdisc", "add", "dev", "near0", "root", "tbf", "rate", "8kbit", "burst", "1600", "limit", "100000000"}));
    PortOptions options = rig.options("above0");
    options.receive = false;
    options.ring = 1'024;
    AfXdpPort out(options, rig.umem, rig.clock);
    const std::vector<uint8_t> bytes = make_frame(1);
    std::vector<TxFrame> frames;
    for (uint32_t i = 0; i < kPackets; ++i) {
      const PacketId id = rig.pool.allocate();
      REQUIRE(id != kNoPacket);
      std::copy(bytes.begin(), bytes.end(), rig.pool.data(id));
      rig.pool[id].length = kFrameBytes;
      frames.push_back({rig.pool.data(id), kFrameBytes, {}, id});
    }
    size_t taken = 0;
    const auto offer = [&](size_t most) {
      const Transmitted done = out.transmit(std::span(frames).subspan(taken, std::min(most, frames.size() - taken)));
      CHECK_FALSE(done.refused);
      taken += done.sent;
      return done.sent;
    };
    while (offer(kPackets) > 0) {
    }
    CHECK(taken > 0);
    CHECK(taken * kFrameBytes <= kHostRoom + 4 * kFrameBytes);  // one more, and what has passed
    out.receive({});
    CHECK(offer(1) == 0);
    // The host works again: the rest goes out.
    REQUIRE(run("tc", {"qdisc", "del", "dev", "near0", "root"}));
    wait_until([&] {
      out.receive({});
      offer(64);
      return taken == frames.size();
    });
    CHECK(taken == frames.size());
    wait_until([&] {
      out.receive({});
      return rig.pool.available() == kPackets;
    });
    CHECK(rig.pool.available() == kPackets);
    // Once more, and the port goes with its frames in the kernel.
    REQUIRE(run("tc", {"qdisc", "add", "dev", "near0", "root", "tbf", "rate", "8kbit", "burst", "1600", "limit", "100000000"}));
    for (TxFrame& frame : frames) {
      frame.packet = rig.pool.allocate();
      rig.pool[frame.packet].length = kFrameBytes;
      frame.data = rig.pool.data(frame.packet);
    }
    taken = 0;
    while (offer(kPackets) > 0) {
    }
    for (size_t i = taken; i < frames.size(); ++i) rig.pool.free(frames[i].packet);
    REQUIRE(ip({"link", "del", "above0"}));
  });
}

TEST_CASE("af_xdp: a queue that is taken is refused with a remedy, and free again once its port is closed") {
  live_xdp([](Wire& wire) {
    Rig rig(wire, 1'500);
    {
      AfXdpPort first(rig.options("near0"), rig.umem, rig.clock);
      try {
        PacketMemory memory(Umem::shape(kPackets, 1'518));  // memory of another worker
        PacketPool pool(memory);
        Umem umem(memory, pool);
        AfXdpPort second(rig.options("near0"), umem, rig.clock);
        FAIL("two sockets share a queue");
      } catch (const NativeError& error) {
        CHECK(error.code == "EBUSY");
        CHECK_FALSE(error.hint.empty());
      }
    }
    AfXdpPort again(rig.options("near0"), rig.umem, rig.clock);
    CHECK(again.state() == PortState::up);
  });
}

TEST_CASE("af_xdp: frames of all receive queues come in, those of a flow in order, and those of queues that came later") {
  live_xdp([](Wire& wire) {
    constexpr uint32_t kFlows = 32, kEach = 8, kQueues = 4;
    REQUIRE(ip({"link", "del", "near0"}));
    const std::string queues = std::to_string(kQueues);
    REQUIRE(ip({"link", "add", "near0", "numrxqueues", queues, "numtxqueues", queues, "type", "veth", "peer", "name", "far0",
                "numrxqueues", queues, "numtxqueues", queues, "netns", wire.path_of(wire.far)}));
    REQUIRE(ip({"link", "set", "near0", "up"}));
    Rig rig(wire, 1'500);
    // A veth with a program has as many receive queues as its peer has of the other kind, or more.
    const auto few = [&](uint32_t count) {
      const auto far = [&] {
        if (::setns(wire.far, CLONE_NEWNET) != 0) return false;
        const bool done = run("ethtool", {"-L", "far0", "tx", std::to_string(count)});
        return ::setns(wire.near, CLONE_NEWNET) == 0 && done;
      };
      const auto near = [&] { return run("ethtool", {"-L", "near0", "rx", std::to_string(count)}); };
      return count < kQueues ? far() && near() : near() && far();
    };
    REQUIRE(few(2));
    PortOptions options = rig.options("near0");
    options.ring = 512;
    AfXdpPort in(options, rig.umem, rig.clock);
    wait_until([&] { return in.state() == PortState::up; });
    // IPv4 and UDP, by whose ports the kernel chooses the sender's queue, which is the receiver's on a veth.
    REQUIRE(::setns(wire.far, CLONE_NEWNET) == 0);
    const Descriptor sender(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(::if_nametoindex("far0"));
    REQUIRE(::setns(wire.near, CLONE_NEWNET) == 0);
    const auto send_round = [&](uint32_t round) {
      for (uint32_t i = round * kFlows; i < (round + 1) * kFlows; ++i) {
        std::vector<uint8_t> bytes = make_frame(i, 100);
        store_be16(&bytes[12], 0x0800);
        std::fill(&bytes[14], &bytes[60], 0);
        bytes[14] = 0x45;
        store_be16(&bytes[16], 86);
        bytes[22] = 64;
        bytes[23] = 17;
        store_be32(&bytes[26], 0x0a000001);
        store_be32(&bytes[30], 0x0a000002);
        store_be16(&bytes[34], static_cast<uint16_t>(50'000 + i % kFlows));
        store_be16(&bytes[36], 4791);
        store_be16(&bytes[38], 66);
        store_be32(&bytes[42], i);
        REQUIRE(::sendto(sender.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 100);
      }
    };
    std::array<uint32_t, kFlows> seen{};
    // Two rounds, of which so many frames may be lost, and are counted then.
    const auto take_two_rounds = [&](uint64_t lost_before) {
      size_t count = 0;
      wait_until([&] {
        std::array<RxFrame, 16> frames;
        const size_t got = in.receive(frames);
        for (const RxFrame& frame : std::span(frames).first(got)) {
          const uint32_t flow = load_be16(&frame.data[34]) - 50'000;
          REQUIRE(flow < kFlows);
          CHECK(load_be32(&frame.data[42]) == flow + kFlows * seen[flow]++);
        }
        in.release(got);
        return (count += got) + (in.losses().receive_overrun - lost_before) >= 2 * kFlows;
      });
      CHECK(count + in.losses().receive_overrun - lost_before == 2 * kFlows);
    };
    const auto exchange = [&] {
      seen = {};
      const uint64_t lost_before = in.losses().receive_overrun;
      // Two rounds at a time, so that each flow has frames in a row.
      for (uint32_t round = 0; round < kEach; round += 2) {
        send_round(round);
        send_round(round + 1);
        take_two_rounds(lost_before);
      }
      for (const uint32_t each : seen) CHECK(each == kEach);
      CHECK(in.losses().receive_overrun == lost_before);
    };
    exchange();
    CHECK(in.losses().receive_overrun == 0);
    CHECK(in.queues() == PortQueues{.receive = 2});
    REQUIRE(few(kQueues));
    // A veth runs no program for its new queues, and the port has not looked yet.
    seen = {};
    send_round(0);
    send_round(1);
    take_two_rounds(0);
    const uint64_t passed_by = in.losses().receive_overrun;
    CHECK(passed_by > 0);
    CHECK(in.state() == PortState::up);
    CHECK(in.queues() == PortQueues{.receive = kQueues});
    exchange();
    CHECK(in.losses().receive_overrun == passed_by);
  });
}
