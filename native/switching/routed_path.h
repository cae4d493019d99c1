// The way of a frame that is routed: route -> route_ip -> send_routed -> Way::emit, and from there on that of any frame. router.h
// knows which frames are the router's, and where a packet goes next; this is what is done to them.
//
// Taken for the router are frames to its MAC address where it has an interface, and copies of questions for its neighbours.
// Its own frames (questions, answers, ICMP) leave by the same queues, charged to the port whose frame was the reason.
//
// The kernel's stack has a twin of each routed port (`kernel` of an interface): frames for the router itself go there, and frames
// that the kernel sends by a twin join the port's queues. The kernel answers questions for the router's addresses and pings; the
// router itself asks for neighbours that packets wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fetch.h"
#include "base/types.h"
#include "switching/forwarding.h"
#include "switching/router.h"
#include "switching/switch_state.h"
#include "switching/vlans.h"
#include "switching/way.h"
#include "wire/icmp.h"
#include "wire/neighbour.h"
#include "wire/packet.h"

namespace weir {

class RoutedPath {
 public:
  // `state` and `vlans` must outlive it.
  RoutedPath(SwitchState& state, const Vlans& vlans, Way way);

  // The parameters have changed. Packets that wait for neighbours of interfaces that are no more go with them.
  void configure();
  bool routes() const { return router_ != nullptr; }
  // Null: it does not route.
  const Router* router() const { return router_.get(); }

  // A frame has come in, and the switch routes. True: it is not to be bridged, and was taken.
  bool route(SwitchPort& in, PacketId id);
  // A CNM of the congestion point at `out` goes by the route to its source: see switching/congestion_notification.h.
  void notify(SwitchPort& out, PacketId cnm);
  // An answer of a neighbour has come from another shard, which has counted it.
  void hear_from_shard(SwitchPort& at, PacketId id);
  // A time has come that the driver was asked for: `at`. A neighbour that has not answered is asked again, or given up; one that
  // was heard of long ago is asked, if anybody sends to it.
  void look_at_neighbours(Time at);

  // Frames that the kernel's twins are to have, since this was last taken: whoever takes them owns them, whole and untagged.
  // Their ingress is the port that they came in at.
  struct ForKernel {
    PacketId id;
    uint16_t interface;  // number of the router's interface
  };
  std::vector<ForKernel>& for_kernel() { return for_kernel_; }
  // A frame without a tag that the kernel has sent by the twin of an interface of the router. Takes ownership of `id`, whose meta
  // and length are filled in.
  void send_for_kernel(Time now, uint16_t interface, PacketId id);

  // A hint for the caches: a packet is going to be routed.
  WEIR_FETCHES void fetch(const PacketMeta& meta, const uint8_t* frame) const {
    if (router_ != nullptr && meta.l3_offset != 0) router_->fetch(destination_of(meta, frame));
  }

 private:
  static AddressBits destination_of(const PacketMeta& meta, const uint8_t* frame) {
    const uint32_t source = meta.l3_offset + ip_source_offset(meta.ip_version);
    return AddressBits::load(meta.ip_version, frame + source + ip_address_length(meta.ip_version));
  }
  void drop_router();

  // Packets.
  void route_ip(SwitchPort& in, uint16_t on, PacketId id);
  const Router::NextHop* next_hop(const Packet& packet, uint8_t version, const Router::Destination& to);
  uint32_t neighbour_of(const Router::NextHop& hop, uint8_t version, Router::Destination& to);
  void send_to_neighbour(SwitchPort& in, uint32_t neighbour, PacketId id);
  void send_routed(SwitchPort& in, PacketId id, const NeighbourTable::Entry& to);

  // Frames for the router itself, and for the kernel.
  void take_for_router(SwitchPort& in, PacketId id);
  void take_locally(SwitchPort& in, uint16_t on, PacketId id);
  bool concerns_kernel(PacketId id) const;
  void take_for_kernel(SwitchPort& in, uint16_t on, PacketId id);

  // Neighbours.
  void wait_for_neighbour(SwitchPort& in, uint32_t neighbour, PacketId id);
  void send_waiting(uint32_t neighbour);
  void give_up_neighbour(uint32_t neighbour);
  void ask_for_neighbour(SwitchPort& in, uint32_t neighbour);
  void hear_neighbour(SwitchPort& in, uint16_t on, const NeighbourMessage& message, PacketId id);
  bool learn_neighbour(SwitchPort& in, uint16_t on, const NeighbourMessage& message);
  void tell_of_neighbour(uint16_t port, PacketId id);
  uint16_t first_own_port() const;
  void plan_look();

  // Frames of its own.
  bool may_send_icmp(SwitchPort& in);
  void refuse(SwitchPort& in, uint16_t on, PacketId id, uint64_t& reason, IcmpError error, uint32_t mtu = 0);
  PacketId make_frame(SwitchPort& in, const uint8_t* bytes, uint32_t length);

  SwitchState& state_;
  const Vlans& vlans_;
  Way way_;
  std::unique_ptr<Router> router_;
  uint64_t router_mac_ = Forwarding::kNobody;  // kNobody: there is no router
  std::vector<ForKernel> for_kernel_;
  IcmpBudget own_icmp_;
  IcmpBudget& icmp_;  // of all shards together
};

}  // namespace weir
