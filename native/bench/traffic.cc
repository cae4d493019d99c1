#include "bench/traffic.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "base/native_error.h"
#include "bench/kernel_programs.h"
#include "wire/roce_builder.h"

namespace weir::bench {
namespace {

constexpr uint32_t kSmallest = 64;
constexpr Time kLost = 100 * kMillisecond;
constexpr Time kWarmUp = 100 * kMillisecond;
constexpr int kIgnoreOutgoing = 23;  // PACKET_IGNORE_OUTGOING, which <linux/if_packet.h> has under another guard

Time now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

// What the host refuses is left as it is: the benchmark then shows what else the machine does.
void come_first(int cpu) {
  ::setsid();  // a scheduling group of its own, where the kernel groups by session
  std::ofstream("/proc/self/autogroup") << -20;
  ::setpriority(PRIO_PROCESS, 0, -20);
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    throw NativeError::from_errno("sched_setaffinity", "cannot use this CPU", "");
}

uint64_t parse_mac(const std::string& text) {
  std::array<unsigned, 6> byte{};
  if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5]) != 6)
    throw std::invalid_argument(text + ": not an Ethernet address");
  uint64_t mac = 0;
  for (const unsigned one : byte) mac = mac << 8 | one;
  return mac;
}

class Frame {
 public:
  Frame(const std::string& from, const std::string& to, uint32_t length)
      : template_(path(from, to)), bytes_(kMaxHeaders + length) {
    const uint32_t overhead = template_.bth_offset() + kBthHeader + kIcrc;
    if (length < overhead) throw std::invalid_argument("a frame is longer");
    payload_.resize(length - overhead);
    number(0);
  }
  // Writes the frame anew, with this PSN.
  void number(uint32_t psn) {
    DataHeader header;
    header.opcode = kOpcodeRcSendOnly;
    header.destination_qp = 0x11;
    header.psn = psn & 0xffffff;
    length_ = template_.build_data(bytes_.data(), header, payload_.data(), static_cast<uint32_t>(payload_.size()));
  }
  std::span<const uint8_t> bytes() const { return {bytes_.data(), length_}; }

 private:
  static RocePath path(const std::string& from, const std::string& to) {
    RocePath path;
    path.source_mac = parse_mac(from);
    path.destination_mac = parse_mac(to);
    path.source_ip[0] = path.destination_ip[0] = 10;
    path.source_ip[3] = 1;
    path.destination_ip[3] = 2;
    path.dscp = 26;
    path.ecn = 2;
    path.udp_source_port = 0xc001;
    return path;
  }
  RoceTemplate template_;
  std::vector<uint8_t> payload_;
  std::vector<uint8_t> bytes_;
  uint32_t length_ = 0;
};

int interface_index(const std::string& name) {
  const unsigned index = ::if_nametoindex(name.c_str());
  if (index == 0) throw NativeError::from_errno("if_nametoindex", "no interface " + name, "");
  return static_cast<int>(index);
}

int packet_socket(const std::string& interface, bool receives) {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) throw NativeError::from_errno("socket", "cannot open a packet socket", "needs CAP_NET_RAW");
  const int one = 1;
  const int large = 64 << 20;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &large, sizeof large);
  ::setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one);
  ::setsockopt(fd, SOL_PACKET, kIgnoreOutgoing, &one, sizeof one);
  sockaddr_ll name{};
  name.sll_family = AF_PACKET;
  name.sll_protocol = receives ? htons(ETH_P_ALL) : 0;
  name.sll_ifindex = interface_index(interface);
  packet_mreq promiscuous{};
  promiscuous.mr_ifindex = name.sll_ifindex;
  promiscuous.mr_type = PACKET_MR_PROMISC;
  if (receives) ::setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    throw NativeError::from_errno("bind", "cannot use " + interface, "");
  return fd;
}

uint64_t send_by_socket(int socket, std::span<const uint8_t> frame, Time end, double rate) {
  constexpr int64_t kBurst = 64;
  iovec vector{const_cast<uint8_t*>(frame.data()), frame.size()};
  std::array<mmsghdr, kBurst> messages{};
  for (mmsghdr& message : messages) {
    message.msg_hdr.msg_iov = &vector;
    message.msg_hdr.msg_iovlen = 1;
  }
  int64_t sent = 0;
  const Time start = now();
  for (Time at = start; at < end; at = now()) {
    int64_t burst = kBurst;
    if (rate > 0) burst = std::min(kBurst, static_cast<int64_t>(static_cast<double>(at - start) * rate / 1e9) - sent);
    if (burst <= 0) continue;
    const int taken = ::sendmmsg(socket, messages.data(), static_cast<unsigned>(burst), 0);
    if (taken < 0 && errno != ENOBUFS && errno != EAGAIN) throw NativeError::from_errno("sendmmsg", "cannot send", "");
    sent += std::max(taken, 0);
  }
  return static_cast<uint64_t>(sent);
}

int send(const Arguments& a) {
  come_first(std::stoi(a.at(4)));
  const Frame frame(a.at(5), a.at(6), static_cast<uint32_t>(std::stoul(a.at(7))));
  const auto duration = static_cast<Time>(std::stod(a.at(8)) * 1e9);
  const double rate = std::stod(a.at(9));
  if (a.at(1) != "xdp" && a.at(1) != "packet") throw std::invalid_argument(a.at(1) + ": not a source");
  in_namespace(a.at(2), [&] {
    uint64_t sent = 0;
    Time start = now();
    if (a.at(1) == "xdp") {
      LiveFrames frames(interface_index(a.at(3)), rate);
      start = now();
      sent = frames.run(frame.bytes(), start + duration);
    } else {
      const Descriptor socket(packet_socket(a.at(3), false));
      start = now();
      sent = send_by_socket(socket.get(), frame.bytes(), start + duration, rate);
    }
    std::printf("%llu %.6f\n", static_cast<unsigned long long>(sent), static_cast<double>(now() - start) / 1e9);
  });
  return 0;
}

int count(const Arguments& a) {
  in_namespace(a.at(1), [&] {
    const DropCounter counter(interface_index(a.at(2)));
    for (std::string line; std::getline(std::cin, line);) {
      std::printf("%llu %lld\n", static_cast<unsigned long long>(counter.count()), static_cast<long long>(now()));
      std::fflush(stdout);
    }
  });
  return 0;
}

bool is_reply(std::span<const uint8_t> got, std::span<const uint8_t> sent) {
  return got.size() >= sent.size() && std::equal(sent.begin(), sent.begin() + 12, got.begin()) &&
         std::equal(sent.end() - 22, sent.end() - 4, got.begin() + static_cast<ptrdiff_t>(sent.size()) - 22);
}

int latency(const Arguments& a) {
  come_first(std::stoi(a.at(5)));
  int sender = -1;
  int receiver = -1;
  in_namespace(a.at(1), [&] { sender = packet_socket(a.at(2), false); });
  in_namespace(a.at(3), [&] { receiver = packet_socket(a.at(4), true); });
  Frame frame(a.at(6), a.at(7), kSmallest);
  const auto duration = static_cast<Time>(std::stod(a.at(8)) * 1e9);
  const auto gap = static_cast<Time>(1e9 / std::stod(a.at(9)));
  std::vector<Time> times;
  times.reserve(static_cast<size_t>(duration / gap) + 1);
  std::array<uint8_t, 2'048> buffer{};
  uint64_t sent = 0;
  uint64_t lost = 0;
  uint32_t psn = 0;
  Time next = now();
  const Time counted = next + kWarmUp;
  while (next < counted + duration) {
    frame.number(++psn);
    while (now() < next) continue;
    const Time before = now();
    if (::send(sender, frame.bytes().data(), frame.bytes().size(), 0) < 0)
      throw NativeError::from_errno("send", "cannot send", "");
    bool arrived = false;
    Time after = before;
    while (!arrived && after - before < kLost) {
      const ssize_t length = ::recv(receiver, buffer.data(), buffer.size(), MSG_DONTWAIT);
      after = now();
      arrived = length > 0 && is_reply({buffer.data(), static_cast<size_t>(length)}, frame.bytes());
    }
    next = std::max(next + gap, after);
    if (before < counted) continue;
    ++sent;
    if (arrived) times.push_back(after - before);
    if (!arrived) ++lost;
  }
  std::sort(times.begin(), times.end());
  std::printf("%llu %llu", static_cast<unsigned long long>(sent), static_cast<unsigned long long>(lost));
  for (const double quantile : {0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto index = static_cast<size_t>(static_cast<double>(times.size() - 1) * quantile);
    std::printf(" %.2f", times.empty() ? 0.0 : static_cast<double>(times[index]) / 1e3);
  }
  std::puts("");
  return 0;
}

}  // namespace

int run_traffic(const Arguments& arguments) {
  const std::string& command = arguments.at(0);
  if (command == "send") return send(arguments);
  if (command == "count") return count(arguments);
  if (command == "latency") return latency(arguments);
  throw std::invalid_argument(command + ": no such command");
}

}  // namespace weir::bench
