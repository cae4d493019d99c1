// Knowledge of a switch that routes: which frames are for it, and where a packet goes next. routed_path.h has what it
// does to them.
//
// A frame to the router's MAC address, at a port and in a VLAN where it has an interface, is looked up once (route_table.h); of
// the route's ways one is taken as among ports of a group (load_balancing.h). That is a gateway, whose neighbour is known by its
// place, or the link itself, where the destination's neighbour is looked up (link/neighbour_table.h). The result of both look-ups
// is remembered by destination, until any route changes or any neighbour goes.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/fetch.h"
#include "link/neighbour_table.h"
#include "switching/route_table.h"
#include "switching/router_parameters.h"
#include "wire/packet.h"

namespace weir {

class Router {
 public:
  static constexpr uint16_t kNoInterface = UINT16_MAX;
  // Most frames for the kernel from one port, each a system call: in a second, and at once.
  static constexpr Time kKernelRate = 20'000;
  static constexpr Time kKernelBurst = 2'000;
  // Places by a hash of addresses: of own ones, so that most packets need no look-up of their source, and of destinations.
  static constexpr size_t kPlaces = 4'096;

  struct NextHop {
    enum class Kind : uint8_t {
      link,         // the destination is on the interface's link
      gateway,      // `neighbour` is
      own,          // it is an address of the router
      nobody,       // a broadcast address
      unreachable,  // nobody gets it, and its source is told
      blackhole     // nobody gets it
    };
    Kind kind = Kind::nobody;
    uint16_t interface = 0;
    uint32_t neighbour = NeighbourTable::kNone;
  };

  // `ports`: of the switch. Parameters have passed check().
  Router(const RouterParameters& parameters, size_t ports);

  // True where that can be done as it is: with the same interfaces and capacity. Routes that stay are not touched, and no address
  // is without a route meanwhile that has one before and after.
  bool reconfigure(const RouterParameters& parameters);

  uint64_t mac() const { return mac_; }
  // Interface of frames that come in by `port` in `vlan` (0: without a tag).
  uint16_t interface_at(uint16_t port, uint16_t vlan) const { return table_[row_of_vlan_[vlan] * ports_ + port]; }
  const RouterParameters::Interface& interface(uint16_t number) const { return interfaces_[number]; }
  bool routed(uint16_t port) const { return routed_[port]; }
  // False where frames for the kernel come in at `port` faster than kKernelRate.
  bool may_take_for_kernel(uint16_t port, Time now);
  // Its own address there, or null. `near`: preferably with a prefix that covers it.
  const IpAddress* own_address(uint16_t interface, uint8_t version, const AddressBits& near = {}) const;
  // An own address, of any interface or of the kernel's.
  bool owns(uint8_t version, const AddressBits& address) const {
    const uint64_t place = place_of(address);
    return (own_places_[place / 64] >> place % 64 & 1) != 0 && is_own(version, address);
  }
  // An own address of that interface.
  bool owns(uint16_t interface, const IpAddress& address) const;
  // Whether the address is on the interface's link. Link-local ones of IPv6 are, where the kernel has a twin.
  bool on_link(uint16_t interface, const IpAddress& address) const;

  // Memory of where packets to an address go.
  struct Destination {
    AddressBits address;
    uint64_t stamp = UINT64_MAX;                 // stamp() when that was; UINT64_MAX: of none
    uint32_t group = PrefixTable::kNone;         // group of its route; kNone: there is none
    uint32_t neighbour = NeighbourTable::kNone;  // neighbour that takes all of them, set by the first look-up
  };
  // Good until anything of the router changes.
  Destination& destination(uint8_t version, const AddressBits& address) {
    Destination& known = destinations_[place_of(address)];
    const uint64_t now = stamp(version);
    if (known.address != address || known.stamp != now) known = {address, now, table_of(version).lookup(address)};
    return known;
  }
  // A hint for the caches: it is going to be asked for.
  WEIR_FETCHES void fetch(const AddressBits& address) const { __builtin_prefetch(&destinations_[place_of(address)]); }
  // The next hop of each place of a group.
  std::span<const uint32_t> places(uint32_t group) const { return groups_.places(group); }
  const NextHop& next_hop(uint32_t number) const { return next_hops_[number]; }
  size_t route_count() const { return ipv4_.size() + ipv6_.size(); }

  NeighbourTable neighbours;

 private:
  uint64_t stamp(uint8_t version) const { return (changes_ + neighbours.removed()) << 1 | (version == 6 ? 1 : 0); }
  PrefixTable& table_of(uint8_t version) { return version == 6 ? ipv6_ : ipv4_; }
  uint32_t hop(const NextHop& wanted);
  void set(const RouterParameters::Address& prefix, uint32_t group);
  void install(const RouterParameters::Route& route);
  bool is_own(uint8_t version, const AddressBits& address) const;
  void note_own(const IpAddress& address);
  static uint64_t place_of(const AddressBits& address) { return Random::mix(address.high ^ address.low) % kPlaces; }
  void add_interface(uint16_t number);
  void set_neighbours(const std::vector<RouterParameters::Neighbour>& wanted);

  uint64_t mac_;
  size_t ports_;
  std::vector<RouterParameters::Interface> interfaces_;
  std::vector<bool> routed_;
  std::vector<Time> kernel_used_;  // time, by port, up to which its rate of frames for the kernel is used up
  std::array<uint16_t, 4096> row_of_vlan_{};
  std::vector<uint16_t> table_;  // interfaces by row and port
  PrefixTable ipv4_{4};
  PrefixTable ipv6_{6};
  NextHopGroups groups_;
  std::vector<NextHop> next_hops_;
  std::unordered_map<uint64_t, uint32_t> hop_numbers_;
  std::array<uint64_t, kPlaces / 64> own_places_{};  // a bit for each own address, or one that was
  std::vector<Destination> destinations_ = std::vector<Destination>(kPlaces);
  uint64_t changes_ = 0;  // changes of routes
  std::vector<RouterParameters::Route> routes_;
  std::vector<RouterParameters::Neighbour> static_;
  uint32_t capacity_;
};

}  // namespace weir
