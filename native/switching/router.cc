#include "switching/router.h"

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace weir {
namespace {

using Prefix = std::tuple<uint8_t, uint8_t, uint64_t, uint64_t>;

Prefix key_of(const RouterParameters::Address& prefix) {
  const AddressBits bits = AddressBits::of(prefix.address).first(prefix.length);
  return {prefix.address.version, prefix.length, bits.high, bits.low};
}

bool covers(const RouterParameters::Address& prefix, const IpAddress& address) {
  return prefix.address.version == address.version &&
         AddressBits::of(prefix.address).first(prefix.length) == AddressBits::of(address).first(prefix.length);
}

}  // namespace

Router::Router(const RouterParameters& parameters, size_t ports)
    : neighbours(parameters.neighbour_capacity),
      mac_(parameters.mac),
      ports_(ports),
      interfaces_(parameters.interfaces),
      routed_(ports),
      kernel_used_(ports),
      table_(ports, kNoInterface),
      capacity_(parameters.neighbour_capacity) {
  for (const auto& each : interfaces_) {
    if (each.port != kAnyPort) routed_[each.port] = true;
  }
  for (uint16_t number = 0; number < interfaces_.size(); ++number) add_interface(number);
  set_neighbours(parameters.neighbours);
  for (const auto& route : parameters.routes) install(route);
  routes_ = parameters.routes;
}

bool Router::reconfigure(const RouterParameters& parameters) {
  if (parameters.mac != mac_ || parameters.interfaces != interfaces_ || parameters.neighbour_capacity != capacity_) return false;
  set_neighbours(parameters.neighbours);
  if (parameters.routes == routes_) return true;
  // Routes that are alike at both ends of the lists stay: of thousands, a few change at a time. Among the rest new ones come
  // first, then those that are no more.
  const std::span fresh(parameters.routes);
  const std::span old(std::as_const(routes_));
  const auto front = std::mismatch(fresh.begin(), fresh.end(), old.begin(), old.end()).first - fresh.begin();
  const auto back = std::mismatch(fresh.rbegin(), fresh.rend() - front, old.rbegin(), old.rend() - front).first - fresh.rbegin();
  const auto differing = [&](std::span<const RouterParameters::Route> routes) {
    return routes.subspan(static_cast<size_t>(front), routes.size() - static_cast<size_t>(front + back));
  };
  std::set<Prefix> there;
  for (const auto& route : differing(fresh)) {
    there.insert(key_of(route.prefix));
    install(route);
  }
  for (const auto& route : differing(old)) {
    if (there.contains(key_of(route.prefix))) continue;
    const uint32_t group =
        table_of(route.prefix.address.version).remove(AddressBits::of(route.prefix.address), route.prefix.length);
    if (group != PrefixTable::kNone) groups_.release(group);
  }
  ++changes_;
  routes_ = parameters.routes;
  neighbours.forget_gateways();
  for (const auto& route : routes_) {
    for (const auto& way : route.ways) {
      if (way.on_link) continue;
      const uint32_t at = neighbours.find(way.gateway.version, way.interface, AddressBits::of(way.gateway));
      if (at != NeighbourTable::kNone) neighbours[at].gateway = neighbours[at].used = true;
    }
  }
  return true;
}

void Router::add_interface(uint16_t number) {
  const RouterParameters::Interface& own = interfaces_[number];
  uint16_t& row = row_of_vlan_[own.vlan];
  if (row == 0 && own.vlan != 0) {
    row = static_cast<uint16_t>(table_.size() / ports_);
    table_.resize(table_.size() + ports_, kNoInterface);
  }
  for (size_t port = 0; port < ports_; ++port) {
    const bool meant = own.port == kAnyPort ? !routed_[port] : own.port == port;
    if (meant) table_[row * ports_ + port] = number;
  }
  for (const auto& [address, length] : own.addresses) {
    const uint32_t bits = ip_address_length(address.version) * 8;
    const auto one = [&](NextHop::Kind kind) {
      const NextHopGroups::Way way{hop({kind, number}), 1};
      return groups_.hold(std::span(&way, 1));
    };
    set({address, length}, one(NextHop::Kind::link));
    // RFC 919 and RFC 3021: of an IPv4 link of more than two addresses the first and the last are nobody's.
    if (address.version == 4 && length < 31) {
      const uint64_t first = AddressBits::of(address).first(length).high;
      const uint64_t last = first | (~uint64_t{0} >> length & 0xffffffff00000000);
      for (const uint64_t high : {first, last}) {
        RouterParameters::Address edge{address, 32};
        AddressBits{high, 0}.store(4, edge.address.bytes);
        set(edge, one(NextHop::Kind::nobody));
      }
    }
    set({address, static_cast<uint8_t>(bits)}, one(NextHop::Kind::own));
    note_own(address);
  }
}

void Router::set_neighbours(const std::vector<RouterParameters::Neighbour>& wanted) {
  if (wanted == static_) return;
  for (const auto& each : static_) {
    const uint32_t at = neighbours.find(each.address.version, each.interface, AddressBits::of(each.address));
    // One that a route needs is asked for from now on.
    if (at != NeighbourTable::kNone) neighbours.forget_permanent(at);
  }
  for (const auto& each : wanted) {
    const uint32_t at = neighbours.add(each.address.version, each.interface, AddressBits::of(each.address));
    if (at != NeighbourTable::kNone) neighbours.make_permanent(at, each.mac, each.port);
  }
  static_ = wanted;
}

uint32_t Router::hop(const NextHop& wanted) {
  const uint64_t key =
      static_cast<uint64_t>(wanted.kind) << 48 | static_cast<uint64_t>(wanted.interface) << 32 | wanted.neighbour;
  const auto [entry, is_new] = hop_numbers_.try_emplace(key, static_cast<uint32_t>(next_hops_.size()));
  if (is_new) next_hops_.push_back(wanted);
  return entry->second;
}

void Router::set(const RouterParameters::Address& prefix, uint32_t group) {
  const uint32_t before =
      table_of(prefix.address.version).set(AddressBits::of(prefix.address).first(prefix.length), prefix.length, group);
  if (before != PrefixTable::kNone) groups_.release(before);
}

bool Router::may_take_for_kernel(uint16_t port, Time now) {
  constexpr Time kPerFrame = kSecond / kKernelRate;
  Time& used = kernel_used_[port];
  if (used - now >= kKernelBurst * kPerFrame) return false;
  used = std::max(used, now) + kPerFrame;
  return true;
}

void Router::install(const RouterParameters::Route& route) {
  if (route.kind != RouteKind::forward) {
    const NextHop::Kind kind = route.kind == RouteKind::own           ? NextHop::Kind::own
                               : route.kind == RouteKind::unreachable ? NextHop::Kind::unreachable
                                                                      : NextHop::Kind::blackhole;
    if (kind == NextHop::Kind::own) note_own(route.prefix.address);
    const NextHopGroups::Way way{hop({.kind = kind}), 1};
    return set(route.prefix, groups_.hold(std::span(&way, 1)));
  }
  std::array<NextHopGroups::Way, NextHopGroups::kMostWays> ways;
  size_t count = 0;
  for (const auto& way : route.ways) {
    if (way.on_link) {
      ways[count++] = {hop({NextHop::Kind::link, way.interface}), way.weight};
      continue;
    }
    const uint32_t at = neighbours.add(way.gateway.version, way.interface, AddressBits::of(way.gateway));
    if (at == NeighbourTable::kNone) continue;
    neighbours[at].gateway = neighbours[at].used = true;
    ways[count++] = {hop({NextHop::Kind::gateway, way.interface, at}), way.weight};
  }
  if (count > 0) set(route.prefix, groups_.hold(std::span(ways).first(count)));
}

const IpAddress* Router::own_address(uint16_t number, uint8_t version, const AddressBits& near) const {
  const IpAddress* found = nullptr;
  for (const auto& own : interfaces_[number].addresses) {
    if (own.address.version != version) continue;
    if (AddressBits::of(own.address).first(own.length) == near.first(own.length)) return &own.address;
    if (found == nullptr) found = &own.address;
  }
  return found;
}

bool Router::owns(uint16_t number, const IpAddress& address) const {
  return std::ranges::any_of(interfaces_[number].addresses, [&](const auto& own) { return own.address == address; });
}

void Router::note_own(const IpAddress& address) {
  const uint64_t place = place_of(AddressBits::of(address));
  own_places_[place / 64] |= uint64_t{1} << place % 64;
}

bool Router::is_own(uint8_t version, const AddressBits& address) const {
  const uint32_t group = (version == 6 ? ipv6_ : ipv4_).lookup(address);
  return group != PrefixTable::kNone && next_hops_[groups_.places(group)[0]].kind == NextHop::Kind::own;
}

bool Router::on_link(uint16_t number, const IpAddress& address) const {
  const bool is_local = address.version == 6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
  if (is_local && interfaces_[number].kernel) return true;
  return std::ranges::any_of(interfaces_[number].addresses, [&](const auto& own) { return covers(own, address); });
}

}  // namespace weir
