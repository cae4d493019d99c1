// Neighbours of a switch that routes: who is asked for, heard of, and given up.
#include <algorithm>
#include <array>
#include <utility>

#include "switching/routed_path.h"

namespace weir {

void RoutedPath::wait_for_neighbour(SwitchPort& in, uint32_t neighbour, PacketId id) {
  if (router_->neighbours[neighbour].asked == 0) ask_for_neighbour(in, neighbour);
  if (!router_->neighbours.wait(state_.pool, neighbour, id)) state_.drop(in.counters.drop_neighbor_queue, id);
}

// Its MAC address is known now.
void RoutedPath::send_waiting(uint32_t neighbour) {
  for (PacketId id; (id = router_->neighbours.take_waiting(state_.pool, neighbour)) != kNoPacket;) {
    send_routed(state_.ports[state_.pool[id].ingress_port], id, router_->neighbours[neighbour]);
  }
}

// Asks who has that address. One that has had it is asked first, then all.
void RoutedPath::ask_for_neighbour(SwitchPort& in, uint32_t neighbour) {
  plan_look();
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
    const PacketId id = make_frame(in, frame.data(), length);
    if (id == kNoPacket) return;
    if (!std::exchange(told, true)) tell_of_neighbour(port, id);
    way_.emit(in, port, id);
  };
  if (known) return send(entry.port);
  if (on.port != kAnyPort) return send(on.port);
  for (uint16_t port = 0; port < state_.ports.size(); ++port) {
    if (router_->routed(port) || !vlans_.includes(port, on.vlan)) continue;
    if (state_.forwarding.learning() || state_.ports[port].egress.parameters().floods) send(port);
  }
}

// RFC 826, "Packet Reception", and RFC 4861, 7.2.3 and 7.2.5: what is known is brought up to date, what asks for us is learned.
// Whether that is news for other shards: what they were told of a second ago, they know.
bool RoutedPath::learn_neighbour(SwitchPort& in, uint16_t on, const NeighbourMessage& message) {
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
  const bool news = !same || entry.expires < state_.now + NeighbourTable::kReachable - NeighbourTable::kAskAgain;
  router_->neighbours.confirm(at, state_.now, message.mac, in.number());
  plan_look();
  send_waiting(at);
  return news;
}

// Copies go to the other shards. One that gets none asks for itself.
void RoutedPath::tell_of_neighbour(uint16_t port, PacketId id) {
  for (uint32_t shard = 0; state_.link != nullptr && shard < state_.link->shards(); ++shard) {
    if (shard == state_.link->self()) continue;
    const PacketId copy = state_.pool.copy(id);
    if (copy == kNoPacket) return;
    state_.link->send(shard, {.at = state_.now, .packet = copy, .port = port, .kind = ShardMessage::Kind::heard});
  }
}

void RoutedPath::hear_from_shard(SwitchPort& at, PacketId id) {
  const PacketMeta& meta = state_.pool[id].meta;
  const uint16_t on = router_ != nullptr ? router_->interface_at(at.number(), meta.vlan()) : Router::kNoInterface;
  NeighbourMessage message;
  if (on != Router::kNoInterface && read_neighbour_message(state_.pool.data(id), state_.pool.present(id), meta, message)) {
    if (!router_->owns(on, message.sender)) {
      learn_neighbour(at, on, message);
    } else if (router_->neighbours.may_ask()) {
      const uint32_t asked = router_->neighbours.add(message.target.version, on, AddressBits::of(message.target));
      if (asked != NeighbourTable::kNone) router_->neighbours.expect(asked, state_.now);
      plan_look();
    }
  }
  state_.pool.free(id);
}

void RoutedPath::hear_neighbour(SwitchPort& in, uint16_t on, const NeighbourMessage& message, PacketId id) {
  if (learn_neighbour(in, on, message)) tell_of_neighbour(in.number(), id);
  const bool asks_us = message.asks && router_->owns(on, message.target);
  if (router_->interface(on).kernel) return;
  const uint64_t asker = mac_of_asker(message, state_.pool[id].meta.source_mac);
  if (!asks_us || asker == 0) return;
  const RouterParameters::Interface& own = router_->interface(on);
  const LinkHeader link{.destination_mac = asker, .source_mac = router_mac_, .tagged = own.vlan != 0, .vlan_tci = own.vlan};
  std::array<uint8_t, kNeighbourFrame> frame;
  const uint32_t length = build_neighbour_answer(frame.data(), link, message.target, message.sender);
  const PacketId answer = make_frame(in, frame.data(), length);
  if (answer != kNoPacket) way_.emit(in, in.number(), answer);
}

uint16_t RoutedPath::first_own_port() const {
  uint16_t port = 0;
  while (port + 1u < state_.ports.size() && state_.ports[port].remote) ++port;
  return port;
}

void RoutedPath::plan_look() {
  if (state_.neighbours_due != kNever) return;
  state_.neighbours_due = state_.now + NeighbourTable::kAskAgain;
  state_.ask_for_wake();
}

// Looks once a second, while there is a neighbour that ages; kept out of the way of other wakes.
__attribute__((noinline)) void RoutedPath::look_at_neighbours(Time at) {
  if (state_.neighbours_due != at) return;
  state_.advance(at);
  state_.neighbours_due = kNever;
  NeighbourTable& table = router_->neighbours;
  for (uint32_t i = 0; i < table.entries().size(); ++i) {
    const NeighbourTable::Entry& entry = table[i];
    const bool reachable = entry.state == NeighbourTable::State::reachable;
    const bool waits = entry.state == NeighbourTable::State::incomplete && entry.asked > 0;
    if (entry.expires > state_.now || !(reachable || waits)) continue;
    if (entry.asked < NeighbourTable::kQuestions && entry.used) {
      const uint16_t port = reachable ? entry.port : router_->interface(entry.interface).port;
      ask_for_neighbour(state_.ports[port == kAnyPort || state_.ports[port].remote ? first_own_port() : port], i);
    } else {
      give_up_neighbour(i);
    }
  }
  if (table.ages()) plan_look();
  if (state_.link != nullptr) state_.ask_for_wake();
}

void RoutedPath::give_up_neighbour(uint32_t neighbour) {
  NeighbourTable& table = router_->neighbours;
  for (PacketId id; (id = table.take_waiting(state_.pool, neighbour)) != kNoPacket;) {
    SwitchPort& in = state_.ports[state_.pool[id].ingress_port];
    const uint16_t on = router_->interface_at(in.number(), state_.pool[id].meta.vlan());
    refuse(in, on, id, in.counters.drop_neighbor_unknown, IcmpError::host_unreachable);
  }
  if (table[neighbour].gateway) {
    table.forget_answer(neighbour);
  } else {
    table.remove(neighbour);
  }
}

}  // namespace weir
