// Live, see live_wire.h.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/native_error.h"
#include "io/af_packet.h"
#include "test/live_wire.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"

using namespace weir;
using namespace weir::test;

namespace {

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

ino_t current_namespace() {
  struct stat status {};
  ::stat("/proc/thread-self/ns/net", &status);
  return status.st_ino;
}

}  // namespace

TEST_CASE("af_packet: frames cross a veth pair both ways with their bytes and monotone stamps") {
  live([](Wire& wire) {
    const Time started = clock_time(CLOCK_MONOTONIC);
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far}, clock);
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<TxFrame> batch;
    for (uint32_t i = 0; i < 100; ++i) bytes.push_back(make_frame(i, 60 + 10 * i));
    for (const auto& b : bytes) batch.push_back({b.data(), static_cast<uint32_t>(b.size())});
    REQUIRE(near.transmit(batch).sent == batch.size());
    std::array<RxFrame, 200> frames;
    REQUIRE(receive_all(far, frames, batch.size()) == batch.size());
    const Time ended = clock_time(CLOCK_MONOTONIC);
    Time last = started - kMillisecond;  // the offset between the clocks is itself read in two steps
    for (size_t i = 0; i < batch.size(); ++i) {
      CHECK(same(frames[i], bytes[i]));
      CHECK_FALSE(frames[i].vlan_stripped);
      CHECK(frames[i].stamp >= last);
      last = frames[i].stamp;
    }
    CHECK(last <= ended + kMillisecond);
    far.release(batch.size());
    REQUIRE(send(far, bytes[5]) == 1);
    REQUIRE(receive_all(near, frames, 1) == 1);  // and no frame of its own: outgoing ones are ignored
    CHECK(same(frames[0], bytes[5]));
    for (AfPacketPort* port : {&near, &far}) {
      const PortLosses losses = port->losses();
      CHECK(losses.receive_overrun + losses.receive_truncated + losses.transmit_errors == 0);
    }
  });
}

TEST_CASE("af_packet: what the host itself sends on the interface is not received") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far}, clock);
    const int host = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);  // through the host's queueing discipline
    REQUIRE(host >= 0);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(::if_nametoindex("near0"));
    const std::vector<uint8_t> bytes = make_frame(1);
    const auto sent = ::sendto(host, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::close(host);
    REQUIRE(sent == static_cast<ssize_t>(bytes.size()));
    std::array<RxFrame, 2> frames;
    CHECK(receive_all(far, frames, 1) == 1);
    CHECK(near.receive(frames) == 0);
  });
}

TEST_CASE("af_packet: the ring is used in order over many turns, also with frames held back") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .slot_bytes = 1200, .receive_slots = 7}, clock);
    const uint32_t slots = far.receive_slots();
    REQUIRE(slots >= 7);
    std::vector<RxFrame> frames(slots + 1);
    uint32_t seen = 0;
    size_t held = 0;
    for (uint32_t sent = 0; sent < 40 * slots; ++sent) {
      REQUIRE(send(near, make_frame(sent)) == 1);
      const size_t count = receive_all(far, {frames.data(), 1}, 1);
      REQUIRE(count == 1);
      REQUIRE(same(frames[0], make_frame(seen++)));
      if (++held == slots) {  // all slots borrowed: the kernel has none, and none is shown twice
        CHECK(far.receive(frames) == 0);
        far.release(sent % 3 == 0 ? 1 : held);
        held -= sent % 3 == 0 ? 1 : held;
      }
    }
    CHECK(seen == 40 * slots);
    CHECK(far.losses().receive_overrun == 0);
  });
}

TEST_CASE("af_packet: a VLAN tag that the kernel stripped is reported with its TPID") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far}, clock);
    REQUIRE(send(near, make_frame(1, 200, 0x6064)) == 1);          // priority 3, VLAN 100
    REQUIRE(send(near, make_frame(2, 200, 0x0000)) == 1);          // priority tag only
    REQUIRE(send(near, make_frame(3, 200, 0xe001, 0x88a8)) == 1);  // service tag
    REQUIRE(send(near, make_frame(4, 200)) == 1);
    std::array<RxFrame, 8> frames;
    REQUIRE(receive_all(far, frames, 4) == 4);
    const std::array<int, 4> tci = {0x6064, 0, 0xe001, -1};
    for (size_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      CHECK(frames[i].vlan_stripped == (tci[i] >= 0));
      CHECK(frames[i].length == (tci[i] >= 0 ? 196u : 200u));
      CHECK(frames[i].data[12] == 0x88);
      CHECK(frames[i].data[13] == 0xb5);
      if (tci[i] >= 0) CHECK(frames[i].vlan_tci == tci[i]);
    }
    CHECK(frames[0].vlan_tpid == 0x8100);
    CHECK(frames[2].vlan_tpid == 0x88a8);
  });
}

TEST_CASE("af_packet: for a NIC beside the host's stack, its own frames arrive, with or without a CN-TAG, and no others") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0",
                      .namespace_fd = wire.far,
                      .roce_only = true,
                      .arp_address = 0x0a000001,
                      .echo_ipv6 = true,
                      .cnm_datagrams = true},
                     clock);
    AfPacketPort least({.interface = "far0", .namespace_fd = wire.far, .roce_only = true}, clock);
    using Bytes = std::vector<uint8_t>;
    const auto half = [](Bytes& bytes, size_t at, uint16_t value) { store_be16(&bytes[at], value); };
    // An Ethernet payload of 60 bytes, its ethertype in front.
    const auto ipv4 = [&](uint8_t protocol, uint16_t port, uint16_t fragment, uint8_t words) {
      Bytes bytes(62);
      half(bytes, 0, 0x0800);
      bytes[2] = static_cast<uint8_t>(0x40 | words);
      half(bytes, 8, fragment);
      bytes[11] = protocol;
      half(bytes, 2 + 4 * size_t{words} + 2, port);
      return bytes;
    };
    const auto ipv6 = [&](uint8_t next, uint8_t first, uint16_t port) {
      Bytes bytes(62);
      half(bytes, 0, 0x86dd);
      bytes[2] = 0x60;
      bytes[8] = next;
      bytes[42] = first;
      half(bytes, 44, port);
      return bytes;
    };
    // Makes a message of ICMP that quotes a packet.
    const auto icmp = [&](uint8_t type, uint8_t destination, uint8_t quoted, uint16_t port) {
      Bytes bytes = ipv4(1, 0, 0, 5);
      bytes.resize(120);
      bytes[18] = 10;
      bytes[21] = destination;
      bytes[22] = type;
      bytes[30] = 0x45;
      bytes[30 + 9] = quoted;
      half(bytes, 30 + 20 + 2, port);
      return bytes;
    };
    const auto icmpv6 = [&](uint8_t type, uint8_t quoted, uint16_t port) {
      Bytes bytes = ipv6(58, type, 0);
      bytes.resize(120);
      bytes[50 + 6] = quoted;
      half(bytes, 50 + 40 + 2, port);
      return bytes;
    };
    const auto fragment = [&](Bytes bytes) {
      bytes[8] = 0x20;
      return bytes;
    };
    const auto other = [&](uint16_t ethertype) {
      Bytes bytes(62);
      half(bytes, 0, ethertype);
      return bytes;
    };
    struct Case {
      Bytes payload;
      bool arrives;
      bool if_asked = false;
    };
    const std::vector<Case> cases = {
        {ipv4(17, 4791, 0, 5), true},
        {ipv4(17, 4791, 0, 7), true},
        {ipv4(17, 53, 0, 5), false},
        {ipv4(17, kCnmUdpPort, 0, 5), true, true},
        {ipv4(6, kCnmUdpPort, 0, 5), false},
        {ipv4(6, 4791, 0, 5), false},
        {ipv4(17, 4791, 0x0010, 5), false},
        {ipv6(17, 0, 4791), true},
        {ipv6(17, 0, 53), false},
        {ipv6(17, 0, kCnmUdpPort), true, true},
        {ipv6(6, 0, 4791), false},
        {ipv6(58, 135, 0), true},
        {ipv6(58, 136, 0), true},
        {ipv6(58, 133, 0), false},
        {ipv6(58, 128, 0), true, true},
        {icmp(8, 1, 0, 0), true, true},
        {icmp(8, 2, 0, 0), false},
        {icmp(0, 1, 0, 0), false},
        {fragment(icmp(8, 1, 0, 0)), false},
        {icmp(3, 1, 17, 4791), true},
        {icmp(3, 1, 17, 53), false},
        {icmp(3, 1, 6, 4791), false},
        {icmp(11, 1, 17, 4791), false},
        {icmpv6(1, 17, 4791), true},
        {icmpv6(1, 17, 53), false},
        {icmpv6(1, 6, 4791), false},
        {icmpv6(3, 17, 4791), false},
        {other(kEthertypeMacControl), true},
        {other(kEthertypeCnm), true},
        {other(0x0806), true},
        {other(0x88cc), false},
        {other(kEthertypeCnTag), false},  // and nothing behind it, or another one
    };
    std::vector<Bytes> due;
    uint32_t anyway = 0;
    for (const bool tagged : {false, true}) {
      for (const bool cn_tagged : {false, true}) {
        for (const Case& c : cases) {
          Bytes frame = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
          if (tagged) frame.insert(frame.end(), {0x81, 0x00, 0x60, 0x64});
          if (cn_tagged) frame.insert(frame.end(), {0x22, 0xe9, 0xbe, 0xef});
          frame.insert(frame.end(), c.payload.begin(), c.payload.end());
          REQUIRE(send(near, frame) == 1);
          if (tagged) frame.erase(frame.begin() + 12, frame.begin() + 16);  // the kernel takes it out
          if (c.arrives) due.push_back(frame);
          anyway += c.arrives && !c.if_asked;
        }
      }
    }
    std::array<RxFrame, 128> frames;
    REQUIRE(receive_all(far, frames, due.size()) == due.size());
    for (size_t i = 0; i < due.size(); ++i) {
      CAPTURE(i);
      CHECK(same(frames[i], due[i]));
      CHECK(frames[i].vlan_stripped == (i >= due.size() / 2));
    }
    REQUIRE(receive_all(least, frames, anyway) == anyway);
    for (const RxFrame& frame : std::span(frames).first(anyway)) {
      CHECK(std::ranges::any_of(due, [&](const Bytes& bytes) { return same(frame, bytes); }));
      const size_t cn_tag = load_be16(frame.data + 12) == 0x22e9 ? 4 : 0;
      const bool ipv4_ping = frame.data[cn_tag + 23] == 1 && frame.data[cn_tag + 34] == 8;
      const bool ipv6_ping = frame.data[cn_tag + 20] == 58 && frame.data[cn_tag + 54] == 128;
      CHECK(!ipv4_ping);
      CHECK(!ipv6_ping);
      CHECK(load_be16(frame.data + cn_tag + (frame.data[cn_tag + 14] == 0x60 ? 56 : 36)) != kCnmUdpPort);
    }
  });
}

TEST_CASE("af_packet: frames for which the ring had no room are counted exactly") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .slot_bytes = 1200, .receive_slots = 16}, clock);
    const uint32_t slots = far.receive_slots();
    const uint32_t sent = 3 * slots + 5;
    for (uint32_t i = 0; i < sent; ++i) REQUIRE(send(near, make_frame(i)) == 1);
    std::vector<RxFrame> frames(sent);
    const size_t received = receive_all(far, frames, slots);
    CHECK(received == slots);
    wait_until([&] { return received + far.losses().receive_overrun >= sent; });
    for (uint32_t i = 0; i < received; ++i) CHECK(same(frames[i], make_frame(i)));
    CHECK(far.losses().receive_overrun == sent - slots);
    CHECK(far.losses().receive_overrun == sent - slots);  // reading does not forget
    far.release(received);
    REQUIRE(send(near, make_frame(77)) == 1);
    REQUIRE(receive_all(far, frames, 1) == 1);
    CHECK(same(frames[0], make_frame(77)));
  });
}

TEST_CASE("af_packet: a frame longer than a slot is dropped and counted, its neighbours are not") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .slot_bytes = 608, .receive_slots = 4}, clock);
    std::array<RxFrame, 8> frames;
    for (uint32_t turn = 0; turn < 50; ++turn) {
      for (const size_t length : {size_t{608}, size_t{650}, size_t{60}}) REQUIRE(send(near, make_frame(turn, length)) == 1);
      REQUIRE(receive_all(far, {frames.data(), 2}, 2) == 2);
      CHECK(same(frames[0], make_frame(turn, 608)));
      CHECK(same(frames[1], make_frame(turn, 60)));
      far.release(2);
    }
    CHECK(far.losses().receive_truncated == 50);
    CHECK(far.losses().receive_overrun == 0);
  });
}

TEST_CASE("af_packet: a frame that is refused is told, and counted, and does not stop the others") {
  live([](Wire& wire) {
    PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far}, clock);
    const std::vector<uint8_t> fits = make_frame(1, 1514);
    const std::vector<uint8_t> oversize = make_frame(2, 1519);
    const std::vector<uint8_t> runt(10);
    const std::array<TxFrame, 4> batch = {
        TxFrame{fits.data(), 1514}, {oversize.data(), 1519}, {runt.data(), 10}, {fits.data(), 1514}};
    const std::span<const TxFrame> all(batch);
    const auto check = [&](size_t from, size_t sent, bool refused) {
      const Transmitted done = near.transmit(all.subspan(from));
      CHECK(done.sent == sent);
      CHECK(done.refused == refused);
    };
    check(0, 1, true);
    check(2, 0, true);
    check(3, 1, false);
    CHECK(near.losses().transmit_errors == 2);
    std::array<RxFrame, 8> frames;
    REQUIRE(receive_all(far, frames, 2) == 2);
    CHECK(same(frames[1], fits));
    far.release(2);

    REQUIRE(ip({"link", "set", "near0", "down"}));
    for (size_t i = 0; i < 4; ++i) check(i, 0, true);
    CHECK(near.losses().transmit_errors == 6);
    pollfd down{near.wait_descriptor(), POLLIN, 0};
    CHECK(::poll(&down, 1, 0) == 0);  // losses() has cleared the socket's error

    REQUIRE(ip({"link", "set", "near0", "up"}));
    CHECK(send(near, fits) == 1);
    REQUIRE(receive_all(far, frames, 1) == 1);
    CHECK(near.losses().transmit_errors == 6);
  });
}

TEST_CASE("af_packet: without a carrier frames are for later") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0"}, clock);
    REQUIRE(wire.in_far({"link", "set", "far0", "down"}));
    const std::vector<uint8_t> frame = make_frame(1);
    const TxFrame sending{frame.data(), kFrameBytes};
    for (int i = 0; i < 3; ++i) {
      const Transmitted done = near.transmit({&sending, 1});
      CHECK(done.sent == 0);
      CHECK_FALSE(done.refused);
    }
    REQUIRE(wire.in_far({"link", "set", "far0", "up"}));
    CHECK(send(near, frame) == 1);
    CHECK(near.losses().transmit_errors == 0);
  });
}

TEST_CASE("af_packet: behind an interface that is slow the kernel holds no more than it may, and takes the rest later") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0", .offloads = true}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .receive_slots = 4'096}, clock);
    REQUIRE(run("tc", {"qdisc", "add", "dev", "near0", "root", "tbf", "rate", "8kbit", "burst", "1600", "limit", "100000000"}));
    const std::vector<uint8_t> frame = make_frame(1);
    const std::vector<TxFrame> batch(1'000, TxFrame{frame.data(), kFrameBytes});
    const size_t taken = near.transmit(batch).sent;
    CHECK(taken > 0);
    CHECK(taken * kFrameBytes <= kHostRoom);
    CHECK(near.transmit(batch).sent == 0);
    REQUIRE(run("tc", {"qdisc", "del", "dev", "near0", "root"}));
    wait_until([&] { return near.transmit({&batch[0], 1}).sent == 1; });
    std::vector<RxFrame> frames(4'096);
    CHECK(receive_all(far, frames, 1) >= 1);
  });
}

TEST_CASE("af_packet: the interface is promiscuous while a port asks for it") {
  live([](Wire&) {
    const PortClock clock = clock_now();
    const auto promiscuity = [] {
      std::string text(4096, '\0');
      std::FILE* output = ::popen("ip -d -o link show dev near0", "re");
      text.resize(std::fread(text.data(), 1, text.size(), output));
      ::pclose(output);
      const size_t at = text.find("promiscuity ");
      return at == std::string::npos ? '?' : text[at + 12];
    };
    const AfPacketPort modest({.interface = "near0"}, clock);
    CHECK(promiscuity() == '0');
    {
      const AfPacketPort port({.interface = "near0", .promiscuous = true}, clock);
      CHECK(promiscuity() == '1');
    }
    CHECK(promiscuity() == '0');
  });
}

TEST_CASE("af_packet: the thread stays in its namespace and nothing is left open, whatever fails") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    const ino_t home = current_namespace();
    const size_t descriptors = open_descriptors();
    const auto code_of = [&](const PortOptions& options) -> std::string {
      try {
        AfPacketPort port(options, clock);
        return "";
      } catch (const NativeError& error) {
        CHECK_FALSE(error.hint.empty());
        return error.code;
      }
    };
    CHECK(code_of({.interface = "far0", .namespace_fd = wire.far, .promiscuous = true}) == "");
    CHECK(current_namespace() == home);
    CHECK(code_of({.interface = "near0", .namespace_fd = wire.far}) == "ENODEV");
    CHECK(code_of({.interface = "an-interface-name-that-is-too-long"}) == "ENODEV");
    const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(code_of({.interface = "near0", .namespace_fd = file}) == "EINVAL");
    ::close(file);
    CHECK(code_of({.interface = "near0", .slot_bytes = 59}) == "INVALID_CONFIG");
    CHECK(code_of({.interface = "near0", .receive_slots = 0}) == "INVALID_CONFIG");
    CHECK(current_namespace() == home);
    CHECK(open_descriptors() == descriptors);
  });
}

TEST_CASE("af_packet: without CAP_NET_RAW the error says what to do") {
  const pid_t child = ::fork();
  if (child == 0) {
    // This runs in a child: an ordinary user has no capability left.
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(3);
    try {
      const PortClock clock;
      AfPacketPort port({.interface = "lo"}, clock);
      ::_exit(2);
    } catch (const NativeError& error) {
      ::_exit(error.code == "EPERM" && error.hint.find("CAP_NET_RAW") != std::string::npos ? 0 : 1);
    }
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
    std::printf("SKIPPED: af_packet: setuid() to an ordinary user is not permitted here\n");
    return;
  }
  CHECK(status == 0);
}
