#include "bench/traffic_host.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "base/native_error.h"

namespace weir::bench {
namespace {

constexpr int kIgnoreOutgoing = 23;  // PACKET_IGNORE_OUTGOING, which <linux/if_packet.h> has under another guard

}  // namespace

Time now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

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

}  // namespace weir::bench
