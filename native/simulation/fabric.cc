#include "simulation/fabric.h"

#include <algorithm>
#include <cstring>

#include "switching/pfc.h"
#include "wire/ecn.h"
#include "wire/mac_control.h"

namespace weir {
namespace {

// Far more than any network holds; only what is used costs memory.
constexpr uint32_t kDescriptors = 1u << 26;

std::array<uint16_t, kPriorities> quanta_of(const Packet& frame) {
  std::array<uint16_t, kPriorities> quanta{};
  for (size_t p = 0; p < kPriorities; ++p) quanta[p] = (frame.pfc_xoff >> p & 1) != 0 ? kMaxPauseQuanta : 0;
  return quanta;
}

}  // namespace

class Fabric::SwitchNode final : public Driver {
 public:
  SwitchNode(Fabric& fabric, const SwitchParameters& parameters, uint32_t first_port)
      : device(parameters, fabric.pool_, this), fabric_(fabric), first_port_(first_port) {}

  void depart(uint16_t port, PacketId id, Time at) override { fabric_.transmit(first_port_ + port, id, at); }
  void wake(uint32_t port, Time at) override { fabric_.queue_.push({at, kSwitchWake | (first_port_ + port), 0}); }

  SoftSwitch device;

 private:
  Fabric& fabric_;
  uint32_t first_port_;
};

class Fabric::NicNode final : public Driver {
 public:
  NicNode(Fabric& fabric, const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, uint32_t index,
          uint32_t port)
      : fabric_(fabric), index_(index), port_(port), device(parameters, queue_pairs, fabric.pool_, nullptr, this) {
    arm();
  }

  void depart(uint16_t, PacketId id, Time at) override { fabric_.transmit(port_, id, at); }
  void wake(uint32_t what, Time at) override { fabric_.queue_.push({at, kNicWake | index_, what}); }

  // The device has just lived up to now.
  void arm() {
    const Time next = std::max(device.next_deadline(), fabric_.now_);
    if (next == wakes_) return;
    wakes_ = next;
    if (next != kNever) fabric_.queue_.push({next, kNicWake | index_, kItself});
  }
  void woken(uint32_t what, Time at) {
    if (what != kItself) {
      device.wake(what, at);
    } else if (wakes_ == at) {
      wakes_ = kNever;
      device.advance(at);
    } else {
      return;
    }
    arm();
  }

 private:
  Fabric& fabric_;
  uint32_t index_;
  uint32_t port_;
  Time wakes_ = kNever;

 public:
  SoftNic device;
};

struct Fabric::Impaired {
  LinkImpairment parameters;
  Random random;
  Time last = 0;  // arrival of the latest frame that was not held back
};

Fabric::Fabric(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs)
    : pool_(kDescriptors, kHeaderStride) {
  uint32_t port = 0;
  for (const SimulatedSwitch& s : config.switches) {
    first_port_.push_back(port);
    switches_.push_back(std::make_unique<SwitchNode>(*this, s.parameters, port));
    Forwarding& forwarding = switches_.back()->device.forwarding();
    if (!config.nics.empty()) forwarding.add_static_range(config.nics.front().parameters.mac, s.group_of_host, s.groups);
    for (const SimulatedSwitch::Pin& pin : s.pins) {
      forwarding.pin(config.nics[pin.from].parameters.mac, config.nics[pin.to].parameters.mac, pin.port);
    }
    for (size_t i = 0; i < s.parameters.ports.size(); ++i) {
      owners_.push_back({static_cast<uint32_t>(switches_.size() - 1), static_cast<uint16_t>(i)});
    }
    port += static_cast<uint32_t>(s.parameters.ports.size());
  }
  for (size_t i = 0; i < config.nics.size(); ++i) {
    first_port_.push_back(port);
    nics_.push_back(std::make_unique<NicNode>(*this, config.nics[i].parameters, queue_pairs[i], static_cast<uint32_t>(i), port));
    ++port;
  }
  directions_.resize(port);
  receivers_.resize(port);
  connect(config);
}

Fabric::~Fabric() = default;

SoftSwitch& Fabric::switch_at(size_t index) { return switches_[index]->device; }
SoftNic& Fabric::nic_at(size_t index) { return nics_[index]->device; }

uint32_t Fabric::port_number(const LinkEnd& end) const { return first_port_[end.device] + end.port; }

void Fabric::connect(const SimulationConfig& config) {
  const auto switches = static_cast<uint32_t>(switches_.size());
  for (size_t i = 0; i < config.links.size(); ++i) {
    const SimulatedLink& link = config.links[i];
    for (size_t side = 0; side < 2; ++side) {
      const LinkEnd& to = link.ends[1 - side];
      const uint32_t port = port_number(link.ends[side]);
      link_ports_.push_back(port);
      Direction& direction = directions_[port];
      const bool is_switch = to.device < switches;
      receivers_[port] = {is_switch ? to.device : to.device - switches, to.port, is_switch};
      direction.delay = link.delay;
      if (link.impaired) {
        direction.impaired = std::make_unique<Impaired>(Impaired{link.impairment, Random(config.seed, 2 * i + side, 2), 0});
      }
    }
  }
  for (size_t tap = 0; tap < config.taps.size(); ++tap) {
    directions_[port_number(config.taps[tap])].tap = static_cast<uint32_t>(tap);
  }
}

bool Fabric::step(Time until) {
  Event event;
  if (!queue_.pop(until, event)) return false;
  now_ = event.at;
  ++events_;
  fetch_ahead();
  const uint32_t whom = event.kind & ~kKinds;
  switch (event.kind & kKinds) {
    case kArrival:
      arrive(whom, event.packet);
      break;
    case kSwitchWake:
      switches_[owners_[whom].device]->device.wake(owners_[whom].port, event.at);
      break;
    default:
      nics_[whom]->woken(event.packet, event.at);
      break;
  }
  return true;
}

// In a large fabric hardly anything that an event needs is in a cache, and many events share a nanosecond. What the next ones
// need is asked for while this one is handled, in steps, each of which reads what the one before has asked for.
void Fabric::fetch_ahead() const {
  const Event* next[4];
  const int count = queue_.ahead(next, 4);
  if (count > 3 && (next[3]->kind & kKinds) == kArrival) {
    __builtin_prefetch(&pool_[next[3]->packet]);
    __builtin_prefetch(&receivers_[next[3]->kind]);
  }
  for (int step = 0; step < 3; ++step) {
    const int place = 2 - step;
    if (place < count) fetch(*next[place], step);
  }
}

// What `event` needs, some of it in each of the steps 0, 1, 2.
void Fabric::fetch(const Event& event, int step) const {
  const uint32_t whom = event.kind & ~kKinds;
  switch (event.kind & kKinds) {
    case kArrival: {
      const End& to = receivers_[whom];
      const Packet& packet = pool_[event.packet];
      if (!to.is_switch) {
        const SoftNic& nic = nics_[to.device]->device;
        nic.fetch(packet.meta.destination_qp - nic.first_qpn(), step);
        if (step == 0) __builtin_prefetch(pool_.data(event.packet) + packet.meta.bth_offset);
      } else if (step == 0) {
        switches_[to.device]->device.fetch_route(packet);
      } else if (step == 1) {
        const int out = switches_[to.device]->device.fetch_for_arrival(to.port, packet);
        if (out >= 0) __builtin_prefetch(&directions_[first_port_[to.device] + static_cast<uint32_t>(out)], 1);
      }
      break;
    }
    case kSwitchWake: {
      const SoftSwitch& device = switches_[owners_[whom].device]->device;
      if (step == 0) {
        device.fetch_port(owners_[whom].port);
        __builtin_prefetch(&directions_[whom], 1);
      } else if (const PacketId id = device.first_waiting(owners_[whom].port); step == 1 && id != kNoPacket) {
        __builtin_prefetch(&pool_[id], 1);
      }
      break;
    }
    default:
      nics_[whom]->device.fetch(event.packet, step);
      if (step == 0) __builtin_prefetch(&directions_[first_port_[switches_.size() + whom]], 1);
      break;
  }
}

void Fabric::transmit(uint32_t port, PacketId id, Time at) {
  Direction& direction = directions_[port];
  ++hops_;
  ++direction.counters.frames;
  direction.counters.wire_bytes += wire_bytes(pool_[id].length);
  if (direction.tap != UINT32_MAX) record(direction.tap, id, at);
  if (direction.impaired != nullptr) return impair(port, id, at + direction.delay);
  queue_.push({at + direction.delay, kArrival | port, id});
}

void Fabric::impair(uint32_t port, PacketId id, Time arrival) {
  Direction& direction = directions_[port];
  Impaired& impaired = *direction.impaired;
  const LinkImpairment& p = impaired.parameters;
  Random& random = impaired.random;
  if (p.loss > 0 && random.uniform() < p.loss) {
    ++direction.counters.lost;
    return pool_.free(id);
  }
  if (p.corrupt > 0 && random.uniform() < p.corrupt) {
    ++direction.counters.corrupted;
    return pool_.free(id);
  }
  if (p.jitter > 0) arrival += static_cast<Time>(random.uniform() * static_cast<double>(p.jitter + 1));
  arrival = std::max(arrival, impaired.last);
  if (p.duplicate > 0 && random.uniform() < p.duplicate) {
    const PacketId copy = pool_.allocate();
    if (copy != kNoPacket) {
      ++direction.counters.duplicated;
      pool_[copy] = pool_[id];
      std::memcpy(pool_.data(copy), pool_.data(id), pool_.stride());
      queue_.push({arrival, kArrival | port, copy});
    }
  }
  if (p.reorder > 0 && random.uniform() < p.reorder) {
    ++direction.counters.reordered;
    arrival += p.reorder_delay;
  } else {
    impaired.last = arrival;
  }
  queue_.push({arrival, kArrival | port, id});
}

void Fabric::arrive(uint32_t from_port, PacketId id) {
  const End& to = receivers_[from_port];
  const Packet& packet = pool_[id];
  if (to.is_switch) {
    SoftSwitch& device = switches_[to.device]->device;
    if (packet.meta.kind != FrameKind::pfc) return device.receive(now_, to.port, id);
    device.receive_pfc(now_, to.port, packet.pfc_enable, quanta_of(packet));
  } else {
    NicNode& node = *nics_[to.device];
    if (packet.meta.kind == FrameKind::pfc) {
      node.device.receive_pfc(now_, packet.pfc_enable, quanta_of(packet));
    } else {
      node.device.receive(now_, pool_.data(id), packet.length, packet.meta, Refusal::none);
    }
    node.arm();
  }
  pool_.free(id);
}

void Fabric::record(uint32_t tap, PacketId id, Time at) {
  Packet& packet = pool_[id];
  uint8_t bytes[kHeaderStride] = {};
  uint32_t captured = packet.length;
  if (packet.meta.kind == FrameKind::pfc) {
    PfcFrame frame;
    frame.enable = packet.pfc_enable;
    std::ranges::copy(quanta_of(packet), frame.quanta);
    captured = build_pfc(bytes, packet.meta.source_mac, frame);
  } else {
    std::memcpy(bytes, pool_.data(id), kHeaderStride);
    PacketMeta meta = packet.meta;
    if (meta.ecn_changed) write_ecn(bytes, meta);
    // Notifications are whole; of all else the payload, the pad and the ICRC do not exist.
    if (meta.kind != FrameKind::cnp) captured = packet.length - meta.payload_length - meta.pad_count - kIcrc;
  }
  const uint32_t words[4] = {tap, captured, packet.length, 0};
  const double time = static_cast<double>(at);
  const size_t start = trace_.size();
  trace_.resize(start + sizeof words + sizeof time + ((captured + 7) & ~7u));
  std::memcpy(trace_.data() + start, words, sizeof words);
  std::memcpy(trace_.data() + start + sizeof words, &time, sizeof time);
  std::memcpy(trace_.data() + start + sizeof words + sizeof time, bytes, captured);
}

}  // namespace weir
