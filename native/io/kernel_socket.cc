#include "io/kernel_socket.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/native_error.h"
#include "io/network_namespace.h"

namespace weir {

int open_socket(int domain, int type, int protocol, const std::string& namespace_path) {
  int fd = -1;
  in_namespace(namespace_path, [&] { fd = ::socket(domain, type | SOCK_CLOEXEC, protocol); });
  if (fd < 0) throw NativeError::from_errno("socket", "cannot open a socket of the kernel", "");
  return fd;
}

int open_udp_discard(const std::string& address, uint16_t port, const std::string& namespace_path) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(port);
  const bool is_v4 = ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) {
    throw NativeError("INVALID_CONFIG", 0, "", address + " is not an IP address", "");
  }
  const int fd = open_socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0, namespace_path);
  // Super-frames are thrown away whole: else the kernel cuts each before.
  constexpr int kWhole = 1;
  ::setsockopt(fd, IPPROTO_UDP, UDP_GRO, &kWhole, sizeof kWhole);
  sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog filter{1, &nothing};
  const auto* name = is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  const socklen_t length = is_v4 ? sizeof v4 : sizeof v6;
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0 && ::bind(fd, name, length) == 0) return fd;
  const NativeError error =
      NativeError::from_errno("bind", "UDP port " + std::to_string(port) + " of " + address,
                              "another Weir or rxe may have this address (ss -ulnp, rdma link); use an address of its own");
  ::close(fd);
  throw error;
}

namespace {

int open_watch(const std::string& namespace_path, uint32_t groups) {
  const int fd = open_socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE, namespace_path);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const NativeError error = NativeError::from_errno("bind", "cannot hear of the kernel's routes", "");
  ::close(fd);
  throw error;
}

}  // namespace

int open_route_watch(const std::string& namespace_path) {
  constexpr uint32_t kNexthops = 1u << (RTNLGRP_NEXTHOP - 1);
  return open_watch(namespace_path, RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | kNexthops);
}

int open_address_watch(const std::string& namespace_path) {
  return open_watch(namespace_path, RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE);
}

uint32_t take_route_news(int socket) {
  constexpr uint32_t kRoutes = 1, kNeighbours = 2;
  uint32_t news = 0;
  alignas(nlmsghdr) std::array<char, 16 * 1024> bytes;
  for (;;) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got >= 0) {
      nlmsghdr header{};
      if (static_cast<size_t>(got) >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
      const bool neighbour = header.nlmsg_type == RTM_NEWNEIGH || header.nlmsg_type == RTM_DELNEIGH;
      news |= neighbour ? kNeighbours : kRoutes;
    } else if (errno == ENOBUFS) {
      news |= kRoutes | kNeighbours;
    } else if (errno != EINTR) {
      return news;
    }
  }
}

bool ask_ethtool(int socket, const std::string& interface, std::span<uint8_t> data) {
  // The kernel writes what the command says, however long `data` is.
  alignas(8) std::array<uint8_t, kEthtoolBytes> structure{};
  if (data.size() > structure.size()) {
    errno = EMSGSIZE;
    return false;
  }
  std::ranges::copy(data, structure.begin());
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(structure.data());
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return false;
  std::copy_n(structure.begin(), data.size(), data.begin());
  return true;
}

}  // namespace weir
