#include "switching/soft_switch.h"

#include <cassert>
#include <span>
#include <utility>

#include "base/native_error.h"
#include "wire/ethernet.h"

namespace weir {
namespace {

SwitchParameters checked(SwitchParameters parameters) {
  check(parameters);
  return parameters;
}

}  // namespace

SoftSwitch::SoftSwitch(SwitchParameters parameters, PacketPool& pool, Driver& driver, uint32_t queued, ShardLink* link)
    : state_(checked(std::move(parameters)), pool, driver, queued, link),
      vlans_(state_),
      routed_(state_, vlans_, Way(traffic_)),
      pauses_(state_, traffic_),
      shards_(state_, traffic_, pauses_, routed_),
      traffic_(state_, vlans_, routed_, pauses_, shards_),
      statistics_(state_) {
  configure_parts();
}

void SoftSwitch::configure_parts() {
  routed_.configure();
  vlans_.configure();
  state_.balancer.configure(state_.parameters.load_balancing, state_.parameters.flowlet_gap);
  for (size_t i = 0; i < state_.ports.size(); ++i) {
    SwitchPort& port = state_.ports[i];
    const SwitchParameters::Port& parameters = state_.parameters.ports[i];
    port.egress.configure(state_.now, state_.parameters, i);
    port.remote = state_.link != nullptr && state_.link->owner(port.number()) != state_.link->self();
    port.storms.configure(parameters.storm_rates);
    pauses_.configure(port);
    state_.forwarding.limit(port.number(), parameters.max_learned_addresses);
    state_.domain.configure(port.domain, i);
  }
}

void SoftSwitch::reconfigure(SwitchParameters parameters) {
  require(parameters.ports.size() == state_.ports.size(), "switch", "the number of ports cannot change");
  adopt(checked(std::move(parameters)));
}

void SoftSwitch::adopt(SwitchParameters parameters) {
  state_.adopt(std::move(parameters));
  configure_parts();
  for (SwitchPort& port : state_.ports) {
    pauses_.resume_lossy(port);
    state_.schedule(port, port.egress.free_at(state_.now));
  }
}

void SoftSwitch::receive(Time now, uint16_t number, PacketId id) {
  state_.advance(now);
  SwitchPort& in = state_.ports[number];
  assert(!in.remote);
  Packet& packet = state_.pool[id];
  const uint32_t frames = carried_frames(packet);
  state_.held += frames;
  in.counters.rx_packets += frames;
  in.counters.rx_bytes += carried_bytes(packet);
  packet.ingress_port = number;
  packet.priority = state_.parameters.priority_map.priority(packet.meta);
  if ((in.domain.defended >> packet.priority & 1) != 0 || packet.meta.kind == FrameKind::cnm) {
    const bool admitted = state_.domain.admits(in.domain, number, id, in.egress.queue(packet.priority).counters);
    if (!admitted) return state_.drop(in.counters.drop_cnm_from_outside, id);
  }
  if (is_group(packet.meta.destination_mac) && is_link_local_group(packet.meta.destination_mac))
    return state_.drop(in.counters.drop_reserved_address, id);
  if (vlans_.heeded() && !vlans_.enter(in, id)) return;
  if (routed_.routes() && routed_.route(in, id)) return;
  if (state_.forwarding.learning()) learn(in, packet.meta);
  const int out = state_.forwarding.lookup(state_.now, packet.meta, [&](std::span<const uint16_t> ports) {
    return ports[state_.balancer.choose(state_.now, packet.meta.flow_hash, ports.size(),
                                        [&](size_t way) { return state_.load_of(ports[way], packet.priority); })];
  });
  if (out >= 0) return traffic_.forward(in, static_cast<uint16_t>(out), id);
  const bool floods = state_.forwarding.learning() || (in.egress.parameters().floods && is_group(packet.meta.destination_mac));
  if (!floods) return state_.drop(in.counters.drop_no_route, id);
  flood(in, id);
}

void SoftSwitch::learn(SwitchPort& in, const PacketMeta& meta) {
  const bool news = state_.link != nullptr && state_.forwarding.is_news(state_.now, meta, in.number());
  const Forwarding::Learned learned = state_.forwarding.learn(state_.now, meta, in.number());
  state_.count_learned(in.number(), learned);
  if (news && learned) shards_.tell_learned(in, meta);
}

void SoftSwitch::flood(SwitchPort& in, PacketId id) {
  uint64_t* const storm = in.exceeded_storm_counter(state_.now, state_.pool[id]);
  if (storm != nullptr) return state_.drop(*storm, id);
  int last = -1;
  for (uint16_t out = 0; out < state_.ports.size(); ++out) {
    if (state_.ports[out].routed || !vlans_.includes(out, state_.pool[id].meta.vlan())) continue;
    if (out == in.number() || !(state_.forwarding.learning() || state_.ports[out].egress.parameters().floods)) continue;
    if (last >= 0) {
      const PacketId copy = state_.pool.copy(id);
      const uint32_t frames = carried_frames(state_.pool[id]);
      in.counters.flood_copies += frames;
      if (copy == kNoPacket) {
        in.counters.drop_no_descriptor += frames;
      } else {
        state_.held += frames;
        traffic_.forward(in, static_cast<uint16_t>(last), copy);
      }
    }
    last = out;
  }
  if (last < 0) return state_.drop(in.counters.drop_no_route, id);
  traffic_.forward(in, static_cast<uint16_t>(last), id);
}

void SoftSwitch::wake(uint32_t what, Time at) {
  if (what == state_.messages) {
    routed_.look_at_neighbours(at);
    if (state_.link != nullptr) shards_.take_message(at);
    return;
  }
  SwitchPort& port = state_.ports[what];
  if (!port.egress.woken(at)) return;
  state_.advance(at);
  port.egress.advance(state_.now);
  traffic_.serve_and_reschedule(port);
  pauses_.advance_watchdog(port);
}

}  // namespace weir
