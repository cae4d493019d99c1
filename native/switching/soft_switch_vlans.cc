// VLANs of a frame that is bridged: which one it is of, whether it may come in and leave, what is learned there, and its
// tag on the way out.
// Within the switch meta.vlan() is its VLAN, whether the bytes have a tag or not.
#include <optional>

#include "switching/soft_switch.h"
#include "wire/bytes.h"
#include "wire/tags.h"

namespace weir {

using Membership = VlanTable::Membership;

void SoftSwitch::learn(Port& in, const PacketMeta& meta) {
  const bool news = link_ != nullptr && forwarding_.is_news(now_, meta, in.number());
  const Forwarding::Learned learned = forwarding_.learn(now_, meta, in.number());
  count_learned(in.number(), learned);
  if (!news || !learned) return;
  const bool told = link_->tell(
      {.at = now_, .mac = meta.source_mac, .port = in.number(), .vlan = meta.vlan(), .kind = ShardMessage::Kind::learned});
  if (told) forwarding_.told(now_, meta);  // else again with the next frame
}

// Counts the outcome for an address of port `of`. Other shards count for their ports.
void SoftSwitch::count_learned(uint16_t of, Forwarding::Learned learned) {
  using Outcome = Forwarding::Learned::Outcome;
  if (learned.outcome == Outcome::stored) return;
  Port& port = ports_[learned.outcome == Outcome::in_place ? learned.forgotten : of];
  if (port.remote) return;
  SwitchPortCounters& counters = port.counters;
  ++(learned.outcome == Outcome::in_place  ? counters.fdb_evicted
     : learned.outcome == Outcome::limited ? counters.fdb_limited
                                           : counters.fdb_full);
}

// Addresses that were learned in a VLAN are of no use in another.
void SoftSwitch::configure_vlans() {
  std::vector<std::optional<PortVlans>> wanted;
  for (const SwitchParameters::Port& port : parameters_.ports) wanted.push_back(port.vlans);
  if (wanted == port_vlans_) return;
  port_vlans_ = std::move(wanted);
  vlans_.clear();
  for (uint16_t port = 0; port < port_vlans_.size(); ++port) {
    if (port_vlans_[port]) vlans_.add(port, *port_vlans_[port]);
  }
  forwarding_.forget_learned();
}

bool SoftSwitch::enter_vlan(Port& in, PacketId id) {
  if (routes_only(in.number())) return true;
  PacketMeta& meta = pool_[id].meta;
  if (meta.vlan() != 0) {
    if (vlans_.membership(in.number(), meta.vlan()) != Membership::none) return true;
    return drop(in.counters.drop_vlan_not_member, id), false;
  }
  const uint16_t own = vlans_.untagged(in.number());
  if (own == 0) return drop(in.counters.drop_vlan_untagged, id), false;
  meta.vlan_tci = static_cast<uint16_t>(meta.vlan_tci | own);
  if (meta.tagged) store_be16(pool_.data(id) + kTagsOffset + 2, meta.vlan_tci);  // it said its priority only
  return true;
}

bool SoftSwitch::in_vlan(uint16_t port, uint16_t vlan) const {
  return !vlans_.heeded() || vlans_.membership(port, vlan) != Membership::none;
}

// False: the frame was dropped.
bool SoftSwitch::leave_in_vlan(Port& in, const Port& out, PacketId id) {
  if (routes_only(out.number())) return true;
  Packet& packet = pool_[id];
  const uint16_t vlan = packet.meta.vlan();
  const Membership there = vlans_.membership(out.number(), vlan);
  if (there == Membership::none) return drop(in.counters.drop_vlan_egress, id), false;
  if (there == Membership::tagged && !packet.meta.tagged) {
    const auto tci = static_cast<uint16_t>(packet.priority << 13 | vlan);
    if (!place_vlan_tag(pool_, id, tci)) return drop(in.counters.drop_mtu_exceeded, id), false;
  } else if (there == Membership::untagged && packet.meta.tagged) {
    place_vlan_tag(pool_, id, std::nullopt);
    packet.meta.vlan_tci = vlan;
  }
  return true;
}

}  // namespace weir
