// The XDP program, run by the kernel on frames made here (BPF_PROG_TEST_RUN).
#include <doctest/doctest.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/native_error.h"
#include "base/random.h"
#include "io/bpf.h"
#include "io/xdp_program.h"
#include "test/live_xdp.h"
#include "wire/bytes.h"

using namespace weir;
using namespace weir::test;

namespace {

using Bytes = std::vector<uint8_t>;

// An AF_XDP socket as far as a map wants it.
class Socket {
 public:
  Socket() : fd_(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    constexpr int kEntries = 64;
    REQUIRE(::setsockopt(fd_, SOL_XDP, XDP_RX_RING, &kEntries, sizeof kEntries) == 0);
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Outcome {
  uint32_t action = 0;
  Bytes bytes;  // bytes with metadata in front
};

Outcome run(const XdpProgram& program, const Bytes& frame) {
  Outcome outcome;
  outcome.bytes.resize(frame.size() + 256);
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<uint32_t>(program.descriptor());
  attributes.test.data_in = reinterpret_cast<uintptr_t>(frame.data());
  attributes.test.data_size_in = static_cast<uint32_t>(frame.size());
  attributes.test.data_out = reinterpret_cast<uintptr_t>(outcome.bytes.data());
  attributes.test.data_size_out = static_cast<uint32_t>(outcome.bytes.size());
  attributes.test.repeat = 1;
  REQUIRE(::syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attributes, sizeof attributes) == 0);
  outcome.action = attributes.test.retval;
  outcome.bytes.resize(attributes.test.data_size_out);
  return outcome;
}

// A frame from hexadecimal digits, blanks ignored, and zeros up to `length`.
Bytes from_hex(const std::string& text, size_t length = 0) {
  Bytes bytes;
  std::string digits;
  for (const char c : text) {
    if (c != ' ') digits += c;
  }
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  if (bytes.size() < length) bytes.resize(length);
  return bytes;
}

const std::string kMacs = "020000000002 020000000001 ";
const std::string kPorts = "c000 12b7 0020 0000 ";  // ports, to 4791
const std::string kIpv4 = "0800 45020034 00004000 4011 0000 0a000002 0a000001 ";
const std::string kIpv6 = "86dd 60200000 0020 11 40 fd000000000000000000000000000002 fd000000000000000000000000000001 ";
const std::string kArp = "0806 0001 0800 06 04 0001 020000000001 0a000002 000000000000 0a000001 ";
const std::string kPing = "0800 45000034 00004000 4001 0000 0a000002 ";
const std::string kDiscovery = "86dd 60000000 0020 3a ff fd000000000000000000000000000002 ";
const std::string kOwn = "fd000000000000000000000000000001 ", kOther = "fd000000000000000000000000000003 ";
const std::string kGroup = "ff0200000000000000000001ff000001 ";

struct Case {
  const char* what;
  Bytes frame;
  bool taken;
};

// Cases for a program with the addresses 10.0.0.1 and fd00::1.
std::vector<Case> cases() {
  const auto frame = [](const std::string& rest) { return from_hex(kMacs + rest, 74); };
  const auto ipv4 = [&](size_t at, uint8_t value) {
    Bytes bytes = frame(kIpv4 + kPorts);
    bytes[14 + at] = value;
    return bytes;
  };
  const std::string options = "0800 46020038 00004000 4011 0000 0a000002 0a000001 01010101 ";
  const std::string most = "0800 4f02005c 00004000 4011 0000 0a000002 0a000001 ";
  return {
      {"RoCEv2 over IPv4", frame(kIpv4 + kPorts), true},
      {"RoCEv2 over IPv6", frame(kIpv6 + kPorts), true},
      {"tagged", frame("8100 6005 " + kIpv4 + kPorts), true},
      {"tagged, IPv6", frame("8100 6005 " + kIpv6 + kPorts), true},
      {"one option", frame(options + kPorts), true},
      {"one option, the port not where it is without", frame(options + "c000 1111 12b7 0000 "), false},
      {"ten options", from_hex(kMacs + most + std::string(80, '1') + kPorts, 100), true},
      {"ten options, tagged", from_hex(kMacs + "8100 0005 " + most + std::string(80, '1') + kPorts, 100), true},
      {"PFC", frame("8808 0101 0008 "), true},
      {"PAUSE", frame("8808 0001 ffff "), true},
      {"tagged MAC control", frame("8100 e000 8808 0101 "), true},
      {"congestion notification message", frame("22e7 0000 "), true},
      {"tagged congestion notification message", frame("8100 c005 22e7 0000 "), true},
      {"RoCEv2 behind a CN-TAG", frame("22e9 beef " + kIpv4 + kPorts), true},
      {"RoCEv2 behind a CN-TAG, IPv6", frame("22e9 beef " + kIpv6 + kPorts), true},
      {"RoCEv2 behind both tags", frame("8100 6005 22e9 beef " + kIpv4 + kPorts), true},
      {"RoCEv2 behind both tags, IPv6", from_hex(kMacs + "8100 6005 22e9 beef " + kIpv6 + kPorts, 90), true},
      {"ten options behind both tags", from_hex(kMacs + "8100 0005 22e9 0000 " + most + std::string(80, '1') + kPorts, 110),
       true},
      {"congestion notification message with a CN-TAG", frame("22e9 beef 22e7 0001 "), true},
      {"congestion notification message with both tags", frame("8100 e005 22e9 beef 22e7 0001 "), true},
      {"MAC control behind a CN-TAG", frame("22e9 beef 8808 0101 "), true},
      {"MAC control behind both tags", frame("8100 e005 22e9 beef 8808 0101 "), true},
      {"another UDP port behind a CN-TAG", frame("22e9 beef " + kIpv4 + "12b7 0035 0020 0000 "), false},
      {"two CN-TAGs", frame("22e9 beef 22e9 beef " + kIpv4 + kPorts), false},
      {"a CN-TAG in front of an 802.1Q tag", frame("22e9 beef 8100 6005 " + kIpv4 + kPorts), false},
      {"LLDP behind a CN-TAG", frame("22e9 beef 88cc 0207 "), false},
      {"ends in the CN-TAG", from_hex(kMacs + "22e9 be"), false},
      {"ends behind the CN-TAG's number", from_hex(kMacs + "22e9 beef"), false},
      {"ends in the CN-TAG behind a tag", from_hex(kMacs + "8100 6005 22e9 beef"), false},
      {"ARP request for us", frame(kArp), true},
      {"tagged ARP request for us", frame("8100 0005 " + kArp), true},
      {"ARP answer to us", frame("0806 0001 0800 06 04 0002 020000000001 0a000002 020000000002 0a000001 "), true},
      {"ARP for another", frame("0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000003 "), false},
      {"ARP of another kind", frame("0806 0006 0800 06 04 0001 020000000001 0a000002 000000000000 0a000001 "), false},
      {"ping for us", frame(kPing + "0a000001 0800 0000 0001 0001 "), true},
      {"tagged ping for us", frame("8100 0005 " + kPing + "0a000001 0800 0000 0001 0001 "), true},
      {"ping for us behind a CN-TAG", frame("22e9 beef " + kPing + "0a000001 0800 0000 0001 0001 "), true},
      {"ping for another", frame(kPing + "0a000003 0800 0000 0001 0001 "), false},
      {"answer to a ping", frame(kPing + "0a000001 0000 0000 0001 0001 "), false},
      {"unreachable", frame(kPing + "0a000001 0303 0000 0001 0001 "), false},
      {"fragment of a ping", frame("0800 45000034 00002000 4001 0000 0a000002 0a000001 0800 0000 0001 0001 "), false},
      {"ends in the ping", from_hex(kMacs + kPing + "0a000001 0800 0000 0001 00"), false},
      {"neighbour solicitation", from_hex(kMacs + kDiscovery + kGroup + "8700 0000 00000000 " + kOwn, 86), false},
      {"router solicitation", from_hex(kMacs + kDiscovery + kOwn + "8500 0000 00000000 " + kOwn, 86), false},
      {"CNM in UDP", frame(kIpv4 + "03fd 03fd 0020 0000 "), true},
      {"CNM in UDP, IPv6", frame(kIpv6 + "03fd 03fd 0020 0000 "), true},
      {"CNM in UDP behind both tags", frame("8100 6005 22e9 beef " + kIpv4 + "03fd 03fd 0020 0000 "), true},
      {"to the port of CNMs from another", frame(kIpv4 + "c000 03fd 0020 0000 "), false},
      {"another UDP port", frame(kIpv4 + "12b7 0035 0020 0000 "), false},
      {"another UDP port, IPv6", frame(kIpv6 + "12b7 0035 0020 0000 "), false},
      {"TCP to port 4791", ipv4(9, 6), false},
      {"TCP to port 4791, IPv6", frame("86dd 60200000 0020 06 40 " + kOwn + kOther + kPorts), false},
      {"first fragment", ipv4(6, 0x20), false},
      {"later fragment", ipv4(7, 0x01), false},
      {"may be fragmented", ipv4(6, 0x00), true},
      {"version 6 in an IPv4 frame", ipv4(0, 0x65), false},
      {"header length 16", ipv4(0, 0x44), false},
      {"version 4 in an IPv6 frame", frame("86dd 40200000 0020 11 40 " + kOwn + kOther + kPorts), false},
      {"two tags", frame("8100 0005 8100 0006 " + kIpv4 + kPorts), false},
      {"service tag", frame("88a8 0005 " + kIpv4 + kPorts), false},
      {"LLDP", frame("88cc 0207 "), false},
      {"ends in the UDP header", from_hex(kMacs + kIpv4 + "c000 12b7 0020 00"), false},
      {"ends in the IPv4 header", from_hex(kMacs + kIpv4.substr(0, 40)), false},
      {"options beyond the end", from_hex(kMacs + most + kPorts), false},
      {"ends in the IPv6 header", from_hex(kMacs + kIpv6.substr(0, 80)), false},
      {"ends in the tag", from_hex(kMacs + "8100 00"), false},
      {"ends behind the tag's number", from_hex(kMacs + "8100 0005"), false},
      {"ends in ARP", from_hex(kMacs + kArp.substr(0, kArp.size() - 3)), false},
      {"a header alone", from_hex(kMacs + "0800"), false},
  };
}

}  // namespace

TEST_CASE("xdp program: a switch takes every frame, an endpoint the RoCEv2, pause and address frames that are its own") {
  if (!xdp_permitted()) return;
  Socket socket;
  for (const bool stamp : {false, true}) {
    XdpProgram all({.stamp = stamp});
    XdpProgram endpoint({.stamp = stamp, .roce_only = true, .arp_address = 0x0a000001, .cnm_datagrams = true});
    XdpProgram least({.stamp = stamp, .roce_only = true});
    for (XdpProgram* program : {&all, &endpoint, &least}) program->insert(0, socket.get());
    for (const Case& c : cases()) {
      CAPTURE(c.what);
      const std::string what = c.what;
      const bool asked = what.find("ARP") != what.npos || what.find("ping") != what.npos || what.starts_with("CNM");
      for (const XdpProgram* program : {&all, &endpoint, &least}) {
        const bool taken = program == &all || (c.taken && !(program == &least && asked));
        const Outcome outcome = run(*program, c.frame);
        REQUIRE(outcome.action == (taken ? XDP_REDIRECT : XDP_PASS));
        const uint32_t metadata = taken ? program->metadata_bytes() : 0;
        CHECK(outcome.bytes.size() == c.frame.size() + metadata);
        CHECK(Bytes(outcome.bytes.begin() + metadata, outcome.bytes.end()) == c.frame);
      }
    }
  }
}

TEST_CASE("xdp program: without a socket a frame is dropped and counted") {
  if (!xdp_permitted()) return;
  XdpProgram program({});
  CHECK(run(program, from_hex(kMacs + "8808", 60)).action == XDP_DROP);
  CHECK(program.strays() == 1);
  {
    Socket short_lived;
    program.insert(0, short_lived.get());
    CHECK(run(program, from_hex(kMacs + "8808", 60)).action == XDP_REDIRECT);
    CHECK(program.strays() == 1);
  }
  CHECK(run(program, from_hex(kMacs + "8808", 60)).action == XDP_DROP);
  CHECK(program.strays() == 2);
  CHECK_THROWS_AS(program.insert(0, 0), NativeError);                        // no such socket
  CHECK_THROWS_AS(program.insert(XdpProgram::kMostQueues, 0), NativeError);  // no such queue
}

TEST_CASE("xdp program: the metadata says when, and is marked") {
  if (!xdp_permitted()) return;
  Socket socket;
  XdpProgram program({.stamp = true, .roce_only = true});
  program.insert(0, socket.get());
  REQUIRE(program.metadata_bytes() == sizeof(XdpMetadata));
  const Time before = clock_time(CLOCK_MONOTONIC);
  const Outcome outcome = run(program, from_hex(kMacs + kIpv4 + kPorts, 74));
  const Time after = clock_time(CLOCK_MONOTONIC);
  XdpMetadata metadata;
  REQUIRE(outcome.bytes.size() == 74 + sizeof metadata);
  std::memcpy(&metadata, outcome.bytes.data(), sizeof metadata);
  CHECK(metadata.mark == XdpMetadata::kMark);
  CHECK(static_cast<Time>(metadata.stamp) >= before);
  CHECK(static_cast<Time>(metadata.stamp) <= after);
  CHECK(XdpProgram({}).metadata_bytes() == 0);
}

TEST_CASE("xdp program: hostile frames of all lengths are passed or taken, as the rules written once more say") {
  if (!xdp_permitted()) return;
  Socket socket;
  XdpProgram program({.roce_only = true});
  program.insert(0, socket.get());
  const auto roce = [](const Bytes& f) {
    size_t l3 = 14;
    const auto half = [&](size_t at) { return at + 2 <= f.size() ? load_be16(&f[at]) : -1; };
    int type = half(12);
    if (type == 0x8100) {
      type = half(16);
      l3 = 18;
    }
    if (type == 0x22e9) {
      type = half(l3 + 2);
      l3 += 4;
    }
    if (type == 0x8808 || type == 0x22e7) return true;
    size_t l4 = l3 + 40;
    if (type == 0x0800) {
      if (f.size() < l3 + 20 || f[l3] < 0x45 || f[l3] > 0x4f || f[l3 + 9] != 17 || (half(l3 + 6) & 0x3fff) != 0) return false;
      l4 = l3 + 4 * (f[l3] & 15);
    } else if (type != 0x86dd || f.size() < l4 || f[l3] >> 4 != 6 || f[l3 + 6] != 17) {
      return false;
    }
    return f.size() >= l4 + 8 && half(l4 + 2) == 4791;
  };
  Random random(11, 1, 1);
  const auto below = [&](uint64_t n) { return static_cast<size_t>(random.next() % n); };
  const std::vector<Case> seeds = cases();
  uint32_t taken = 0;
  constexpr uint32_t kTurns = 20'000;
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    Bytes frame = seeds[below(seeds.size())].frame;
    for (size_t n = below(3); n > 0; --n) frame[12 + below(frame.size() - 12)] = static_cast<uint8_t>(random.next());
    if (below(3) == 0) frame.resize(14 + below(frame.size() - 13));
    const bool expected = roce(frame);
    CAPTURE(turn);
    REQUIRE(run(program, frame).action == (expected ? XDP_REDIRECT : XDP_PASS));
    taken += expected ? 1 : 0;
  }
  CHECK(taken > kTurns / 10);
  CHECK(taken < kTurns / 2);
}
