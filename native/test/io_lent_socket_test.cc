// The socket that a packet port lends to another process, and which frames come by it. Live, see live_wire.h.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/af_packet.h"
#include "io/network_namespace.h"
#include "test/live_wire.h"
#include "test/rig/frames.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"

namespace weir::test {
namespace {

using Bytes = std::vector<uint8_t>;
using Frames = std::vector<Bytes>;

constexpr uint32_t kOwnAddress = 0x0a000001;

PortOptions of_lender(const Wire& wire) {
  PortOptions options;
  options.interface = "far0";
  options.namespace_fd = wire.far;
  options.roce_only = true;
  options.arp_address = kOwnAddress;
  options.echo_ipv6 = options.cnm_datagrams = options.lldp = true;
  return options;
}
PortOptions of_program(int socket) {
  PortOptions options;
  options.interface = "far0";
  options.roce_only = true;
  options.lent_socket = socket;
  return options;
}

// RoCEv2, as peers send it.
Bytes packet(uint32_t qpn, uint8_t ip_version = 4) {
  RocePath path = path_to(kNicMac, kPeerMac);
  path.ip_version = ip_version;
  path.source_ip[15] = static_cast<uint8_t>(qpn);
  return roce(kOpcodeRcSendOnly).on(path).to(qpn).psn(qpn).payload(64).bytes();
}
Bytes with_options(Bytes frame) {
  frame[14] = 0x47;
  frame.insert(frame.begin() + 34, 8, uint8_t{1});
  return frame;
}
Bytes with_cn_tag(Bytes frame) {
  frame.insert(frame.begin() + 12, {0x22, 0xe9, 0xbe, 0xef});
  return frame;
}
Bytes with_vlan_tag(Bytes frame) {
  frame.insert(frame.begin() + 12, {0x81, 0x00, 0x60, 0x64});
  return frame;
}
Bytes fragment(Bytes frame) {
  frame[21] = 8;
  return frame;
}
// Bytes behind the Ethernet addresses.
Bytes other(uint16_t ethertype, size_t length = 100) {
  Bytes frame(length);
  store_be48(frame.data(), kNicMac);
  store_be48(frame.data() + 6, kPeerMac);
  store_be16(&frame[12], ethertype);
  return frame;
}
Bytes ipv4(uint8_t protocol) {
  Bytes frame = other(kEthertypeIpv4);
  frame[14] = 0x45;
  frame[23] = protocol;
  store_be32(&frame[30], kOwnAddress);
  return frame;
}
Bytes ping() {
  Bytes frame = ipv4(1);
  frame[34] = 8;
  return frame;
}
Bytes udp(uint16_t port) {
  Bytes frame = ipv4(17);
  store_be16(&frame[36], port);
  return frame;
}
Bytes icmpv6(uint8_t type) {
  Bytes frame = other(kEthertypeIpv6);
  frame[14] = 0x60;
  frame[20] = 58;
  frame[54] = type;
  return frame;
}

// Both ends of a wire; the far one has a lender.
struct Lending {
  explicit Lending(const PortOptions& options) : near({.interface = "near0"}, clock), lender(options, clock) {}
  explicit Lending(Wire& wire) : Lending(of_lender(wire)) {}

  std::unique_ptr<AfPacketPort> lend(uint16_t blocks, int* socket = nullptr) {
    const int lent = lender.lend(blocks);
    REQUIRE(lent >= 0);
    sockets.push_back(std::make_unique<Descriptor>(lent));
    if (socket != nullptr) *socket = lent;
    return std::make_unique<AfPacketPort>(of_program(lent), clock);
  }
  // Sends these, and then one for each port that no filter keeps back, behind which nothing comes that was sent before.
  void send_all(const Frames& frames) {
    for (const Bytes& frame : frames) REQUIRE(send(near, frame) == 1);
    last = other(kEthertypeMacControl, 60);
    last[59] = ++marks;
    REQUIRE(send(near, last) == 1);
  }
  Frames taken(AfPacketPort& port) const {
    Frames out;
    std::array<RxFrame, 64> frames;
    const Time patience = clock_time(CLOCK_MONOTONIC) + 5 * kSecond;
    while (clock_time(CLOCK_MONOTONIC) < patience) {
      const size_t count = port.receive(frames);
      for (size_t i = 0; i < count; ++i) out.emplace_back(frames[i].data, frames[i].data + frames[i].length);
      port.release(count);
      if (!out.empty() && out.back() == last) return out.pop_back(), out;
    }
    FAIL("the last frame has not come");
    return out;
  }

  PortClock clock = clock_now();
  AfPacketPort near;
  AfPacketPort lender;
  std::vector<std::unique_ptr<Descriptor>> sockets;
  Bytes last;
  uint8_t marks = 0;
};

TEST_CASE("lent socket: RoCEv2 packets to a lent block come by it, those to others by the lender's, each by one of them") {
  live([](Wire& wire) {
    Lending l(wire);
    const auto lent = l.lend(1 << 9);
    Frames sent;
    Frames of_block;
    Frames of_others;
    // Blocks are four bits of a queue pair's number; the bits on both sides of them do not matter.
    for (uint32_t block = 0; block < kLentBlocks; ++block) {
      for (const uint32_t qpn : {block << 8, block << 8 | 0xff, 0xfff0ff | block << 8, 0x123034 | block << 8}) {
        REQUIRE(lent_block_of(qpn) == block);
        Frames frames = {packet(qpn), packet(qpn, 6), with_options(packet(qpn)), roce_cnp(qpn)};
        for (size_t i = 0; i < 4; ++i) frames.push_back(with_cn_tag(frames[i]));
        sent.insert(sent.end(), frames.begin(), frames.end());
        Frames& whose = block == 9 ? of_block : of_others;
        whose.insert(whose.end(), frames.begin(), frames.end());
      }
    }
    l.send_all(sent);
    CHECK(l.taken(*lent) == of_block);
    CHECK(l.taken(l.lender) == of_others);
  });
}

TEST_CASE("lent socket: tagged packets come as untagged ones do") {
  live([](Wire& wire) {
    Lending l(wire);
    const auto lent = l.lend(1 << 12);
    l.send_all({with_vlan_tag(packet(0xc00)), with_vlan_tag(packet(0xb00)), with_vlan_tag(with_cn_tag(packet(0xcff, 6)))});
    CHECK(l.taken(*lent) == Frames{packet(0xc00), with_cn_tag(packet(0xcff, 6))});
    CHECK(l.taken(l.lender) == Frames{packet(0xb00)});
  });
}

TEST_CASE("lent socket: MAC control frames come by both, and what else is for the NIC by the lender's alone") {
  live([](Wire& wire) {
    Lending l(wire);
    const auto lent = l.lend(1 << 9);
    // For some of these a reader that takes them for RoCEv2 would find a queue pair of the block.
    const auto of_block = [](Bytes frame) {
      store_be32(&frame[42], 0x900);
      store_be32(&frame[62], 0x900);
      return frame;
    };
    Frames of_lender = {other(0x0806), ping(), icmpv6(135), icmpv6(136), icmpv6(128), other(kEthertypeCnm), udp(kCnmUdpPort)};
    for (Bytes& frame : of_lender) frame = of_block(frame);
    const Frames of_nobody = {udp(53), fragment(packet(0x900)), fragment(packet(0x800)), other(0x88b5), ipv4(6)};
    Frames all = of_lender;
    for (const Bytes& frame : of_lender) all.push_back(with_cn_tag(frame));
    const Frames expected = [&] {
      Frames out = all;
      out.push_back(other(0x88cc));
      return out;
    }();
    all.push_back(other(0x88cc));
    all.insert(all.end(), of_nobody.begin(), of_nobody.end());
    l.send_all(all);
    CHECK(l.taken(*lent).empty());
    CHECK(l.taken(l.lender) == expected);
    const Frames control = {other(kEthertypeMacControl), with_cn_tag(other(kEthertypeMacControl))};
    l.send_all(control);
    CHECK(l.taken(*lent) == control);
    CHECK(l.taken(l.lender) == control);
  });
}

TEST_CASE("lent socket: each has its own blocks, and what is taken back comes by the lender's again") {
  live([](Wire& wire) {
    Lending l(wire);
    const auto one = l.lend(1 << 8);
    const auto other = l.lend(1 << 15 | 1 << 10);
    const Frames sent = {packet(0x800), packet(0xf01, 6), packet(0xa02), packet(0x903), packet(0x004)};
    l.send_all(sent);
    CHECK(l.taken(*one) == Frames{sent[0]});
    CHECK(l.taken(*other) == Frames{sent[1], sent[2]});
    CHECK(l.taken(l.lender) == Frames{sent[3], sent[4]});
    l.lender.take_back(1 << 15 | 1 << 10);
    l.send_all(sent);
    CHECK(l.taken(l.lender) == Frames{sent[1], sent[2], sent[3], sent[4]});
    l.lender.take_back(1 << 8);
    l.send_all(sent);
    CHECK(l.taken(l.lender) == sent);
  });
}

TEST_CASE("lent socket: by it frames leave, and come to neither of the two") {
  live([](Wire& wire) {
    Lending l(wire);
    const auto lent = l.lend(1 << 9);
    const Bytes out = packet(0x901);
    REQUIRE(send(*lent, out) == 1);
    REQUIRE(send(l.lender, out) == 1);
    std::array<RxFrame, 4> frames;
    REQUIRE(receive_all(l.near, frames, 2) == 2);
    CHECK(same(frames[0], out));
    CHECK(same(frames[1], out));
    l.send_all({});
    CHECK(l.taken(*lent).empty());
    CHECK(l.taken(l.lender).empty());
    wait_until([&] { return lent->state() == PortState::up; });
    CHECK(lent->state() == PortState::up);
    CHECK(lent->mtu() == 1'500);
    REQUIRE(wire.in_far({"link", "set", "far0", "down"}));
    CHECK(lent->state() == PortState::down);
  });
}

TEST_CASE("lent socket: who has it cannot have others' frames, whatever it asks for") {
  live([](Wire& wire) {
    Lending l(wire);
    int socket = -1;
    const auto lent = l.lend(1 << 9, &socket);
    sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, UINT32_MAX}};
    const sock_fprog program{1, all};
    CHECK(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == -1);
    CHECK(errno == EPERM);
    const int none = 0;
    CHECK(::setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none) == -1);
    CHECK(errno == EPERM);
    CHECK(::setsockopt(socket, SOL_SOCKET, SO_LOCK_FILTER, &none, sizeof none) == -1);
    CHECK(errno == EPERM);
    l.send_all({packet(0x800), packet(0x900)});
    CHECK(l.taken(*lent) == Frames{packet(0x900)});
    CHECK(l.taken(l.lender) == Frames{packet(0x800)});
    // The lender's own is not locked.
    l.lender.take_back(1 << 9);
    CHECK(l.lender.lend(1 << 11) >= 0);
  });
}

TEST_CASE("lent socket: it stays the lender's, and another port may be made of it") {
  live([](Wire& wire) {
    Lending l(wire);
    int socket = -1;
    auto lent = l.lend(1 << 9, &socket);
    lent.reset();
    l.send_all({packet(0x900)});
    CHECK(l.taken(l.lender).empty());
    CHECK(::fcntl(socket, F_GETFD) >= 0);
  });
}

TEST_CASE("lent socket: with offloads frames carry them there, too") {
  live([](Wire& wire) {
    PortOptions options = of_lender(wire);
    options.offloads = true;
    Lending l(options);
    const Descriptor socket(l.lender.lend(1 << 9));
    REQUIRE(socket.get() >= 0);
    PortOptions program = of_program(socket.get());
    program.offloads = true;
    AfPacketPort lent(program, l.clock);
    l.send_all({packet(0x900), packet(0x800), packet(0x9ff, 6)});
    CHECK(l.taken(lent) == Frames{packet(0x900), packet(0x9ff, 6)});
    CHECK(l.taken(l.lender) == Frames{packet(0x800)});
    const Bytes out = packet(0x901);
    REQUIRE(send(lent, out) == 1);
    std::array<RxFrame, 2> frames;
    REQUIRE(receive_all(l.near, frames, 1) == 1);
    CHECK(same(frames[0], out));
  });
}

TEST_CASE("lent socket: a port that takes all there is, or receives nothing, lends none") {
  live([](Wire& wire) {
    PortOptions all = of_lender(wire);
    all.roce_only = false;
    PortOptions nothing = of_lender(wire);
    nothing.receive = false;
    for (const PortOptions& options : {all, nothing}) {
      AfPacketPort port(options, clock_now());
      CHECK(port.lend(1 << 9) == -1);
    }
  });
}

}  // namespace
}  // namespace weir::test
