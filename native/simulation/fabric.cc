#include "simulation/fabric.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <tuple>

#include "base/native_error.h"
#include "link/pfc.h"
#include "link/serializer.h"
#include "wire/ecn.h"
#include "wire/mac_control.h"

namespace weir {
namespace {

// What most networks never fill; there are more when these run out.
constexpr uint32_t kDescriptors = 1u << 18;
// More than are made by any one event: a pause for each port of a switch is the most.
constexpr uint32_t kSpare = 1u << 12;
// What a NIC is woken for, besides what it says itself: a stream to be closed.
constexpr uint32_t kClose = 1u << 29;

// What passes at least between a frame's start at one device and its arrival at another: the shortest frame on the fastest link.
Time lookahead_of(const SimulationConfig& config) {
  Time least = kNever;
  for (const SimulatedLink& link : config.links) {
    for (const LinkEnd& end : link.ends) {
      const bool is_switch = end.device < config.switches.size();
      const Rate rate = is_switch ? config.switches[end.device].parameters.ports[end.port].rate
                                  : config.nics[end.device - config.switches.size()].parameters.rate;
      least = std::min(least, link.delay + Serializer(rate).finish(0, wire_bytes(kMinimumFrame)));
    }
  }
  if (least <= 0) {
    throw NativeError("INVALID_CONFIG", 0, "", "a link has neither a rate nor a delay", "give it one of them, 1 ns at least");
  }
  return least;
}

}  // namespace

// What drives a device, with its number among all and that of its first port.
class Fabric::Node : public Driver {
 public:
  Node(Fabric& fabric, uint32_t number, uint32_t first_port) : fabric_(fabric), number_(number), first_port_(first_port) {}

  void wake(uint32_t what, Time at) override {
    if (at != kNever) fabric_.schedule_.push(at, kWake, what, number_);
  }

 protected:
  void transmit(uint16_t port, PacketId id, Time at) { fabric_.transmit(first_port_ + port, id, at); }

 private:
  Fabric& fabric_;
  uint32_t number_;
  uint32_t first_port_;
};

class Fabric::SwitchNode final : public Node {
 public:
  SwitchNode(Fabric& fabric, const SwitchParameters& parameters, uint32_t number, uint32_t first_port)
      : Node(fabric, number, first_port), device(parameters, fabric.pool_, *this) {}

  void depart(uint16_t port, PacketId id, Time at) override {
    device.left(port, id);
    device.set_unsent(port, 0);
    transmit(port, id, at);
  }

  SoftSwitch device;
};

class Fabric::NicNode final : public Node {
 public:
  NicNode(Fabric& fabric, const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, uint32_t number,
          uint32_t port)
      : Node(fabric, number, port), device(parameters, queue_pairs, fabric.pool_, *this) {}

  void depart(uint16_t, PacketId id, Time at) override {
    device.left(id);
    transmit(0, id, at);
  }

  SoftNic device;
};

Fabric::Fabric(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs)
    : pool_(kDescriptors, kHeaderStride),
      schedule_(static_cast<uint32_t>(config.switches.size() + config.nics.size()), lookahead_of(config)) {
  uint32_t port = 0;
  for (const SimulatedSwitch& s : config.switches) {
    first_port_.push_back(port);
    const auto number = static_cast<uint32_t>(switches_.size());
    switches_.push_back(std::make_unique<SwitchNode>(*this, s.parameters, number, port));
    Forwarding& forwarding = switches_.back()->device.forwarding();
    if (!config.nics.empty()) forwarding.add_static_range(config.nics.front().parameters.mac, s.group_of_host, s.groups);
    for (const SimulatedSwitch::Pin& pin : s.pins) {
      forwarding.pin(config.nics[pin.from].parameters.mac, config.nics[pin.to].parameters.mac, pin.port);
    }
    port += static_cast<uint32_t>(s.parameters.ports.size());
  }
  for (size_t i = 0; i < config.nics.size(); ++i) {
    first_port_.push_back(port);
    const auto number = static_cast<uint32_t>(switches_.size() + i);
    nics_.push_back(std::make_unique<NicNode>(*this, config.nics[i].parameters, queue_pairs[i], number, port));
    ++port;
  }
  directions_.resize(port);
  connect(config);
}

Fabric::~Fabric() = default;

SoftSwitch& Fabric::switch_at(size_t index) { return switches_[index]->device; }
SoftNic& Fabric::nic_at(size_t index) { return nics_[index]->device; }

uint32_t Fabric::port_number(const LinkEnd& end) const { return first_port_[end.device] + end.port; }

void Fabric::connect(const SimulationConfig& config) {
  for (size_t i = 0; i < config.links.size(); ++i) {
    const SimulatedLink& link = config.links[i];
    for (size_t side = 0; side < 2; ++side) {
      const LinkEnd& to = link.ends[1 - side];
      const uint32_t port = port_number(link.ends[side]);
      link_ports_.push_back(port);
      Direction& direction = directions_[port];
      direction.receiver = {to.device, to.port};
      direction.delay = link.delay;
      if (link.impairment) {
        direction.impairment = std::make_unique<Impairment>(*link.impairment, config.seed, 2 * i + side, 2);
      }
    }
  }
  for (size_t tap = 0; tap < config.taps.size(); ++tap) {
    directions_[port_number(config.taps[tap])].tap = static_cast<uint32_t>(tap);
  }
}

bool Fabric::run(Time until, uint64_t limit) {
  // A hint for the caches: frames are many, and come from elsewhere. Inlined, or GCC takes calls that do nothing else away.
  const auto fetch = [this](const Event& event) __attribute__((always_inline)) {
    if (!is_frame(event)) return;
    __builtin_prefetch(&pool_[event.packet], 1);
    if (event.device >= switches_.size()) __builtin_prefetch(pool_.data(event.packet));
  };
  reached_ = schedule_.run(
      until, limit, [this](const Event& event) { handle(event); }, fetch);
  if (reached_) now_ = std::max(now_, until);
  return reached_;
}

void Fabric::reconfigure_switch(size_t index, const SwitchParameters& parameters) {
  if (!reached_) {
    throw NativeError("INVALID_STATE", 0, "", "a switch is reconfigured in the middle of a run", "run up to a time first");
  }
  check_reconfiguration(index, parameters);
  SoftSwitch& device = switches_[index]->device;
  device.advance(now_);
  device.reconfigure(parameters);
}

// What is wired, what memory was made for and what the schedule relies on stays.
void Fabric::check_reconfiguration(size_t index, const SwitchParameters& next) const {
  const SwitchParameters& present = switches_[index]->device.parameters();
  const auto refuse = [&](const std::string& what) {
    throw NativeError("INVALID_CONFIG", 0, "", "switch " + std::to_string(index) + ": " + what + " cannot change in a simulation",
                      "start another simulation");
  };
  if (next.ports.size() != present.ports.size()) refuse("the number of ports");
  if (next.buffer.total != present.buffer.total) refuse("the size of the buffer");
  if (next.learning != present.learning) refuse("learning");
  for (size_t port = 0; port < next.ports.size(); ++port) {
    const std::string name = " of port " + std::to_string(port);
    if (next.ports[port].mac != present.ports[port].mac) refuse("the address" + name);
    if (next.ports[port].mtu != present.ports[port].mtu) refuse("the MTU" + name);
    const Time shortest = Serializer(next.ports[port].rate).finish(0, wire_bytes(kMinimumFrame));
    if (directions_[first_port_[index] + port].delay + shortest < schedule_.window()) refuse("to so much the rate" + name);
  }
}

// Between events, when nobody holds a reference to a packet.
void Fabric::grow_pool() {
  const uint64_t count = uint64_t{2} * pool_.size();
  const auto refuse = [&] {
    const uint64_t megabytes = count * (sizeof(Packet) + kHeaderStride) >> 20;
    throw NativeError("ENOMEM", ENOMEM, "mmap",
                      std::to_string(pool_.size() - pool_.available()) +
                          " frames are under way at once, and there is no memory for more: " + std::to_string(megabytes) +
                          " MiB could not be had",
                      "raise the limit of addresses (ulimit -v, RLIMIT_AS), or let the network hold less: fewer hosts, shorter "
                      "delays of links, smaller buffers");
  };
  if (count > kMostPackets) refuse();
  try {
    pool_.grow(static_cast<uint32_t>(count));
  } catch (const std::bad_alloc&) {
    refuse();
  }
}

void Fabric::handle(const Event& event) {
  if (pool_.available() < kSpare) [[unlikely]]
    grow_pool();
  now_ = event.at;
  if (is_frame(event)) return arrive(event);
  if (event.device < switches_.size()) return switches_[event.device]->device.wake(event.packet, event.at);
  SoftNic& nic = nics_[event.device - switches_.size()]->device;
  if ((event.packet & kClose) == 0) return nic.wake(event.packet, event.at);
  nic.queue_pairs()[event.packet & ~kClose].transport->close();
}

void Fabric::close_stream(uint32_t nic, uint32_t index) {
  const auto number = static_cast<uint32_t>(switches_.size() + nic);
  schedule_.push(now_ + schedule_.window(), kWake, kClose | index, number);
}

void Fabric::transmit(uint32_t port, PacketId id, Time at) {
  Direction& direction = directions_[port];
  ++hops_;
  ++direction.counters.frames;
  direction.counters.wire_bytes += wire_bytes(pool_[id].length);
  if (direction.tap != UINT32_MAX) record(direction.tap, id, at);
  if (direction.impairment != nullptr) return impair(direction, id, at + direction.delay);
  deliver(direction, id, at + direction.delay);
}

void Fabric::impair(Direction& direction, PacketId id, Time arrival) {
  LinkCounters& counters = direction.counters;
  const Impairment::Fate fate = direction.impairment->decide(arrival);
  counters.lost += fate.lost;
  if (fate.lost) return pool_.free(id);
  counters.corrupted += fate.corrupted;
  counters.reordered += fate.reordered;
  if (fate.duplicated) {
    ++counters.duplicated;
    deliver(direction, pool_.copy(id), fate.at);
  }
  // The receiving end's FCS refuses it.
  if (fate.corrupted) return pool_.free(id);
  deliver(direction, id, fate.at);
}

void Fabric::arrive(const Event& event) {
  const PacketId id = event.packet;
  const Packet& packet = pool_[id];
  if (event.device < switches_.size()) {
    SoftSwitch& device = switches_[event.device]->device;
    const auto port = static_cast<uint16_t>(event.kind);
    if (packet.meta.kind != FrameKind::pfc) return device.receive(now_, port, id);
    device.receive_pfc(now_, port, packet.pfc_enable, pfc_frame(packet).quanta);
  } else {
    NicNode& node = *nics_[event.device - switches_.size()];
    if (packet.meta.kind == FrameKind::pfc) {
      node.device.receive_pfc(now_, packet.pfc_enable, pfc_frame(packet).quanta);
    } else {
      node.device.receive(now_, pool_.data(id), packet.length, packet.meta, Refusal::none);
    }
  }
  pool_.free(id);
}

void Fabric::record(uint32_t tap, PacketId id, Time at) {
  const Packet& packet = pool_[id];
  Traced& traced = traced_.emplace_back();
  traced.frame = {.stamp = at, .tap = tap, .captured = pool_.present(id), .original = packet.length};
  if (packet.meta.kind == FrameKind::pfc) {
    traced.frame.captured = build_pfc(traced.bytes, packet.meta.source_mac, pfc_frame(packet));
  } else {
    std::memcpy(traced.bytes, pool_.data(id), traced.frame.captured);
    if (packet.meta.ecn_changed) write_ecn(traced.bytes, packet.meta);
  }
}

// Devices live through a window of time one after another: what they sent in it is not in the order of time.
std::vector<uint8_t> Fabric::take_trace() {
  std::ranges::stable_sort(traced_, {}, [](const Traced& one) { return std::tie(one.frame.stamp, one.frame.tap); });
  std::vector<uint8_t> trace;
  for (const Traced& one : traced_) {
    const auto* record = reinterpret_cast<const uint8_t*>(&one);
    trace.insert(trace.end(), record, record + one.frame.length());
  }
  traced_.clear();
  return trace;
}

}  // namespace weir
