// Frames that the kernel's twins of routed ports are to have, and those that come from there.
#include "switching/routed_path.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/qcn.h"
#include "wire/tags.h"

namespace weir {
namespace {

constexpr uint64_t kBroadcast = 0xffffffffffff;

// Group of IPv4 224.0.0.0/24 (RFC 5771, 4), or an IPv6 group of link-local scope (RFC 4291, 2.7).
bool is_link_group(uint8_t version, const uint8_t* destination) {
  if (version == 4) return destination[0] == 224 && destination[1] == 0 && destination[2] == 0;
  return destination[0] == 0xff && (destination[1] & 0x0f) <= 2;
}

// True for messages by which hosts tell routers who is in which group, some of them to the group itself: IGMP (RFC 3376), and MLD
// (RFC 3810) behind a hop-by-hop header of 8 octets. `length`: bytes that are there of the packet.
bool is_membership(const uint8_t* ip, uint32_t length) {
  constexpr uint8_t kProtocolIgmp = 2, kHopByHop = 0, kFirstMld = 130, kLastMld = 132, kReport2 = 143;
  constexpr uint32_t kType = kIpv6Header + 8;
  if (ip[0] >> 4 == 4) return ip[9] == kProtocolIgmp;
  if (ip[6] != kHopByHop || length <= kType || ip[kIpv6Header] != kProtocolIcmpv6 || ip[kIpv6Header + 1] != 0) return false;
  return (ip[kType] >= kFirstMld && ip[kType] <= kLastMld) || ip[kType] == kReport2;
}

}  // namespace

// Decides for a frame to a group whether the kernel is to have it. Broadcasts are ARP's and DHCP's.
bool RoutedPath::concerns_kernel(PacketId id) const {
  const PacketMeta& meta = state_.pool[id].meta;
  if (meta.destination_mac == kBroadcast) return true;
  if (meta.ip_version == 0 || meta.l3_offset == 0) return false;
  const uint8_t* const ip = state_.pool.data(id) + meta.l3_offset;
  const uint8_t* const destination = ip + ip_source_offset(meta.ip_version) + ip_address_length(meta.ip_version);
  return is_link_group(meta.ip_version, destination) || is_membership(ip, state_.pool.present(id) - meta.l3_offset);
}

// The kernel gets the frame without its tags, as frames of the interface are.
void RoutedPath::take_for_kernel(SwitchPort& in, uint16_t on, PacketId id) {
  if (!router_->may_take_for_kernel(in.number(), state_.now)) return state_.drop(in.counters.drop_kernel_rate, id);
  if (state_.pool[id].meta.cn_tagged) remove_cn_tag(state_.pool, id);
  if (state_.pool[id].meta.tagged) place_vlan_tag(state_.pool, id, std::nullopt);
  state_.held -= carried_frames(state_.pool[id]);
  for_kernel_.push_back({id, on});
}

void RoutedPath::send_for_kernel(Time now, uint16_t on, PacketId id) {
  state_.advance(now);
  const RouterParameters::Interface& interface = router_->interface(on);
  SwitchPort& out = state_.ports[interface.port];
  Packet& packet = state_.pool[id];
  const uint32_t frames = carried_frames(packet);
  state_.held += frames;
  out.counters.kernel_tx_packets += frames;
  packet.ingress_port = out.number();
  packet.priority = state_.parameters.priority_map.priority(packet.meta);
  const auto tci = static_cast<uint16_t>(packet.priority << 13 | interface.vlan);
  if (interface.vlan != 0 && !place_vlan_tag(state_.pool, id, tci)) return state_.drop(out.counters.drop_mtu_exceeded, id);
  way_.emit(out, out.number(), id);
}

}  // namespace weir
