#include "simulation/partition.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "link/pfc.h"
#include "wire/ecn.h"
#include "wire/mac_control.h"
#include "wire/nak.h"
#include "wire/trim.h"

namespace weir {

// A device's driver, with the device's number in the partition, that of its first port among all, and the kind of its wakes.
class Partition::Node : public Driver {
 public:
  Node(Partition& partition, uint32_t number, uint32_t first_port, uint32_t wake = kWake)
      : partition_(partition), number_(number), first_port_(first_port), wake_(wake) {}

  uint32_t first_port() const { return first_port_; }
  void wake(uint32_t what, Time at) override {
    if (at != kNever) partition_.schedule_.push(at, wake_, what, number_);
  }

 protected:
  void transmit(uint16_t port, PacketId id, Time at) { partition_.transmit(first_port_ + port, id, at); }

 private:
  Partition& partition_;
  uint32_t number_;
  uint32_t first_port_;
  uint32_t wake_;
};

class Partition::SwitchNode final : public Node {
 public:
  SwitchNode(Partition& partition, const SwitchParameters& parameters, uint32_t number, uint32_t first_port)
      : Node(partition, number, first_port), device(parameters, partition.pool_, *this) {}

  void depart(uint16_t port, PacketId id, Time at) override {
    device.left(port, id);
    device.set_unsent(port, 0);
    transmit(port, id, at);
  }

  SoftSwitch device;
};

// Queue pairs of programs have their completions there, and a simulation has no others of applications.
class NoCompletions final : public CompletionSink {
 public:
  void complete(const Completion&) override {}
};

class Partition::NicNode final : public Node {
 public:
  NicNode(Partition& partition, const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs,
          DevicePlace place, uint32_t port, uint32_t number)
      : Node(partition, place.device, port, kWake - place.nic),
        partition_(partition),
        pool_(partition.pool_),
        mac_(parameters.mac),
        place_(place.device),
        nic_(place.nic),
        device(parameters, queue_pairs, partition.pool_, *this, &completions_),
        number(number),
        hosted(parameters.verbs_queue_pairs > 0 && partition.hosts_ != nullptr) {}

  void depart(uint16_t, PacketId id, Time at) override {
    if (pool_.has_payload()) [[unlikely]]
      complete(id);
    device.left(id);
    if (hosted && pool_[id].meta.destination_mac == mac_) [[unlikely]]
      return partition_.schedule_.push(at, nic_, id, place_);
    transmit(0, id, at);
  }

 private:
  // Frames with payload are described when they leave, as those without are when they are written.
  void complete(PacketId id) {
    device.seal();
    Packet& packet = pool_[id];
    if (!is_flow_control(packet.meta.kind)) classify(pool_.data(id), packet.length, packet.meta);
  }

  Partition& partition_;
  PacketPool& pool_;
  // Programs of one host reach each other within the NIC, at the pace of its link.
  const uint64_t mac_;
  const uint32_t place_;
  const uint32_t nic_;
  NoCompletions completions_;

 public:
  SoftNic device;
  const uint32_t number;  // among all NICs
  const bool hosted;      // its host has programs
  Rate slowed = 0;        // pace of the last frame by a fault
};

Partition::Partition(uint32_t number, uint32_t devices, const Surroundings& surroundings, PacketMemory& memory)
    : number_(number),
      word_(surroundings.word),
      overtaking_(surroundings.overtaking),
      pool_(memory, PacketPool::Supplied{}),
      schedule_(devices, surroundings.lookahead),
      directions_(surroundings.directions),
      hosts_(surroundings.hosts),
      outboxes_(2 * static_cast<size_t>(surroundings.partitions)),
      traded_(surroundings.partitions) {}

Partition::~Partition() = default;

SoftSwitch& Partition::add_switch(const SwitchParameters& parameters, uint32_t first_port) {
  const auto number = static_cast<uint32_t>(switches_.size());
  return switches_.emplace_back(std::make_unique<SwitchNode>(*this, parameters, number, first_port))->device;
}

SoftNic& Partition::add_nic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs,
                            DevicePlace place, uint32_t port, uint32_t number) {
  if (place.nic == 0) first_nic_.push_back(static_cast<uint32_t>(nics_.size()));
  return nics_.emplace_back(std::make_unique<NicNode>(*this, parameters, queue_pairs, place, port, number))->device;
}

// Hints for the caches: frames are many, and come from elsewhere, and so are devices. Inlined, or GCC takes calls that do nothing
// else away.
WEIR_FETCHES inline void Partition::fetch(const Event& event, size_t stage) const {
  if (event.device < switches_.size()) {
    const SwitchNode& node = *switches_[event.device];
    if (stage == 0) {
      if (is_frame(event)) node.device.fetch_bytes(event.packet);
      return fetch_frame(event);
    }
    if (stage > 1) return;
    if (!is_frame(event)) return node.device.fetch(event.packet);
    node.device.fetch(static_cast<uint16_t>(event.kind), event.packet);
    __builtin_prefetch(&directions_[node.first_port() + event.kind], 1);
    return;
  }
  const NicNode& node = nic_of(event.device, is_frame(event) ? event.kind : kWake - event.kind);
  const NicState& nic = node.device.state();
  if (stage == 0) {
    if (is_frame(event)) __builtin_prefetch(pool_.data(event.packet));
    nic.fetch();
    return fetch_frame(event);
  }
  if (stage == 1) __builtin_prefetch(&directions_[node.first_port()], 1);
  nic.fetch_stream(is_frame(event) ? nic.stream_of(pool_[event.packet].meta.destination_qp) : nic.stream_woken(event.packet),
                   stage - 1);
}

void Partition::begin() {
  stalled_ = paused_ = false;
  look_ahead();
}

void Partition::look_ahead() {
  next_window_ = schedule_.next_window();
  if (earliest_sent_ != kNever) next_window_ = std::min(next_window_, schedule_.window_of(earliest_sent_));
}

void Partition::run(Time end, uint32_t turn, std::span<const std::unique_ptr<Partition>> all) {
  turn_ = turn;
  take_in(1 - turn, all);
  earliest_sent_ = kNever;
  const auto fetch = [this](const Event& event, size_t stage) __attribute__((always_inline)) { this->fetch(event, stage); };
  const auto ready = [this] { return pool_.available() >= kSpare && !paused_; };
  const auto sent_before = [this](PacketId a, PacketId b) { return overtaking_ && pool_[a].departs < pool_[b].departs; };
  stalled_ = false;
  for (;;) {
    const uint64_t window = schedule_.next_window();
    if (window == Schedule::kNoWindow || schedule_.start_of(window) >= end) break;
    const Time over = schedule_.start_of(window + 1);
    stalled_ = !schedule_.run(
        window, std::min(end, over), [this](const Event& event) { handle(event); }, ready, fetch, sent_before);
    if (stalled_ || over >= end) break;
  }
  give_back();
  look_ahead();
}

void Partition::take_in(uint32_t turn, std::span<const std::unique_ptr<Partition>> all) {
  for (uint32_t from = 0; from < all.size(); ++from) {
    if (from == number_) continue;
    Outbox& box = all[from]->outbox(turn, number_);
    for (const Event& event : box.events) schedule_.push(event.at, event.kind, event.packet, event.device);
    for (const PacketId id : box.returned) pool_.free(id);
    traded_[from] += static_cast<int64_t>(box.events.size() + box.returned.size());
    box.events.clear();
    box.returned.clear();
  }
}

// Packets belong to the partition that frees them. If traffic goes one way they would all end up there: a partition that was
// given more than it gave, and has plenty, gives them back.
void Partition::give_back() {
  constexpr uint32_t kPlenty = 2 * kSpare + kSpare / 4;
  for (uint32_t to = 0; to < traded_.size(); ++to) {
    if (to == number_) continue;
    Outbox& box = outbox(turn_, to);
    traded_[to] -= static_cast<int64_t>(box.events.size());
    for (; traded_[to] > 0 && pool_.available() > kPlenty; --traded_[to]) box.returned.push_back(pool_.allocate());
  }
}

void Partition::collect(std::span<const std::unique_ptr<Partition>> all) {
  take_in(turn_, all);
  earliest_sent_ = kNever;
}

void Partition::lose(Direction& direction) {
  schedule_.remove(direction.receiver.device, direction.port, [&](PacketId id) {
    ++direction.counters.link_down;
    pool_.free(id);
  });
}

void Partition::end_pauses(DevicePlace place, uint16_t port, Time now) {
  now_ = now;
  if (place.device < switches_.size()) return switches_[place.device]->device.pauses().end(now, port);
  nic_of(place.device, port).device.end_pauses(now);
}

void Partition::unmark_returned(std::vector<bool>& marks) const {
  for (const Outbox& box : outboxes_) {
    for (const PacketId id : box.returned) marks[id] = false;
  }
}

uint32_t Partition::returned() const {
  size_t count = 0;
  for (const Outbox& box : outboxes_) count += box.returned.size();
  return static_cast<uint32_t>(count);
}

void Partition::wake_later(DevicePlace place, uint32_t what) {
  const Time at = now_ + word_;
  const uint32_t wake = kWake - place.nic;
  if (place.partition == number_) return schedule_.push(at, wake, what, place.device);
  send({at, wake, what, place.device}, place.partition);
}

void Partition::send(const Event& event, uint32_t to) {
  outbox(turn_, to).events.push_back(event);
  earliest_sent_ = std::min(earliest_sent_, event.at);
}

void Partition::handle(const Event& event) {
  now_ = event.at;
  if (is_frame(event)) return arrive(event);
  if ((event.packet & kPauses) != 0) return pause(event.device, event.packet & ~kPauses);
  if (event.device < switches_.size()) return switches_[event.device]->device.wake(event.packet, event.at);
  if ((event.packet & kHost) != 0) return hosts_->wake(event.packet & ~kHost, event.at);
  NicNode& node = nic_of(event.device, kWake - event.kind);
  if ((event.packet & kClose) != 0) return node.device.close(event.at, event.packet & ~kClose);
  node.device.wake(event.packet, event.at);
  tell_host(node);
}

void Partition::tell_host(const NicNode& node) {
  if (node.hosted) [[unlikely]]
    hosts_->heard(node.number, now_);
}

void Partition::transmit(uint32_t port, PacketId id, Time at) {
  Direction& direction = directions_[port];
  ++hops_;
  ++direction.counters.frames;
  direction.counters.wire_bytes += wire_bytes(pool_[id].length);
  if (direction.tap != UINT32_MAX) record(direction.tap, id, at);
  if (direction.down) [[unlikely]] {
    ++direction.counters.link_down;
    return pool_.free(id);
  }
  if (overtaking_) pool_[id].departs = at;
  if (direction.impairment != nullptr) return impair(direction, id, at + direction.delay);
  deliver(direction, id, at + direction.delay);
}

void Partition::impair(Direction& direction, PacketId id, Time arrival) {
  LinkCounters& counters = direction.counters;
  Impairment::Fate fate = direction.impairment->decide(arrival);
  Packet& packet = pool_[id];
  if (!fate.lost && direction.faults != nullptr)
    direction.faults->decide(pool_.data(id), packet.length, packet.meta, arrival, fate);
  counters.lost += fate.lost;
  if (fate.lost) return pool_.free(id);
  counters.corrupted += fate.corrupted;
  counters.reordered += fate.reordered;
  if (fate.duplicated) {
    ++counters.duplicated;
    deliver(direction, pool_.copy(id), fate.at);
  }
  counters.changed += fate.marked || fate.trimmed || fate.refused || fate.failure != 0 || fate.slowed != 0;
  if (fate.marked) packet.meta.ecn = kCe;
  packet.meta.ecn_changed |= fate.marked;
  if (fate.refused) make_nak(pool_.data(id), packet.length, packet.meta, fate.syndrome);
  if (fate.trimmed && can_trim(packet, fate.size)) trim(pool_.data(id), packet, fate.size, fate.dscp);
  packet.meta.failure = fate.failure;
  packet.slowed = fate.slowed;
  // The receiving end's FCS refuses it.
  if (fate.corrupted) return pool_.free(id);
  deliver(direction, id, fate.at);
}

void Partition::begin_pauses(uint32_t device, uint32_t port) {
  const Time first = directions_[port].faults->next_pause(now_);
  if (first != kNever) schedule_.push(first, kWake, kPauses | port, device);
}

void Partition::pause(uint32_t device, uint32_t port) {
  Direction& direction = directions_[port];
  Packet made;
  while (direction.faults->pause(now_, made)) {
    if (direction.down) continue;
    const PacketId id = pool_.allocate();
    if (id == kNoPacket) break;
    pool_[id] = made;
    pool_[id].departs = now_;
    ++direction.counters.duplicated;
    deliver(direction, id, now_ + word_);
  }
  begin_pauses(device, port);
}

void Partition::arrive(const Event& event) {
  const PacketId id = event.packet;
  const Packet& packet = pool_[id];
  if (event.device < switches_.size()) {
    SoftSwitch& device = switches_[event.device]->device;
    const auto port = static_cast<uint16_t>(event.kind);
    if (!is_flow_control(packet.meta.kind)) return device.receive(now_, port, id);
    if (packet.meta.kind == FrameKind::pfc) {
      device.pauses().receive_pfc(now_, port, packet.pfc_enable, pfc_frame(packet).quanta);
    } else {
      device.pauses().receive_pause(now_, port, pause_quanta(packet));
    }
  } else {
    NicNode& node = nic_of(event.device, event.kind);
    if (packet.meta.kind == FrameKind::pfc) {
      node.device.receive_pfc(now_, packet.pfc_enable, pfc_frame(packet).quanta);
    } else if (packet.meta.kind == FrameKind::pause) {
      node.device.receive_pause(now_, pause_quanta(packet));
    } else {
      if (packet.slowed != node.slowed) [[unlikely]]
        node.device.slow(node.slowed = packet.slowed);
      const auto whose = node.device.receive(now_, pool_.data(id), packet.length, packet.meta, Refusal::none);
      if (node.hosted && whose == SoftNic::Disposition::punt) [[unlikely]]
        hosts_->punted(node.number, now_, {pool_.data(id), packet.length});
      tell_host(node);
    }
  }
  pool_.free(id);
}

void Partition::record(uint32_t tap, PacketId id, Time at) {
  const Packet& packet = pool_[id];
  const bool control = is_flow_control(packet.meta.kind);
  const CapturedFrame frame{
      .stamp = at, .tap = tap, .captured = control ? kMinimumFrame : pool_.present(id), .original = packet.length};
  const size_t begin = traced_.size();
  traced_.resize(begin + frame.length());
  std::memcpy(traced_.data() + begin, &frame, sizeof frame);
  uint8_t* const bytes = traced_.data() + begin + sizeof frame;
  if (control) {
    build_flow_control(bytes, packet);
  } else {
    std::memcpy(bytes, pool_.data(id), frame.captured);
    if (packet.meta.ecn_changed) write_ecn(bytes, packet.meta);
  }
}

}  // namespace weir
