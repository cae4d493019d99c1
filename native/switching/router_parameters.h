// Parameters of a switch that routes: its interfaces, routes and static neighbours.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "wire/ip.h"

namespace weir {

inline constexpr uint16_t kAnyPort = UINT16_MAX;

// Fate of a packet that a route is for. own: it is the router's, and goes to the kernel where that has a twin; unreachable: its
// source is told; blackhole: it is not.
enum class RouteKind : uint8_t { forward, own, unreachable, blackhole };
constexpr auto words_of(RouteKind) { return std::array{"forward", "own", "unreachable", "blackhole"}; }

struct RouterParameters {
  struct Address {
    IpAddress address;
    uint8_t length = 0;
    bool operator==(const Address&) const = default;
  };
  struct Interface {
    uint16_t port = kAnyPort;
    uint16_t vlan = 0;
    std::vector<Address> addresses;
    bool kernel = false;
    bool operator==(const Interface&) const = default;
  };
  struct Way {
    uint16_t interface = 0;
    IpAddress gateway;
    uint32_t weight = 1;
    bool on_link = false;
    bool operator==(const Way&) const = default;
  };
  struct Route {
    Address prefix;
    std::vector<Way> ways;
    RouteKind kind = RouteKind::forward;
    bool operator==(const Route&) const = default;
  };
  struct Neighbour {
    IpAddress address;
    uint16_t interface = 0;
    uint16_t port = 0;
    uint64_t mac = 0;
    bool operator==(const Neighbour&) const = default;
  };
  uint64_t mac = 0;  // address of all its interfaces
  std::vector<Interface> interfaces;
  std::vector<Route> routes;
  std::vector<Neighbour> neighbours;
  uint32_t neighbour_capacity = 16'384;
  bool operator==(const RouterParameters&) const = default;

  bool routes_at_all() const { return !interfaces.empty(); }
};
// Whether what routes and neighbours name is there.
inline bool names_its_interfaces(const RouterParameters& p) {
  const auto has = [&](uint16_t interface, uint8_t version) {
    return interface < p.interfaces.size() && std::ranges::any_of(p.interfaces[interface].addresses, [&](const auto& own) {
             return own.address.version == version;
           });
  };
  return std::ranges::all_of(p.routes,
                             [&](const auto& route) {
                               return (!route.ways.empty() || route.kind != RouteKind::forward) && route.ways.size() <= 64 &&
                                      std::ranges::all_of(route.ways, [&](const auto& way) {
                                        return has(way.interface, route.prefix.address.version) &&
                                               way.gateway.version == route.prefix.address.version;
                                      });
                             }) &&
         std::ranges::all_of(p.neighbours, [&](const auto& each) { return has(each.interface, each.address.version); });
}
// Frames that the kernel sends on a twin leave by the interface's port.
inline bool kernel_has_ports(const RouterParameters& p) {
  return std::ranges::all_of(p.interfaces, [](const auto& each) { return !each.kernel || each.port != kAnyPort; });
}
inline size_t kernel_interfaces(const RouterParameters& p) {
  return static_cast<size_t>(std::ranges::count_if(p.interfaces, [](const auto& each) { return each.kernel; }));
}
inline bool prefixes_are_sound(const RouterParameters& p) {
  const auto sound = [](const RouterParameters::Address& each) {
    const uint8_t version = each.address.version;
    return (version == 4 || version == 6) && each.length <= ip_address_length(version) * 8;
  };
  return std::ranges::all_of(p.routes, [&](const auto& route) { return sound(route.prefix); }) &&
         std::ranges::all_of(p.interfaces, [&](const auto& each) { return std::ranges::all_of(each.addresses, sound); });
}
void describe(auto& v, Of<RouterParameters::Address> auto& p) {
  v.type("NativePrefix", "An address and its prefix.");
  v("address", p.address, field::any("Of an interface with its bits for hosts."));
  v("length", p.length, field::within(0, 128, "Of the prefix, in bits."));
}
void describe(auto& v, Of<RouterParameters::Interface> auto& p) {
  v.type("NativeRouterInterface", "Of a port, or of a VLAN.");
  v("port", p.port, field::any("Which then does not bridge; 65535: all that do, in the VLAN."));
  v("vlan", p.vlan, field::within(0, 4094, "Of its frames; 0: they have no tag."));
  v("addresses", p.addresses, field::any("Its own."));
  v("kernel", p.kernel, field::optional(field::any("The kernel has a twin of it, and gets what is for the router itself.")));
}
void describe(auto& v, Of<RouterParameters::Way> auto& p) {
  v.type("NativeRouterWay", "A next hop.");
  v("interface", p.interface, field::any("Its link."));
  v("gateway", p.gateway, field::any("Its address."));
  v("weight", p.weight, field::within(1, 255, "Of its share."));
  v("on_link", p.on_link, field::optional(field::any("There is no gateway: destinations are on the link.")));
}
void describe(auto& v, Of<RouterParameters::Route> auto& p) {
  v.type("NativeIpRoute", "A prefix, and the ways to it.");
  v("prefix", p.prefix, field::any("Of destinations."));
  v("kind", p.kind, field::optional(field::any("What becomes of packets to it; all but forward: it has no ways.")));
  v("ways", p.ways, field::any("1 to 64."));
}
void describe(auto& v, Of<RouterParameters::Neighbour> auto& p) {
  v.type("NativeStaticNeighbour", "Where an address is.");
  v("address", p.address, field::any("Its."));
  v("interface", p.interface, field::any("Its link."));
  v("port", p.port, field::any("Its port."));
  v("mac", p.mac, field::any("Its MAC address."));
}
void describe(auto& v, Of<RouterParameters> auto& p) {
  v.type("NativeRouter", "What it routes.");
  v("mac", p.mac, field::any("Of its interfaces."));
  v("interfaces", p.interfaces, field::within(0, 4096, "None: it does not route."));
  v("routes", p.routes, field::any("Beside those to its own links."));
  v("neighbours", p.neighbours, field::any("Static ones."));
  v("neighbour_capacity", p.neighbour_capacity, field::within(16, 1 << 20, "Most neighbours that it knows."));
  v.rule(p.interfaces.size() <= 4096, "it has at most 4096 interfaces");
  v.rule(prefixes_are_sound(p), "prefixes are 0 to 32 bits of IPv4 or 0 to 128 of IPv6");
  v.rule(kernel_has_ports(p), "interfaces with kernel have a port");
  v.rule(names_its_interfaces(p), "routes have 1 to 64 ways, by interfaces with addresses of the route's IP version");
}

}  // namespace weir
