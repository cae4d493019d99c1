#include "switching/routed_path.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/icmp.h"
#include "wire/qcn.h"
#include "wire/tags.h"

namespace weir {
namespace {

inline bool is_link_local(const AddressBits& address) { return address.high >> 54 == 0xfe80 >> 6; }

// RFC 1812, 5.3.7, and RFC 4291, 2.5: what is no destination, or no source, beyond a link. Groups are not routed.
inline bool is_martian(uint8_t version, const AddressBits& address) {
  if (version == 4) {
    const uint64_t first = address.high >> 56;
    return first == 0 || first == 127 || first >= 224 || address.high >> 48 == 0xa9fe;
  }
  return address.high >> 56 == 0xff || is_link_local(address) || (address.high == 0 && address.low <= 1);
}

bool is_udp(const uint8_t* ip) { return (ip[0] >> 4 == 6 ? ip[6] : ip[9]) == kProtocolUdp; }

}  // namespace

RoutedPath::RoutedPath(SwitchState& state, const Vlans& vlans, Way way)
    : state_(state), vlans_(vlans), way_(way), icmp_(state.link == nullptr ? own_icmp_ : state.link->icmp()) {}

void RoutedPath::configure() {
  const RouterParameters& wanted = state_.parameters.router;
  if (router_ != nullptr) {
    if (wanted.routes_at_all() && router_->reconfigure(wanted)) return;
    drop_router();
  }
  if (!wanted.routes_at_all()) return;
  router_ = std::make_unique<Router>(wanted, state_.ports.size());
  router_mac_ = wanted.mac;
  for (uint16_t port = 0; port < state_.ports.size(); ++port) state_.ports[port].routed = router_->routed(port);
}

void RoutedPath::drop_router() {
  for (uint32_t at = 0; at < router_->neighbours.entries().size(); ++at) {
    for (PacketId id; (id = router_->neighbours.take_waiting(state_.pool, at)) != kNoPacket;) {
      state_.drop(state_.ports[state_.pool[id].ingress_port].counters.drop_neighbor_unknown, id);
    }
  }
  router_.reset();
  router_mac_ = Forwarding::kNobody;
  state_.neighbours_due = kNever;
  for (SwitchPort& port : state_.ports) port.routed = false;
}

bool RoutedPath::route(SwitchPort& in, PacketId id) {
  const PacketMeta& meta = state_.pool[id].meta;
  const uint16_t on = router_->interface_at(in.number(), meta.vlan());
  if (meta.destination_mac == router_mac_) {
    if (on == Router::kNoInterface) return state_.drop(in.counters.drop_router_bridged, id), true;
    return route_ip(in, on, id), true;
  }
  bool heard = false;
  if (on != Router::kNoInterface && is_group(meta.destination_mac)) {
    NeighbourMessage message;
    heard = read_neighbour_message(state_.pool.data(id), state_.pool.present(id), meta, message);
    if (heard) hear_neighbour(in, on, message, id);
  }
  if (!router_->routed(in.number())) return false;
  if (on != Router::kNoInterface && router_->interface(on).kernel && is_group(meta.destination_mac) && concerns_kernel(id))
    return take_for_kernel(in, on, id), true;
  if (heard) return take_for_router(in, id), true;
  uint64_t& reason = is_group(meta.destination_mac) ? in.counters.drop_router_multicast : in.counters.drop_router_bridged;
  return state_.drop(reason, id), true;
}

void RoutedPath::take_for_router(SwitchPort& in, PacketId id) {
  in.counters.router_packets += carried_frames(state_.pool[id]);
  state_.discard(id);
}

void RoutedPath::route_ip(SwitchPort& in, uint16_t on, PacketId id) {
  Packet& packet = state_.pool[id];
  const PacketMeta& meta = packet.meta;
  const bool kernel = router_->interface(on).kernel;
  if (meta.ethertype == kEthertypeArp || (meta.ip_version == 6 && meta.kind == FrameKind::other)) {
    NeighbourMessage message;
    if (read_neighbour_message(state_.pool.data(id), state_.pool.present(id), meta, message)) {
      hear_neighbour(in, on, message, id);
      return kernel ? take_for_kernel(in, on, id) : take_for_router(in, id);
    }
  }
  if (meta.l3_offset == 0) {
    const bool is_ip = meta.ethertype == kEthertypeIpv4 || meta.ethertype == kEthertypeIpv6;
    return state_.drop(is_ip ? in.counters.drop_ip_header : in.counters.drop_router_protocol, id);
  }
  const uint8_t version = meta.ip_version;
  const uint8_t* const ip = state_.pool.data(id) + meta.l3_offset;  // classify() has found its header whole
  const AddressBits source = AddressBits::load(version, ip + ip_source_offset(version));
  const AddressBits destination = destination_of(meta, state_.pool.data(id));
  // A packet from or to an address of this link is between neighbours, not to be routed.
  if (kernel && version == 6 && (is_link_local(destination) || (is_link_local(source) && router_->owns(version, destination))))
    return take_for_kernel(in, on, id);
  // RFC 1812, 5.3.7: from the router itself nothing comes back.
  if (is_martian(version, destination) || is_martian(version, source) || router_->owns(version, source))
    return state_.drop(in.counters.drop_martian, id);
  Router::Destination& known = router_->destination(version, destination);
  const Router::NextHop* hop = nullptr;
  if (known.neighbour == NeighbourTable::kNone) {
    hop = next_hop(packet, version, known);
    using Kind = Router::NextHop::Kind;
    const Kind kind = hop != nullptr ? hop->kind : Kind::unreachable;
    if (kind == Kind::own) return kernel ? take_for_kernel(in, on, id) : take_locally(in, on, id);
    if (kind == Kind::unreachable) return refuse(in, on, id, in.counters.drop_ip_no_route, IcmpError::no_route);
    if (kind == Kind::blackhole) return state_.drop(in.counters.drop_blackhole, id);
    if (kind == Kind::nobody) return state_.drop(in.counters.drop_martian, id);
  }
  if (ip[version == 6 ? 7 : 8] <= 1) return refuse(in, on, id, in.counters.drop_ttl_expired, IcmpError::time_exceeded);
  send_to_neighbour(in, hop != nullptr ? neighbour_of(*hop, version, known) : known.neighbour, id);
}

// Null: there is no route.
const Router::NextHop* RoutedPath::next_hop(const Packet& packet, uint8_t version, const Router::Destination& to) {
  if (to.group == PrefixTable::kNone) return nullptr;
  const std::span<const uint32_t> places = router_->places(to.group);
  if (places.size() == 1) return &router_->next_hop(places[0]);
  const size_t chosen = state_.balancer.choose(state_.now, packet.meta.flow_hash, places.size(), [&](size_t place) {
    const Router::NextHop& hop = router_->next_hop(places[place]);
    const bool on_link = hop.kind == Router::NextHop::Kind::link;
    const uint32_t at = on_link ? router_->neighbours.find(version, hop.interface, to.address) : hop.neighbour;
    // One that nobody knows the place of yet is as good as an idle one.
    if (at == NeighbourTable::kNone || !router_->neighbours[at].known()) return PortLoad{0, state_.now};
    return state_.load_of(router_->neighbours[at].port, packet.priority);
  });
  return &router_->next_hop(places[chosen]);
}

// Returns the neighbour by a hop that is a gateway or a link. kNone: there is no room to ask.
uint32_t RoutedPath::neighbour_of(const Router::NextHop& hop, uint8_t version, Router::Destination& to) {
  NeighbourTable& table = router_->neighbours;
  uint32_t at = hop.neighbour;
  if (hop.kind == Router::NextHop::Kind::link) {
    at = table.find(version, hop.interface, to.address);
    if (at == NeighbourTable::kNone && table.may_ask()) at = table.add(version, hop.interface, to.address);
  }
  if (router_->places(to.group).size() == 1) to.neighbour = at;
  return at;
}

void RoutedPath::send_to_neighbour(SwitchPort& in, uint32_t neighbour, PacketId id) {
  if (neighbour == NeighbourTable::kNone) return state_.drop(in.counters.drop_neighbor_queue, id);
  NeighbourTable::Entry& to = router_->neighbours[neighbour];
  to.used = true;
  if (!to.known()) return wait_for_neighbour(in, neighbour, id);
  send_routed(in, id, to);
}

// A hop is taken off its time to live on the way out.
void RoutedPath::notify(SwitchPort& out, PacketId cnm) {
  constexpr uint8_t kTtl = 64;
  CongestionNotification content;
  const bool whole = parse_cnm(state_.pool.data(cnm), state_.pool[cnm].length, content);
  const std::optional<IpAddress> source = whole ? sampled_source(content.msdu) : std::nullopt;
  if (router_ == nullptr || !source) return state_.drop(out.counters.drop_ip_no_route, cnm);
  Router::Destination& to = router_->destination(source->version, AddressBits::of(*source));
  const Router::NextHop* const hop = next_hop(state_.pool[cnm], source->version, to);
  using Kind = Router::NextHop::Kind;
  if (hop == nullptr || (hop->kind != Kind::gateway && hop->kind != Kind::link))
    return state_.drop(out.counters.drop_ip_no_route, cnm);
  const IpAddress* const own = router_->own_address(hop->interface, source->version, to.address);
  if (own == nullptr || !wrap_cnm(state_.pool, cnm, *own, state_.domain.cnm_dscp(), kTtl + 1))
    return state_.drop(out.counters.drop_ip_no_route, cnm);
  send_to_neighbour(out, neighbour_of(*hop, source->version, to), cnm);
}

// Takes packets to an address of the router's own: pings are answered, and senders to a port learn that there is none.
void RoutedPath::take_locally(SwitchPort& in, uint16_t on, PacketId id) {
  Packet& packet = state_.pool[id];
  uint8_t* const frame = state_.pool.data(id);
  uint8_t* const ip = frame + packet.meta.l3_offset;
  if (packet.offload.pending()) return state_.drop(in.counters.drop_router_protocol, id);
  if (is_udp(ip)) return refuse(in, on, id, in.counters.drop_router_protocol, IcmpError::port_unreachable);
  const uint32_t present = state_.pool.present(id) - packet.meta.l3_offset;
  if (!make_echo_reply(ip, present)) return state_.drop(in.counters.drop_router_protocol, id);
  if (!may_send_icmp(in)) return state_.drop(in.counters.drop_router_protocol, id);
  store_be48(frame, packet.meta.source_mac);
  store_be48(frame + 6, router_mac_);
  std::swap(packet.meta.source_mac, packet.meta.destination_mac);
  way_.emit(in, in.number(), id);
}

// TTL and addresses change, and the tag; priority, ECN and whatever the ICRC covers do not (IBTA annex A17: TTL, traffic class
// and the checksum count as ones).
void RoutedPath::send_routed(SwitchPort& in, PacketId id, const NeighbourTable::Entry& to) {
  Packet& packet = state_.pool[id];
  const SwitchPort& out = state_.ports[to.port];
  const uint32_t header = link_header_length(packet.meta);
  if (!out.egress.fits(packet.offload.largest_segment(packet.length), header)) {
    const uint16_t on = router_->interface_at(in.number(), packet.meta.vlan());
    return refuse(in, on, id, in.counters.drop_mtu_exceeded, IcmpError::too_big, out.egress.parameters().mtu);
  }
  if (packet.meta.cn_tagged) remove_cn_tag(state_.pool, id);
  const uint16_t vlan = router_->interface(to.interface).vlan;
  if (vlan != 0 || packet.meta.tagged) {
    const auto pcp = static_cast<uint16_t>(packet.meta.tagged ? packet.meta.pcp() : packet.priority);
    const auto tag = vlan != 0 ? std::optional<uint16_t>(static_cast<uint16_t>(pcp << 13 | vlan)) : std::nullopt;
    if (!place_vlan_tag(state_.pool, id, tag)) return state_.drop(in.counters.drop_mtu_exceeded, id);
  } else {
    packet.meta.vlan_tci = 0;  // it came by a port that its VLAN has no tag at
  }
  uint8_t* const frame = state_.pool.data(id);
  store_be48(frame, to.mac);
  store_be48(frame + 6, router_mac_);
  packet.meta.destination_mac = to.mac;
  packet.meta.source_mac = router_mac_;
  uint8_t* const ip = frame + packet.meta.l3_offset;
  if (to.version == 6) {
    --ip[7];
  } else {
    const uint16_t before = load_be16(ip + 8);
    const auto after = static_cast<uint16_t>(before - 0x100);
    store_be16(ip + 8, after);
    store_be16(ip + 10, checksum_update(load_be16(ip + 10), before, after));
  }
  in.counters.routed_packets += carried_frames(packet);
  way_.emit(in, to.port, id);
}

bool RoutedPath::may_send_icmp(SwitchPort& in) {
  const bool may = icmp_.take(state_.now);
  if (!may) ++in.counters.router_icmp_limited;
  return may;
}

// Drops the frame, and tells its source why, by the way that it came; of a CNM nobody is told.
void RoutedPath::refuse(SwitchPort& in, uint16_t on, PacketId id, uint64_t& reason, IcmpError error, uint32_t mtu) {
  const Packet& packet = state_.pool[id];
  const uint8_t* const ip = state_.pool.data(id) + packet.meta.l3_offset;
  const uint32_t present = state_.pool.present(id) - packet.meta.l3_offset;
  const uint8_t version = packet.meta.ip_version;
  const IpAddress* own = on == Router::kNoInterface
                             ? nullptr
                             : router_->own_address(on, version, AddressBits::load(version, ip + ip_source_offset(version)));
  const bool tells = own != nullptr && packet.meta.kind != FrameKind::cnm && !is_group(packet.meta.source_mac);
  if (tells && may_answer_with_error(ip, present) && may_send_icmp(in)) {
    const LinkHeader link{.destination_mac = packet.meta.source_mac,
                          .source_mac = router_mac_,
                          .tagged = packet.meta.tagged || packet.meta.vlan() != 0,
                          .vlan_tci = packet.meta.vlan_tci};
    std::array<uint8_t, kIcmpErrorHeaders + kMostQuoted> frame;
    const uint32_t room =
        std::min(static_cast<uint32_t>(frame.size()), state_.pool.has_payload() ? state_.pool.room() : kHeaderStride);
    const uint32_t length = build_icmp_error(frame.data(), room, link, *own, ip, present, error, mtu);
    const PacketId made = make_frame(in, frame.data(), length);
    if (made != kNoPacket) way_.emit(in, in.number(), made);
  }
  state_.drop(reason, id);
}

// A frame of the router's own, because of one that came in at `in`.
PacketId RoutedPath::make_frame(SwitchPort& in, const uint8_t* bytes, uint32_t length) {
  const PacketId id = state_.pool.room() >= length ? state_.pool.allocate() : kNoPacket;
  ++in.counters.router_made_packets;
  if (id == kNoPacket) {
    ++in.counters.drop_no_descriptor;
    return id;
  }
  Packet& packet = state_.pool[id];
  packet.reset();
  packet.length = length;
  std::memcpy(state_.pool.data(id), bytes, length);
  classify(state_.pool.data(id), length, packet.meta);
  packet.priority = state_.parameters.priority_map.priority(packet.meta);
  packet.ingress_port = in.number();
  ++state_.held;
  return id;
}

}  // namespace weir
