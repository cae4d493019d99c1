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
  direction_of_port_.assign(port, UINT32_MAX);
  connect(config);
}

Fabric::~Fabric() = default;

SoftSwitch& Fabric::switch_at(size_t index) { return switches_[index]->device; }
SoftNic& Fabric::nic_at(size_t index) { return nics_[index]->device; }

uint32_t Fabric::port_number(const LinkEnd& end) const { return first_port_[end.device] + end.port; }

void Fabric::connect(const SimulationConfig& config) {
  const auto switches = static_cast<uint32_t>(switches_.size());
  directions_.resize(2 * config.links.size());
  receivers_.resize(2 * config.links.size());
  for (size_t i = 0; i < config.links.size(); ++i) {
    const SimulatedLink& link = config.links[i];
    for (size_t side = 0; side < 2; ++side) {
      const LinkEnd& to = link.ends[1 - side];
      Direction& direction = directions_[2 * i + side];
      const bool is_switch = to.device < switches;
      receivers_[2 * i + side] = {is_switch ? to.device : to.device - switches, to.port, is_switch};
      direction.delay = link.delay;
      if (link.impaired) {
        direction.impaired = std::make_unique<Impaired>(Impaired{link.impairment, Random(config.seed, 2 * i + side, 2), 0});
      }
      direction_of_port_[port_number(link.ends[side])] = static_cast<uint32_t>(2 * i + side);
    }
  }
  for (size_t tap = 0; tap < config.taps.size(); ++tap) {
    directions_[direction_of_port_[port_number(config.taps[tap])]].tap = static_cast<uint32_t>(tap);
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

// In a large fabric hardly anything that an event needs is in a cache: what the next ones at this time need is asked for now.
void Fabric::fetch_ahead() const {
  if (const Event* later = queue_.ahead(1); later != nullptr && (later->kind & kKinds) == kArrival) {
    __builtin_prefetch(&pool_[later->packet]);
    __builtin_prefetch(&receivers_[later->kind]);
  }
  const Event* next = queue_.ahead(0);
  if (next == nullptr) return;
  const uint32_t whom = next->kind & ~kKinds;
  switch (next->kind & kKinds) {
    case kArrival: {
      const End& to = receivers_[whom];
      if (to.is_switch) {
        switches_[to.device]->device.fetch_for_arrival(to.port, pool_[next->packet]);
      } else {
        nics_[to.device]->device.fetch_for_arrival(pool_[next->packet], pool_.data(next->packet));
      }
      break;
    }
    case kSwitchWake:
      switches_[owners_[whom].device]->device.fetch_for_departure(owners_[whom].port);
      break;
    default:
      nics_[whom]->device.fetch(next->packet == kItself ? UINT32_MAX : next->packet);
      break;
  }
}

void Fabric::transmit(uint32_t port, PacketId id, Time at) {
  const uint32_t index = direction_of_port_[port];
  Direction& direction = directions_[index];
  ++hops_;
  ++direction.counters.frames;
  direction.counters.wire_bytes += wire_bytes(pool_[id].length);
  if (direction.tap != UINT32_MAX) record(direction.tap, id, at);
  if (direction.impaired != nullptr) return impair(index, id, at + direction.delay);
  queue_.push({at + direction.delay, kArrival | index, id});
}

void Fabric::impair(uint32_t index, PacketId id, Time arrival) {
  Direction& direction = directions_[index];
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
      queue_.push({arrival, kArrival | index, copy});
    }
  }
  if (p.reorder > 0 && random.uniform() < p.reorder) {
    ++direction.counters.reordered;
    arrival += p.reorder_delay;
  } else {
    impaired.last = arrival;
  }
  queue_.push({arrival, kArrival | index, id});
}

void Fabric::arrive(uint32_t index, PacketId id) {
  const End& to = receivers_[index];
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
    if (meta.payload_length > 0) captured = packet.length - meta.payload_length - meta.pad_count - kIcrc;
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
