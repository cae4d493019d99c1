// The way of a frame that is routed: receive -> route -> route_ip -> send_routed -> emit, and from there on that of any frame.
//
// Taken for the router are frames to its MAC address where it has an interface, and copies of questions for its neighbours.
// Its own frames (questions, answers, ICMP) leave by the same queues, charged to the port whose frame was the
// reason.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/native_error.h"
#include "switching/soft_switch.h"
#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/icmp.h"
#include "wire/qcn.h"
#include "wire/tags.h"

namespace weir {
namespace {

// ICMP messages, as many as Linux sends in a second, and at once (icmp_msgs_per_sec, icmp_msgs_burst).
constexpr Time kPerIcmp = kSecond / 1000;
constexpr Time kIcmpBurst = 50 * kPerIcmp;

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

// Packets that wait for neighbours of interfaces that are no more go with them.
void SoftSwitch::configure_router() {
  const RouterParameters& wanted = parameters_.router;
  if (router_ != nullptr) {
    if (wanted.routes_at_all() && router_->reconfigure(wanted)) return;
    for (uint32_t at = 0; at < router_->neighbours.entries().size(); ++at) {
      for (PacketId id; (id = router_->neighbours.take_waiting(pool_, at)) != kNoPacket;) {
        drop(ports_[pool_[id].ingress_port].counters.drop_neighbor_unknown, id);
      }
    }
    router_.reset();
    router_mac_ = Forwarding::kNobody;
  }
  if (!wanted.routes_at_all()) return;
  router_ = std::make_unique<Router>(wanted, ports_.size());
  router_mac_ = wanted.mac;
}

// True: the frame is not to be bridged, and was taken.
bool SoftSwitch::route(Port& in, PacketId id) {
  const PacketMeta& meta = pool_[id].meta;
  const uint16_t on = router_->interface_at(in.number(), meta.vlan());
  if (meta.destination_mac == router_mac_) {
    if (on == Router::kNoInterface) return drop(in.counters.drop_router_bridged, id), true;
    return route_ip(in, on, id), true;
  }
  bool heard = false;
  if (on != Router::kNoInterface && is_group(meta.destination_mac)) {
    NeighbourMessage message;
    heard = read_neighbour_message(pool_.data(id), pool_.present(id), meta, message);
    if (heard) hear(in, on, message, id);
  }
  if (!router_->routed(in.number())) return false;
  if (on != Router::kNoInterface && router_->interface(on).kernel && is_group(meta.destination_mac) && concerns_kernel(id))
    return take_for_kernel(in, on, id), true;
  if (heard) return take_for_router(in, id), true;
  uint64_t& reason = is_group(meta.destination_mac) ? in.counters.drop_router_multicast : in.counters.drop_router_bridged;
  return drop(reason, id), true;
}

void SoftSwitch::take_for_router(Port& in, PacketId id) {
  in.counters.router_packets += carried_frames(pool_[id]);
  discard(id);
}

void SoftSwitch::route_ip(Port& in, uint16_t on, PacketId id) {
  Packet& packet = pool_[id];
  const PacketMeta& meta = packet.meta;
  const bool kernel = router_->interface(on).kernel;
  if (meta.ethertype == kEthertypeArp || (meta.ip_version == 6 && meta.kind == FrameKind::other)) {
    NeighbourMessage message;
    if (read_neighbour_message(pool_.data(id), pool_.present(id), meta, message)) {
      hear(in, on, message, id);
      return kernel ? take_for_kernel(in, on, id) : take_for_router(in, id);
    }
  }
  if (meta.l3_offset == 0) {
    const bool is_ip = meta.ethertype == kEthertypeIpv4 || meta.ethertype == kEthertypeIpv6;
    return drop(is_ip ? in.counters.drop_ip_header : in.counters.drop_router_protocol, id);
  }
  const uint8_t version = meta.ip_version;
  const uint8_t* const ip = pool_.data(id) + meta.l3_offset;  // classify() has found its header whole
  const AddressBits source = AddressBits::load(version, ip + ip_source_offset(version));
  const AddressBits destination = destination_of(meta, pool_.data(id));
  // A packet from or to an address of this link is between neighbours, not to be routed.
  if (kernel && version == 6 && (is_link_local(destination) || (is_link_local(source) && router_->owns(version, destination))))
    return take_for_kernel(in, on, id);
  // RFC 1812, 5.3.7: from the router itself nothing comes back.
  if (is_martian(version, destination) || is_martian(version, source) || router_->owns(version, source))
    return drop(in.counters.drop_martian, id);
  Router::Destination& known = router_->destination(version, destination);
  const Router::NextHop* hop = nullptr;
  if (known.neighbour == NeighbourTable::kNone) {
    hop = next_hop(packet, version, known);
    using Kind = Router::NextHop::Kind;
    const Kind kind = hop != nullptr ? hop->kind : Kind::unreachable;
    if (kind == Kind::own) return kernel ? take_for_kernel(in, on, id) : take_locally(in, on, id);
    if (kind == Kind::unreachable) return refuse(in, on, id, in.counters.drop_ip_no_route, IcmpError::no_route);
    if (kind == Kind::blackhole) return drop(in.counters.drop_blackhole, id);
    if (kind == Kind::nobody) return drop(in.counters.drop_martian, id);
  }
  if (ip[version == 6 ? 7 : 8] <= 1) return refuse(in, on, id, in.counters.drop_ttl_expired, IcmpError::time_exceeded);
  send_to(in, hop != nullptr ? neighbour_of(*hop, version, known) : known.neighbour, id);
}

// Null: there is no route.
const Router::NextHop* SoftSwitch::next_hop(const Packet& packet, uint8_t version, const Router::Destination& to) {
  if (to.group == PrefixTable::kNone) return nullptr;
  const std::span<const uint32_t> places = router_->places(to.group);
  if (places.size() == 1) return &router_->next_hop(places[0]);
  const size_t chosen = balancer_.choose(now_, packet.meta.flow_hash, places.size(), [&](size_t place) {
    const Router::NextHop& hop = router_->next_hop(places[place]);
    const bool on_link = hop.kind == Router::NextHop::Kind::link;
    const uint32_t at = on_link ? router_->neighbours.find(version, hop.interface, to.address) : hop.neighbour;
    // One that nobody knows the place of yet is as good as an idle one.
    if (at == NeighbourTable::kNone || !router_->neighbours[at].known()) return PortLoad{0, now_};
    return load_of(router_->neighbours[at].port, packet.priority);
  });
  return &router_->next_hop(places[chosen]);
}

// Returns the neighbour by a hop that is a gateway or a link. kNone: there is no room to ask.
uint32_t SoftSwitch::neighbour_of(const Router::NextHop& hop, uint8_t version, Router::Destination& to) {
  NeighbourTable& table = router_->neighbours;
  uint32_t at = hop.neighbour;
  if (hop.kind == Router::NextHop::Kind::link) {
    at = table.find(version, hop.interface, to.address);
    if (at == NeighbourTable::kNone && table.may_ask()) at = table.add(version, hop.interface, to.address);
  }
  if (router_->places(to.group).size() == 1) to.neighbour = at;
  return at;
}

void SoftSwitch::send_to(Port& in, uint32_t neighbour, PacketId id) {
  if (neighbour == NeighbourTable::kNone) return drop(in.counters.drop_neighbor_queue, id);
  NeighbourTable::Entry& to = router_->neighbours[neighbour];
  to.used = true;
  if (!to.known()) return wait_for(in, neighbour, id);
  send_routed(in, id, to);
}

// A CNM of the congestion point at `out`, by the route to its source: see switching/congestion_notification.h. A hop is taken off
// its time to live on the way out.
void SoftSwitch::notify_by_route(Port& out, PacketId cnm) {
  constexpr uint8_t kTtl = 64;
  CongestionNotification content;
  const bool whole = parse_cnm(pool_.data(cnm), pool_[cnm].length, content);
  const std::optional<IpAddress> source = whole ? sampled_source(content.msdu) : std::nullopt;
  if (router_ == nullptr || !source) return drop(out.counters.drop_ip_no_route, cnm);
  Router::Destination& to = router_->destination(source->version, AddressBits::of(*source));
  const Router::NextHop* const hop = next_hop(pool_[cnm], source->version, to);
  using Kind = Router::NextHop::Kind;
  if (hop == nullptr || (hop->kind != Kind::gateway && hop->kind != Kind::link)) return drop(out.counters.drop_ip_no_route, cnm);
  const IpAddress* const own = router_->own_address(hop->interface, source->version, to.address);
  if (own == nullptr || !wrap_cnm(pool_, cnm, *own, domain_.cnm_dscp(), kTtl + 1))
    return drop(out.counters.drop_ip_no_route, cnm);
  send_to(out, neighbour_of(*hop, source->version, to), cnm);
}

// Takes packets to an address of the router's own: pings are answered, and senders to a port learn that there is none.
void SoftSwitch::take_locally(Port& in, uint16_t on, PacketId id) {
  Packet& packet = pool_[id];
  uint8_t* const frame = pool_.data(id);
  uint8_t* const ip = frame + packet.meta.l3_offset;
  if (packet.offload.pending()) return drop(in.counters.drop_router_protocol, id);
  if (is_udp(ip)) return refuse(in, on, id, in.counters.drop_router_protocol, IcmpError::port_unreachable);
  const uint32_t present = pool_.present(id) - packet.meta.l3_offset;
  if (!make_echo_reply(ip, present)) return drop(in.counters.drop_router_protocol, id);
  if (!may_send_icmp(in)) return drop(in.counters.drop_router_protocol, id);
  store_be48(frame, packet.meta.source_mac);
  store_be48(frame + 6, router_mac_);
  std::swap(packet.meta.source_mac, packet.meta.destination_mac);
  emit(in, in.number(), id);
}

// TTL and addresses change, and the tag; priority, ECN and whatever the ICRC covers do not (IBTA annex A17: TTL, traffic class
// and the checksum count as ones).
void SoftSwitch::send_routed(Port& in, PacketId id, const NeighbourTable::Entry& to) {
  Packet& packet = pool_[id];
  const Port& out = ports_[to.port];
  const uint32_t header = link_header_length(packet.meta);
  if (!out.egress.fits(packet.offload.largest_segment(packet.length), header)) {
    const uint16_t on = router_->interface_at(in.number(), packet.meta.vlan());
    return refuse(in, on, id, in.counters.drop_mtu_exceeded, IcmpError::too_big, out.egress.parameters().mtu);
  }
  if (packet.meta.cn_tagged) remove_cn_tag(pool_, id);
  const uint16_t vlan = router_->interface(to.interface).vlan;
  if (vlan != 0 || packet.meta.tagged) {
    const auto pcp = static_cast<uint16_t>(packet.meta.tagged ? packet.meta.pcp() : packet.priority);
    const auto tag = vlan != 0 ? std::optional<uint16_t>(static_cast<uint16_t>(pcp << 13 | vlan)) : std::nullopt;
    if (!place_vlan_tag(pool_, id, tag)) return drop(in.counters.drop_mtu_exceeded, id);
  } else {
    packet.meta.vlan_tci = 0;  // it came by a port that its VLAN has no tag at
  }
  uint8_t* const frame = pool_.data(id);
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
  emit(in, to.port, id);
}

void SoftSwitch::wait_for(Port& in, uint32_t neighbour, PacketId id) {
  if (router_->neighbours[neighbour].asked == 0) ask(in, neighbour);
  if (!router_->neighbours.wait(pool_, neighbour, id)) drop(in.counters.drop_neighbor_queue, id);
}

// Its MAC address is known now.
void SoftSwitch::resolved(uint32_t neighbour) {
  for (PacketId id; (id = router_->neighbours.take_waiting(pool_, neighbour)) != kNoPacket;) {
    send_routed(ports_[pool_[id].ingress_port], id, router_->neighbours[neighbour]);
  }
}

// Asks who has that address. One that has had it is asked first, then all.
void SoftSwitch::ask(Port& in, uint32_t neighbour) {
  arm_router();
  NeighbourTable::Entry& entry = router_->neighbours[neighbour];
  ++entry.asked;
  const RouterParameters::Interface& on = router_->interface(entry.interface);
  const IpAddress* own = router_->own_address(entry.interface, entry.version, entry.address);
  if (own == nullptr) return;
  IpAddress target{.version = entry.version};
  entry.address.store(entry.version, target.bytes);
  const bool known = entry.known() && entry.asked == 1;
  const LinkHeader link{
      .destination_mac = known ? entry.mac : 0, .source_mac = router_mac_, .tagged = on.vlan != 0, .vlan_tci = on.vlan};
  std::array<uint8_t, kNeighbourFrame> frame;
  const uint32_t length = build_neighbour_question(frame.data(), link, *own, target);
  bool told = false;
  const auto send = [&](uint16_t port) {
    const PacketId id = make(in, frame.data(), length);
    if (id == kNoPacket) return;
    if (!std::exchange(told, true)) tell_of_neighbour(port, id);
    emit(in, port, id);
  };
  if (known) return send(entry.port);
  if (on.port != kAnyPort) return send(on.port);
  for (uint16_t port = 0; port < ports_.size(); ++port) {
    if (router_->routed(port) || !in_vlan(port, on.vlan)) continue;
    if (forwarding_.learning() || ports_[port].egress.parameters().floods) send(port);
  }
}

// RFC 826, "Packet Reception", and RFC 4861, 7.2.3 and 7.2.5: what is known is brought up to date, what asks for us is learned.
// Whether that is news for other shards: what they were told of a second ago, they know.
bool SoftSwitch::learn_neighbour(Port& in, uint16_t on, const NeighbourMessage& message) {
  const bool asks_us = message.asks && router_->owns(on, message.target);
  const AddressBits sender = AddressBits::of(message.sender);
  const bool tells = message.mac != 0 && !is_group(message.mac) && message.mac != router_mac_ &&
                     router_->on_link(on, message.sender) && !router_->owns(on, message.sender);
  if (!tells) return false;
  uint32_t at = router_->neighbours.find(message.sender.version, on, sender);
  if (at == NeighbourTable::kNone && asks_us) {
    at = router_->neighbours.add(message.sender.version, on, sender);
    if (at == NeighbourTable::kNone) ++in.counters.neighbor_full;
  }
  if (at == NeighbourTable::kNone) return false;
  const NeighbourTable::Entry& entry = router_->neighbours[at];
  if (entry.state == NeighbourTable::State::permanent || (entry.known() && !message.replaces)) return false;
  const bool same = entry.known() && entry.mac == message.mac && entry.port == in.number();
  const bool news = !same || entry.expires < now_ + NeighbourTable::kReachable - NeighbourTable::kAskAgain;
  router_->neighbours.confirm(at, now_, message.mac, in.number());
  arm_router();
  resolved(at);
  return news;
}

// Copies go to the other shards. One that gets none asks for itself.
void SoftSwitch::tell_of_neighbour(uint16_t port, PacketId id) {
  for (uint32_t shard = 0; link_ != nullptr && shard < link_->shards(); ++shard) {
    if (shard == link_->self()) continue;
    const PacketId copy = pool_.copy(id);
    if (copy == kNoPacket) return;
    link_->send(shard, {.at = now_, .packet = copy, .port = port, .kind = ShardMessage::Kind::heard});
  }
}

// Hears an answer from another shard, which has counted it.
void SoftSwitch::hear_of(Port& at, PacketId id) {
  const PacketMeta& meta = pool_[id].meta;
  const uint16_t on = router_ != nullptr ? router_->interface_at(at.number(), meta.vlan()) : Router::kNoInterface;
  NeighbourMessage message;
  if (on != Router::kNoInterface && read_neighbour_message(pool_.data(id), pool_.present(id), meta, message)) {
    if (!router_->owns(on, message.sender)) {
      learn_neighbour(at, on, message);
    } else if (router_->neighbours.may_ask()) {
      const uint32_t asked = router_->neighbours.add(message.target.version, on, AddressBits::of(message.target));
      if (asked != NeighbourTable::kNone) router_->neighbours.expect(asked, now_);
      arm_router();
    }
  }
  pool_.free(id);
}

void SoftSwitch::hear(Port& in, uint16_t on, const NeighbourMessage& message, PacketId id) {
  if (learn_neighbour(in, on, message)) tell_of_neighbour(in.number(), id);
  const bool asks_us = message.asks && router_->owns(on, message.target);
  if (router_->interface(on).kernel) return;
  if (!asks_us || (message.mac == 0 && message.sender.version == 4)) return;
  const RouterParameters::Interface& own = router_->interface(on);
  // An IPv6 host that looks whether an address is taken has none: all are told.
  const LinkHeader link{.destination_mac = message.mac != 0 ? message.mac : 0x333300000001,
                        .source_mac = router_mac_,
                        .tagged = own.vlan != 0,
                        .vlan_tci = own.vlan};
  std::array<uint8_t, kNeighbourFrame> frame;
  const uint32_t length = build_neighbour_answer(frame.data(), link, message.target, message.sender);
  const PacketId answer = make(in, frame.data(), length);
  if (answer != kNoPacket) emit(in, in.number(), answer);
}

bool SoftSwitch::may_send_icmp(Port& in) {
  Time used = icmp_used_.load(std::memory_order_relaxed);
  do {
    if (used - now_ >= kIcmpBurst) {
      ++in.counters.router_icmp_limited;
      return false;
    }
  } while (!icmp_used_.compare_exchange_weak(used, std::max(used, now_) + kPerIcmp, std::memory_order_relaxed));
  return true;
}

// Drops the frame, and tells its source why, by the way that it came; of a CNM nobody is told.
void SoftSwitch::refuse(Port& in, uint16_t on, PacketId id, uint64_t& reason, IcmpError error, uint32_t mtu) {
  const Packet& packet = pool_[id];
  const uint8_t* const ip = pool_.data(id) + packet.meta.l3_offset;
  const uint32_t present = pool_.present(id) - packet.meta.l3_offset;
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
    const uint32_t room = std::min(static_cast<uint32_t>(frame.size()), pool_.has_payload() ? pool_.room() : kHeaderStride);
    const uint32_t length = build_icmp_error(frame.data(), room, link, *own, ip, present, error, mtu);
    const PacketId made = make(in, frame.data(), length);
    if (made != kNoPacket) emit(in, in.number(), made);
  }
  drop(reason, id);
}

// A frame of the router's own, because of one that came in at `in`.
PacketId SoftSwitch::make(Port& in, const uint8_t* bytes, uint32_t length) {
  const PacketId id = pool_.room() >= length ? pool_.allocate() : kNoPacket;
  ++in.counters.router_made_packets;
  if (id == kNoPacket) {
    ++in.counters.drop_no_descriptor;
    return id;
  }
  Packet& packet = pool_[id];
  packet.reset();
  packet.length = length;
  std::memcpy(pool_.data(id), bytes, length);
  classify(pool_.data(id), length, packet.meta);
  packet.priority = parameters_.priority_map.priority(packet.meta);
  packet.ingress_port = in.number();
  ++held_;
  return id;
}

uint16_t SoftSwitch::first_own_port() const {
  uint16_t port = 0;
  while (port + 1u < ports_.size() && ports_[port].remote) ++port;
  return port;
}

void SoftSwitch::arm_router() {
  if (router_->next_look != kNever) return;
  router_->next_look = now_ + NeighbourTable::kAskAgain;
  link_ != nullptr ? ask_for_messages() : driver_.wake(messages_, router_->next_look);
}

// Looks once a second: a neighbour that has not answered is asked again, or given up; one that was heard of long ago is asked, if
// anybody sends to it.
void SoftSwitch::look_at_neighbours(Time at) {
  if (router_ == nullptr || router_->next_look != at) return;
  advance(at);
  router_->next_look = kNever;
  NeighbourTable& table = router_->neighbours;
  for (uint32_t i = 0; i < table.entries().size(); ++i) {
    NeighbourTable::Entry& entry = table[i];
    const bool due = entry.state == NeighbourTable::State::incomplete
                         ? entry.asked > 0 && entry.expires <= now_
                         : entry.state == NeighbourTable::State::reachable && entry.expires <= now_;
    if (!due) continue;
    const uint16_t port = entry.state == NeighbourTable::State::reachable ? entry.port : router_->interface(entry.interface).port;
    Port& charged = ports_[port == kAnyPort || ports_[port].remote ? first_own_port() : port];
    if (entry.asked < NeighbourTable::kQuestions && entry.used) {
      ask(charged, i);
      continue;
    }
    for (PacketId id; (id = table.take_waiting(pool_, i)) != kNoPacket;) {
      Port& in = ports_[pool_[id].ingress_port];
      const uint16_t on = router_->interface_at(in.number(), pool_[id].meta.vlan());
      refuse(in, on, id, in.counters.drop_neighbor_unknown, IcmpError::host_unreachable);
    }
    if (entry.gateway) {
      table.forget_answer(i);
    } else {
      table.remove(i);
    }
  }
  if (table.ages()) arm_router();
  if (link_ != nullptr) ask_for_messages();
}

}  // namespace weir
