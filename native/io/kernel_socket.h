// Sockets of the kernel's own stack, in any network namespace: once open, they answer for that one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weir {

// Opens a socket as socket(2) does, closed on exec, in the network namespace at a path (empty: this thread's). Returns the
// descriptor, which is the caller's to close. Throws NativeError: why there is none, or why the namespace cannot be entered.
int open_socket(int domain, int type, int protocol, const std::string& namespace_path);

// Opens a UDP port of the kernel that throws all datagrams away: with it the kernel does not answer "port unreachable". It is at
// an address of the kernel's, IPv4 or IPv6 as text, else as open_socket(). A filter drops packets before they are queued. Throws
// NativeError: EADDRINUSE when the port is taken, EADDRNOTAVAIL when the kernel does not have the address.
int open_udp_discard(const std::string& address, uint16_t port, const std::string& namespace_path);

// A netlink socket that hears of routes, nexthops, links and neighbours of the network namespace at a path (rtnetlink(7)).
// Returns the descriptor, which is the caller's to close. Throws NativeError.
int open_route_watch(const std::string& namespace_path);
// A netlink socket that hears of addresses and routes, for take_route_news(); else as that.
int open_address_watch(const std::string& namespace_path);
// Returns whether any have changed since this was last called, as a mask: 1 routes or links, 2 neighbours. The messages are
// thrown away, and any that were lost for want of room may be either: a caller that wants to know asks anew. Does not wait.
uint32_t take_route_news(int socket);

// The most bytes that a structure of ethtool may have here.
inline constexpr size_t kEthtoolBytes = 4096;
// Asks ethtool (linux/ethtool.h, SIOCETHTOOL) of an interface of the socket's namespace; `data` starts with the command, has at
// most kEthtoolBytes, and gets the answer. False, with errno, if it is refused.
bool ask_ethtool(int socket, const std::string& interface, std::span<uint8_t> data);

}  // namespace weir
