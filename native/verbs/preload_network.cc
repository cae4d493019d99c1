// The network of programs in virtual time, as each host would have it: one interface besides the loopback, with the host's own
// address, and names. All hosts have one network of the kernel's, whose loopback has all addresses.
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "verbs/preload.h"
#include "verbs/preload_host.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

constexpr const char* kInterface = "weir0";
constexpr const char* kLoopback = "lo";
constexpr int kInterfaceIndex = 2;  // the loopback is 1
constexpr uint32_t kMask = 0xffff0000;
constexpr int kMtu = 1500;

const char* own_name() { return in_virtual_time() ? std::getenv(kHostVariable) : nullptr; }

// Address of a host of the network; empty: there is none of that name.
std::string address_of(std::string_view name) {
  const char* const all = std::getenv(kNamesVariable);
  std::string_view found;
  each_host(all == nullptr ? "" : all, [&](uint32_t, std::string_view one, std::string_view address) {
    if (one == name) found = address;
    return one == name;
  });
  return std::string(found);
}

bool find_own_address(in_addr& out) {
  const char* const own = own_name();
  return own != nullptr && ::inet_pton(AF_INET, address_of(own).c_str(), &out) == 1;
}

// The host's own address, by which a socket is told from that of another host.
bool take_address(int descriptor, sockaddr_storage& to, const sockaddr* from, socklen_t length) {
  in_addr address;
  if (from == nullptr || length > sizeof to || !find_own_address(address)) return false;
  std::memcpy(&to, from, length);
  if (from->sa_family == AF_INET) {
    auto& four = reinterpret_cast<sockaddr_in&>(to);
    if (four.sin_addr.s_addr != INADDR_ANY) return false;
    four.sin_addr = address;
    return true;
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(to);
  if (from->sa_family != AF_INET6 || !IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)) return false;
  // One of IPv6 alone cannot have it.
  int only = 0;
  socklen_t room = sizeof only;
  if (::getsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &only, &room) != 0 || only != 0) return false;
  six.sin6_addr.s6_addr[10] = six.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&six.sin6_addr.s6_addr[12], &address, sizeof address);
  return true;
}

sockaddr_in four(in_addr_t address) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = address;
  return out;
}

// A kernel holds a short message back until the one before it is acknowledged, which takes 40 ms of real time: nobody would hear
// of it when it comes.
void send_at_once(int descriptor) {
  const int error = errno, on = 1;
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  errno = error;
}

struct Interface {
  const char* name;
  int index;
  in_addr_t address;
  in_addr_t mask;
  short flags;
};

// Writes the host's interfaces; returns how many there are.
size_t interfaces(Interface (&out)[2], in_addr own) {
  constexpr short kUp = IFF_UP | IFF_RUNNING;
  out[0] = {kLoopback, 1, htonl(INADDR_LOOPBACK), htonl(0xff000000), kUp | IFF_LOOPBACK};
  out[1] = {kInterface, kInterfaceIndex, own.s_addr, htonl(kMask), kUp | IFF_BROADCAST | IFF_MULTICAST};
  return std::size(out);
}

// Answers what is asked about interfaces; nothing: it is no such question.
std::optional<int> answer_question(unsigned long request, void* argument) {
  in_addr own;
  if (request < SIOCGIFNAME || request > SIOCGIFINDEX || argument == nullptr || !find_own_address(own)) return std::nullopt;
  Interface all[2];
  const size_t count = interfaces(all, own);
  if (request == SIOCGIFCONF) {
    auto& list = *static_cast<ifconf*>(argument);
    const auto room = static_cast<size_t>(list.ifc_len) / sizeof(ifreq);
    const size_t told = list.ifc_req == nullptr ? count : std::min(room, count);
    for (size_t i = 0; list.ifc_req != nullptr && i < told; ++i) {
      list.ifc_req[i] = {};
      std::strcpy(list.ifc_req[i].ifr_name, all[i].name);
      reinterpret_cast<sockaddr_in&>(list.ifc_req[i].ifr_addr) = four(all[i].address);
    }
    list.ifc_len = static_cast<int>(told * sizeof(ifreq));
    return 0;
  }
  auto& asked = *static_cast<ifreq*>(argument);
  const auto found = std::find_if(all, all + count, [&](const Interface& one) {
    return request == SIOCGIFNAME ? one.index == asked.ifr_ifindex : std::strncmp(one.name, asked.ifr_name, IFNAMSIZ) == 0;
  });
  if (found == all + count) return errno = ENODEV, -1;
  auto& address = reinterpret_cast<sockaddr_in&>(asked.ifr_addr);
  switch (request) {
    case SIOCGIFNAME:
      std::strcpy(asked.ifr_name, found->name);
      return 0;
    case SIOCGIFFLAGS:
      asked.ifr_flags = found->flags;
      return 0;
    case SIOCGIFADDR:
      address = four(found->address);
      return 0;
    case SIOCGIFBRDADDR:
      address = four(found->address | ~found->mask);
      return 0;
    case SIOCGIFNETMASK:
      address = four(found->mask);
      return 0;
    case SIOCGIFHWADDR:
      // That of the NIC is not asked for by who has sockets.
      asked.ifr_hwaddr = {};
      asked.ifr_hwaddr.sa_family = found->index == kInterfaceIndex ? ARPHRD_ETHER : ARPHRD_LOOPBACK;
      return 0;
    case SIOCGIFMTU:
      asked.ifr_mtu = kMtu;
      return 0;
    case SIOCGIFINDEX:
      asked.ifr_ifindex = found->index;
      return 0;
    default:
      return std::nullopt;
  }
}

// A socket that is bound to no address yet has its host's, as what it reaches would see it.
void bind_to_own(int descriptor, const sockaddr* to) {
  static const auto real = next<int (*)(int, const sockaddr*, socklen_t)>("bind");
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  in_addr own;
  if (to == nullptr || to->sa_family != AF_INET || !find_own_address(own)) return;
  if (reinterpret_cast<const sockaddr_in*>(to)->sin_addr.s_addr == htonl(INADDR_LOOPBACK)) return;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &length) != 0 || bound.sin_family != AF_INET ||
      bound.sin_port != 0 || bound.sin_addr.s_addr != INADDR_ANY) {
    return;
  }
  // Its port is one that is free to that peer.
  const int later = 1;
  ::setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
  const sockaddr_in from = four(own.s_addr);
  real(descriptor, reinterpret_cast<const sockaddr*>(&from), sizeof from);
}

}  // namespace

extern "C" {

WEIR_EXPORT int bind(int descriptor, const sockaddr* address, socklen_t length) {
  static const auto real = next<int (*)(int, const sockaddr*, socklen_t)>("bind");
  sockaddr_storage own;
  return real(descriptor, take_address(descriptor, own, address, length) ? reinterpret_cast<const sockaddr*>(&own) : address,
              length);
}

WEIR_EXPORT int connect(int descriptor, const sockaddr* address, socklen_t length) {
  static const auto real = next<int (*)(int, const sockaddr*, socklen_t)>("connect");
  in_addr own;
  if (!in_virtual_time() || !find_own_address(own)) return real(descriptor, address, length);
  let_pass();
  bind_to_own(descriptor, address);
  send_at_once(descriptor);
  const int result = real(descriptor, address, length);
  const auto* four_of = reinterpret_cast<const sockaddr_in*>(address);
  if (result == 0 || errno != ECONNREFUSED || address->sa_family != AF_INET ||
      four_of->sin_addr.s_addr != htonl(INADDR_LOOPBACK)) {
    return result;
  }
  // Who listens at any address of the host does so at its own.
  sockaddr_in there = *four_of;
  there.sin_addr = own;
  return real(descriptor, reinterpret_cast<const sockaddr*>(&there), sizeof there);
}

WEIR_EXPORT int listen(int descriptor, int backlog) {
  static const auto real = next<int (*)(int, int)>("listen");
  let_pass();
  const int result = real(descriptor, backlog);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (result == 0 && in_virtual_time() && ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
      (own.ss_family == AF_INET || own.ss_family == AF_INET6)) {
    send_at_once(descriptor);  // and those that it accepts
    // Both have it in the same place.
    note_port(ntohs(reinterpret_cast<const sockaddr_in&>(own).sin_port));
  }
  return result;
}

WEIR_EXPORT int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** out) {
  static const auto real = next<int (*)(const char*, const char*, const addrinfo*, addrinfo**)>("getaddrinfo");
  const std::string address = node == nullptr || !in_virtual_time() ? "" : address_of(node);
  return real(address.empty() ? node : address.c_str(), service, hints, out);
}

WEIR_EXPORT hostent* gethostbyname(const char* name) {
  static const auto real = next<hostent* (*)(const char*)>("gethostbyname");
  const std::string address = name == nullptr || !in_virtual_time() ? "" : address_of(name);
  return real(address.empty() ? name : address.c_str());
}

// A host is called by its name.
WEIR_EXPORT int gethostname(char* out, size_t length) {
  static const auto real = next<int (*)(char*, size_t)>("gethostname");
  const char* const own = own_name();
  if (own == nullptr) return real(out, length);
  if (std::strlen(own) >= length) return errno = ENAMETOOLONG, -1;
  std::strcpy(out, own);
  return 0;
}

WEIR_EXPORT int uname(utsname* out) {
  static const auto real = next<int (*)(utsname*)>("uname");
  const int result = real(out);
  if (result == 0 && in_virtual_time()) gethostname(out->nodename, sizeof out->nodename);
  return result;
}

WEIR_EXPORT int ioctl(int descriptor, unsigned long request, ...) {
  static const auto real = next<int (*)(int, unsigned long, ...)>("ioctl");
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const auto answer = answer_question(request, argument);
  return answer ? *answer : real(descriptor, request, argument);
}

// freeifaddrs() frees the first of a list, with which all of it was allocated.
WEIR_EXPORT int getifaddrs(ifaddrs** out) {
  static const auto real = next<int (*)(ifaddrs**)>("getifaddrs");
  in_addr own;
  if (!find_own_address(own)) return real(out);
  struct Entry {
    ifaddrs one;
    sockaddr_in address, mask;
    char name[IFNAMSIZ];
  };
  Interface all[2];
  const size_t count = interfaces(all, own);
  auto* const entries = static_cast<Entry*>(std::calloc(count, sizeof(Entry)));
  if (entries == nullptr) return errno = ENOMEM, -1;
  for (size_t i = 0; i < count; ++i) {
    Entry& entry = entries[i];
    std::strcpy(entry.name, all[i].name);
    entry.address = four(all[i].address);
    entry.mask = four(all[i].mask);
    entry.one.ifa_next = i + 1 < count ? &entries[i + 1].one : nullptr;
    entry.one.ifa_name = entry.name;
    entry.one.ifa_flags = static_cast<unsigned>(all[i].flags);
    entry.one.ifa_addr = reinterpret_cast<sockaddr*>(&entry.address);
    entry.one.ifa_netmask = reinterpret_cast<sockaddr*>(&entry.mask);
  }
  *out = &entries->one;
  return 0;
}

}  // extern "C"
