#include "engine/switch_device.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"
#include "engine/kept_frame.h"
#include "switching/samples.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/ethernet.h"
#include "wire/mac_control.h"
#include "wire/offload.h"

namespace weir {
namespace {

constexpr size_t kBurst = 64;         // frames read of a port before they are forwarded: what the caches hold
constexpr size_t kPrefetchAhead = 6;  // frames; another CPU has written them, mostly

const SwitchDeviceConfig& checked(const SwitchDeviceConfig& config) {
  check(config);
  return config;
}

// Routes that fit an empty table fit any, for they take the place of what was learned.
void install_routes(const SwitchDeviceConfig& config, Forwarding& table) {
  table.clear_static();
  bool fits = true;
  for (const auto& route : config.routes) fits = fits && table.add_static(route.destination_mac, route.ports);
  for (const auto& pin : config.pins) fits = fits && table.pin(pin.source_mac, pin.destination_mac, pin.port);
  if (!fits) {
    throw NativeError("FDB_FULL", 0, "", "switch " + config.name + ": its routes do not fit the forwarding table",
                      "raise the table's capacity");
  }
}

bool same_twins(const SwitchDeviceConfig& a, const SwitchDeviceConfig& b) {
  return a.twins.size() == b.twins.size() && a.parameters.router.interfaces == b.parameters.router.interfaces;
}

}  // namespace

void check(const SwitchDeviceConfig& config) {
  constexpr const char* kWhose = "switch";
  FieldCheck fields({.name = kWhose});
  describe(fields, config);
  const size_t ports = config.ports.size();
  for (const auto& route : config.routes) {
    for (const uint16_t port : route.ports) require(port < ports, kWhose, "a route is by ports that it has");
  }
  for (const auto& pin : config.pins) require(pin.port < ports, kWhose, "a pin is to a port that it has");
  Forwarding scratch(config.parameters.fdb_capacity, false, 0, 1);
  install_routes(config, scratch);
}

SwitchDevice::SwitchDevice(const SwitchDeviceConfig& config, uint16_t index, std::vector<WirePort> ports, PacketPool& pool,
                           FrameRing& punted, SharedSwitch* shared, uint32_t share)
    : config_(checked(config)),
      index_(index),
      ports_(std::move(ports)),
      pool_(pool),
      punted_(punted),
      shared_(shared),
      wire_(config.parameters, pool, shared != nullptr ? &shared->exchange().link(share) : nullptr),
      arrivals_(static_cast<uint32_t>(ports_.size())),
      told_storms_(config.ports.size()) {
  install_routes(config_, switch_.forwarding());
  const auto& interfaces = config_.parameters.router.interfaces;
  for (uint16_t i = 0; i < interfaces.size(); ++i) {
    if (interfaces[i].kernel) interfaces_.push_back(i);
  }
  for (WirePort& port : ports_) passes_ = std::max(passes_, port.port().capabilities().batch / kBurst);
}

void SwitchDevice::tell_storms(Time now, SpscRing<Record>& ring) {
  for (uint16_t port = 0; port < told_storms_.size(); ++port) {
    const uint8_t storms = switch_.pauses().storm_mask(port);
    if (storms == std::exchange(told_storms_[port], storms)) continue;
    ring.push({now, Record::Kind::storm, index_, port, {static_cast<double>(storms)}});
  }
}

void SwitchDevice::reconfigure(const SwitchDeviceConfig& config) {
  require(config.ports.size() == config_.ports.size(), "switch", "the number of ports cannot change");
  require(config_.twins.empty() ? config.twins.empty() : same_twins(config, config_), "switch",
          "the kernel's twins, and with them the interfaces of the router, cannot change");
  switch_.adopt(config.parameters);
  config_ = config;
  install_routes(config_, switch_.forwarding());
}

// The frame as a packet of ours; kNoPacket, and counted, when it cannot be one.
PacketId SwitchDevice::admit(uint16_t port, const RxFrame& frame) {
  const KeptFrame kept = keep_frame(frame, pool_);
  if (kept.id != kNoPacket) return kept.id;
  SwitchPortCounters& counters = switch_.counters(port);
  ++counters.rx_packets;
  if (kept.why == Unfit::runt) {
    ++counters.drop_runt;
  } else if (kept.why == Unfit::no_descriptor) {
    ++counters.drop_no_descriptor;
  } else {
    ++counters.drop_offload_refused;
  }
  return kNoPacket;
}

// Not every backend tells of a checksum that the sender left to its interface. RoCEv2 has none, as a rule, and costs next to
// nothing.
void SwitchDevice::look_for_checksum(uint16_t port, PacketId id) {
  Packet& packet = pool_[id];
  const uint8_t* bytes = pool_.data(id);
  if (packet.meta.bth_offset != 0 && load_be16(bytes + packet.meta.bth_offset - 2) == 0) return;
  const PortConfig& config = config_.ports[port];
  if (config.offloads && !ports_[port].port().capabilities().tells_checksums) {
    infer_partial_checksum(bytes, packet.length, packet.offload);
  }
}

// Sends a frame to the slow path, past queues and forwarding.
void SwitchDevice::punt(uint16_t port, Time at, PacketId id) {
  SwitchPortCounters& counters = switch_.counters(port);
  const uint32_t length = pool_[id].length;
  ++counters.rx_packets;
  counters.rx_bytes += length;
  ++(punted_.push(index_, port, at, std::span(pool_.data(id), length)) ? counters.rx_punted : counters.drop_punt_full);
  pool_.free(id);
}

void SwitchDevice::accept(uint16_t port, const RxFrame& frame) {
  SwitchPortCounters& counters = switch_.counters(port);
  const Time at = frame.stamp;
  if (at < switch_.now()) ++counters.stragglers;
  const PacketId id = admit(port, frame);
  if (id == kNoPacket) return;
  wire_.catch_up(at);
  Packet& packet = pool_[id];
  classify(pool_.data(id), packet.length, packet.meta);
  if (!is_mac_control(packet.meta.kind)) {
    if (config_.lldp && is_lldp(packet.meta.destination_mac, packet.meta.ethertype)) return punt(port, at, id);
    look_for_checksum(port, id);
    switch_.receive(at, port, id);
    if (!switch_.routed().for_kernel().empty()) hand_to_kernel();
    return;
  }
  const bool known = read_mac_control(
      pool_.data(id), packet.length,
      [&](uint8_t enable, const auto& quanta) { switch_.pauses().receive_pfc(at, port, enable, quanta); },
      [&](uint16_t quanta) { switch_.pauses().receive_pause(at, port, quanta); });
  if (!known) ++counters.rx_mac_control_unknown;
  pool_.free(id);
}

void SwitchDevice::hand_to_kernel() {
  for (const auto& [id, interface] : switch_.routed().for_kernel()) {
    const auto twin = static_cast<size_t>(std::ranges::find(interfaces_, interface) - interfaces_.begin());
    ports_[config_.ports.size() + twin].send(pool_, id);
  }
  switch_.routed().for_kernel().clear();
}

void SwitchDevice::accept_from_kernel(size_t twin, const RxFrame& frame) {
  const uint16_t interface = interfaces_[twin];
  SwitchPortCounters& counters = switch_.counters(config_.parameters.router.interfaces[interface].port);
  const KeptFrame kept = keep_frame(frame, pool_);
  if (kept.id == kNoPacket) {
    ++(kept.why == Unfit::no_descriptor ? counters.drop_no_descriptor : counters.drop_offload_refused);
    return;
  }
  wire_.catch_up(frame.stamp);
  Packet& packet = pool_[kept.id];
  classify(pool_.data(kept.id), packet.length, packet.meta);
  switch_.routed().send_for_kernel(std::max(frame.stamp, switch_.now()), interface, kept.id);
}

void SwitchDevice::flush_twins() {
  for (size_t at = config_.ports.size(); at < ports_.size(); ++at) {
    if (ports_[at].unsent() == 0) continue;
    ports_[at].flush(
        pool_, now_,
        [&](PacketId id) { switch_.counters(pool_[id].ingress_port).kernel_rx_packets += carried_frames(pool_[id]); },
        [&](PacketId id, bool) { ++switch_.counters(pool_[id].ingress_port).drop_kernel_refused; });
  }
}

// A twin's cable is that of its port.
void SwitchDevice::link_changed(size_t port) {
  for (size_t twin = 0; twin < interfaces_.size(); ++twin) {
    if (config_.parameters.router.interfaces[interfaces_[twin]].port != port) continue;
    ports_[config_.ports.size() + twin].port().set_carrier(ports_[port].up());
  }
}

void SwitchDevice::write_bytes(PacketId id) {
  Packet& packet = pool_[id];
  if (is_flow_control(packet.meta.kind)) {
    write_flow_control(pool_, id);
  } else if (packet.meta.ecn_changed) {
    write_ecn(pool_.data(id), packet.meta);
  }
}

// Reads a burst of each port at a time. A port that has more to read has been seen up to its newest frame only, and no other port
// may get ahead of that.
void SwitchDevice::turn(Time horizon, Time now) {
  now_ = now;
  switch_.begin_turn();
  Time reached;
  size_t passes = passes_;
  bool last;
  do {
    reached = horizon;
    bool whole = true;
    for (WirePort& port : ports_) {
      if (port.poll(kBurst)) continue;
      whole = false;
      reached = std::min(reached, port.newest());
    }
    if (passes > 0) --passes;
    last = reached >= horizon && (whole || passes == 0);
    live_until(reached, last);
  } while (!last);
  const uint64_t told = switch_.end_turn();
  if (told != 0) shared_->wake(told);
}

// `last`: of the turn.
void SwitchDevice::live_until(Time horizon, bool last) {
  for (uint16_t p = 0; p < ports_.size(); ++p) {
    const Time at = ports_[p].next_arrival();
    if (at <= horizon) {
      arrivals_.set(p, at);
    } else {
      arrivals_.remove(p);
    }
  }
  while (!arrivals_.empty()) {
    const uint32_t p = arrivals_.pop();
    WirePort& port = ports_[p];
    // The port's own frames come, as long as none of another port comes before.
    const Time until = arrivals_.empty() ? horizon : arrivals_.top_key() - (arrivals_.top() < p ? 1 : 0);
    do {
      if (const RxFrame* ahead = port.peek(kPrefetchAhead); ahead != nullptr) __builtin_prefetch(ahead->data);
      if (p < config_.ports.size()) {
        accept(static_cast<uint16_t>(p), port.front());
      } else {
        accept_from_kernel(p - config_.ports.size(), port.front());
      }
      port.pop();
    } while (port.next_arrival() <= until);
    if (port.next_arrival() <= horizon) arrivals_.set(p, port.next_arrival());
  }
  for (WirePort& port : ports_) port.give_back();
  flush_twins();
  bool more = true;
  while (more) {
    wire_.advance(horizon);
    more = false;
    for (uint16_t p = 0; p < config_.ports.size(); ++p) more = hand_over(p, last) || more;
  }
}

// Hands the frames that have left the switch to the host. Returns whether there are more, because the host has taken them.
bool SwitchDevice::hand_over(uint16_t p, bool last) {
  WirePort& port = ports_[p];
  for (PacketId id = wire_.transmit(p); id != kNoPacket; id = wire_.transmit(p)) {
    write_bytes(id);
    port.send(pool_, id);
    ++sent_;
  }
  if (port.unsent() == 0) return false;
  if (!last && port.unsent() < port.port().capabilities().batch) return false;
  port.flush(
      pool_, now_, [&](PacketId id) { switch_.left(p, id); },
      [&](PacketId id, bool down) {
        if (down) ++switch_.counters(p).tx_port_down;
        switch_.lost(id);
      });
  return switch_.set_unsent(p, port.unsent_bytes());
}

// A frame that leaves may have come from another worker.
uint64_t SwitchDevice::frames_seen() const {
  uint64_t frames = shared_ != nullptr ? sent_ : 0;
  for (const WirePort& port : ports_) frames += port.received();
  return frames;
}

Time SwitchDevice::next_deadline() {
  Time next = wire_.next_deadline();
  for (const WirePort& port : ports_) next = std::min(next, port.next_deadline());
  return next;
}

void SwitchDevice::sample(Time at, SpscRing<Record>& ring) {
  for (uint16_t port = 0; port < config_.ports.size(); ++port) {
    for (int p = 0; p < kPriorities; ++p) {
      const SwitchPriorityCounters& counters = switch_.counters(port, p);
      if (counters.queue_packets > 0 || switch_.queue_bytes(port, p) > 0)
        ring.push(sample_queue(switch_, counters, at, index_, port, p));
      if (counters.pfc_tx_packets > 0) ring.push(sample_pause(switch_, counters, at, index_, port, p));
    }
  }
}

void SwitchDevice::register_counters(CounterBlock& block) {
  for (uint16_t port = 0; port < config_.ports.size(); ++port) {
    if (!switch_.owns(port)) continue;
    const std::string& peer = config_.ports[port].name;
    block.add(switch_.counters(port), {{"switch", config_.name}, {"port", peer}});
    block.add(ports_[port].counters(), {{"switch", config_.name}, {"port", peer}});
    for (int p = 0; p < kPriorities; ++p) {
      block.add(switch_.counters(port, p), {{"switch", config_.name}, {"port", peer}, {"priority", std::to_string(p)}});
    }
  }
}

}  // namespace weir
