#include "switching/vlans.h"

#include <utility>

#include "wire/bytes.h"
#include "wire/tags.h"

namespace weir {

using Membership = VlanTable::Membership;

Vlans::Vlans(SwitchState& state) : state_(state), table_(state.ports.size()), ports_(state.ports.size()) {}

void Vlans::configure() {
  std::vector<std::optional<PortVlans>> wanted;
  for (const SwitchParameters::Port& port : state_.parameters.ports) wanted.push_back(port.vlans);
  if (wanted == ports_) return;
  ports_ = std::move(wanted);
  table_.clear();
  for (uint16_t port = 0; port < ports_.size(); ++port) {
    if (ports_[port]) table_.add(port, *ports_[port]);
  }
  state_.forwarding.forget_learned();
}

bool Vlans::enter(SwitchPort& in, PacketId id) {
  if (in.routed) return true;
  PacketMeta& meta = state_.pool[id].meta;
  if (meta.vlan() != 0) {
    if (table_.membership(in.number(), meta.vlan()) != Membership::none) return true;
    return state_.drop(in.counters.drop_vlan_not_member, id), false;
  }
  const uint16_t own = table_.untagged(in.number());
  if (own == 0) return state_.drop(in.counters.drop_vlan_untagged, id), false;
  meta.vlan_tci = static_cast<uint16_t>(meta.vlan_tci | own);
  if (meta.tagged) store_be16(state_.pool.data(id) + kTagsOffset + 2, meta.vlan_tci);  // it said its priority only
  return true;
}

bool Vlans::leave(SwitchPort& in, const SwitchPort& out, PacketId id) {
  if (out.routed) return true;
  Packet& packet = state_.pool[id];
  const uint16_t vlan = packet.meta.vlan();
  const Membership there = table_.membership(out.number(), vlan);
  if (there == Membership::none) return state_.drop(in.counters.drop_vlan_egress, id), false;
  if (there == Membership::tagged && !packet.meta.tagged) {
    const auto tci = static_cast<uint16_t>(packet.priority << 13 | vlan);
    if (!place_vlan_tag(state_.pool, id, tci)) return state_.drop(in.counters.drop_mtu_exceeded, id), false;
  } else if (there == Membership::untagged && packet.meta.tagged) {
    place_vlan_tag(state_.pool, id, std::nullopt);
    packet.meta.vlan_tci = vlan;
  }
  return true;
}

}  // namespace weir
