// Some devices of a fabric, which live through each window of time one after another, and all that they write to meanwhile: one
// thread has it to itself for a round, of one window or several. Frames to devices of other partitions wait in outboxes, of which
// there are two sets: the others empty the one that was filled in the last round while the other is filled in this.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fetch.h"
#include "base/types.h"
#include "endpoint/soft_nic.h"
#include "link/driver.h"
#include "link/faults.h"
#include "link/impairment.h"
#include "simulation/counters.h"
#include "simulation/schedule.h"
#include "switching/soft_switch.h"
#include "wire/captured_frame.h"
#include "wire/packet_pool.h"

namespace weir {

// Place of a device. The NICs of a machine are one.
struct DevicePlace {
  uint32_t partition = 0;
  uint32_t device = 0;  // number in the partition: its switches first
  uint32_t nic = 0;     // number among the NICs of its machine
};

// One direction of a link. Written by the partition that sends into it.
struct alignas(64) Direction {
  Time delay = 0;
  std::unique_ptr<Impairment> impairment;  // there is one where there are faults, too
  std::unique_ptr<Faults> faults;
  DevicePlace receiver;
  uint16_t port = 0;  // the receiver's port; the number of a machine's NIC
  bool down = false;
  uint32_t tap = UINT32_MAX;
  LinkCounters counters;
};

// What a NIC's host does besides what its NIC does by itself.
class HostWork {
 public:
  // The host of a NIC is woken, which it asked for by Fabric::wake_host().
  virtual void wake(uint32_t nic, Time now) = 0;
  // A NIC with queue pairs of programs has had an event: frames may have come to them, and packets left.
  virtual void heard(uint32_t /*nic*/, Time /*now*/) {}
  // A NIC has received a frame that is connection management's.
  virtual void punted(uint32_t /*nic*/, Time /*now*/, std::span<const uint8_t> /*frame*/) {}

 protected:
  ~HostWork() = default;
};

class alignas(64) Partition {
 public:
  // Surroundings that all partitions of a fabric share.
  struct Surroundings {
    uint32_t partitions = 1;
    Time lookahead = 0;
    Time word = 0;                    // time that it takes to tell a device anything but by a frame
    bool overtaking = false;          // a frame may arrive together with one that its port has sent later
    std::span<Direction> directions;  // directions of all ports; they outlive it
    HostWork* hosts = nullptr;        // likewise; or null
  };
  // Makes a partition with so many devices. `memory` must outlive it until move_to().
  Partition(uint32_t number, uint32_t devices, const Surroundings& surroundings, PacketMemory& memory);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  // Switches before NICs. `first_port`: its place among the directions.
  SoftSwitch& add_switch(const SwitchParameters& parameters, uint32_t first_port);
  // Those of a machine follow each other, in the order of their numbers. `number`: among all NICs.
  SoftNic& add_nic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, DevicePlace place,
                   uint32_t port, uint32_t number);

  // A run is going to begin: what it was told since the last is seen by next_window().
  void begin();
  // A round: goes on up to `end`, with what `all` partitions have sent in the round before. `turn` is 0 and 1 in turns.
  void run(Time end, uint32_t turn, std::span<const std::unique_ptr<Partition>> all);
  // Whether the last run() stopped for want of packets. The rest happens in the next, with the same end.
  bool stalled() const { return stalled_; }
  // Stops run() behind the event under way: who carries the run out has something to do first.
  void pause() { paused_ = true; }
  // Whether that has stopped it, and when.
  bool paused() const { return paused_; }
  Time now() const { return now_; }
  // The earliest window in which anything that it knows of or has sent is going to happen, or Schedule::kNoWindow.
  uint64_t next_window() const { return next_window_; }

  // Must be called between two runs: frames that other partitions have sent here are known here then, and none is on its way.
  void collect(std::span<const std::unique_ptr<Partition>> all);
  // Must follow collect(): the frames on a link that leads to one of its devices are lost.
  void lose(Direction& direction);
  // The link at the port of a device has failed.
  void end_pauses(DevicePlace place, uint16_t port, Time now);

  // A device is going to be woken, as soon as word of the present event can be there.
  void wake_later(DevicePlace place, uint32_t what);
  // Pauses come in by faults of what leaves at a port of a device.
  void begin_pauses(uint32_t device, uint32_t port);
  // The host of a NIC here is going to be woken: during an event of a NIC of that machine, or between two runs.
  void wake_host(DevicePlace place, uint32_t nic, Time at) { schedule_.push(at, kWake, kHost | nic, place.device); }
  // Marks a wake of a NIC's host, whose number among all NICs is with it.
  static constexpr uint32_t kHost = 1u << 28;
  // Marks a wake that closes a stream of a NIC.
  static constexpr uint32_t kClose = 1u << 29;
  // Marks a wake for the pauses of a port, whose number among the directions is with it.
  static constexpr uint32_t kPauses = 1u << 30;

  // Fewer than that may not last for any one event: a pause for each port of a switch is the most.
  static constexpr uint32_t kSpare = 1u << 12;
  PacketPool& pool() { return pool_; }
  // Packets that this has freed and others are about to have back.
  void unmark_returned(std::vector<bool>& marks) const;
  uint32_t returned() const;

  uint64_t events() const { return schedule_.events(); }
  uint64_t hops() const { return hops_; }
  // Number of those hops that led to another partition.
  uint64_t crossed() const { return crossed_; }
  // Frames that were traced, each as a record of wire/captured_frame.h.
  std::vector<uint8_t>& traced() { return traced_; }

 private:
  class Node;
  class SwitchNode;
  class NicNode;
  // Events and packets that are handed over to one other partition.
  struct alignas(64) Outbox {
    std::vector<Event> events;
    std::vector<PacketId> returned;
  };

  void look_ahead();
  Outbox& outbox(uint32_t turn, uint32_t to) { return outboxes_[turn * traded_.size() + to]; }
  void take_in(uint32_t turn, std::span<const std::unique_ptr<Partition>> all);
  void give_back();
  void tell_host(const NicNode& node);
  void transmit(uint32_t port, PacketId id, Time at);
  void impair(Direction& direction, PacketId id, Time arrival);
  void pause(uint32_t device, uint32_t port);
  void deliver(const Direction& direction, PacketId id, Time arrival) {
    const DevicePlace& to = direction.receiver;
    if (to.partition == number_) return schedule_.push(arrival, direction.port, id, to.device);
    ++crossed_;
    send({arrival, direction.port, id, to.device}, to.partition);
  }
  void send(const Event& event, uint32_t to);
  NicNode& nic_of(uint32_t device, uint32_t number) const { return *nics_[first_nic_[device - switches_.size()] + number]; }
  void arrive(const Event& event);
  void handle(const Event& event);
  void fetch(const Event& event, size_t stage) const;
  WEIR_FETCHES void fetch_frame(const Event& event) const {
    if (is_frame(event)) __builtin_prefetch(&pool_[event.packet], 1);
  }
  void record(uint32_t tap, PacketId id, Time at);

  uint32_t number_;
  Time word_;
  bool overtaking_;
  uint32_t turn_ = 0;
  PacketPool pool_;
  Schedule schedule_;
  std::vector<std::unique_ptr<SwitchNode>> switches_;
  std::vector<std::unique_ptr<NicNode>> nics_;
  std::vector<uint32_t> first_nic_;  // first NIC of each machine
  std::span<Direction> directions_;
  HostWork* hosts_;
  Time now_ = 0;
  uint64_t hops_ = 0;
  uint64_t crossed_ = 0;
  bool stalled_ = false;
  bool paused_ = false;
  uint64_t next_window_ = Schedule::kNoWindow;
  Time earliest_sent_ = kNever;   // earliest event sent to others in this round
  std::vector<Outbox> outboxes_;  // outboxes by turn and receiver
  std::vector<int64_t> traded_;   // packets that others have given, less those that they were given
  std::vector<uint8_t> traced_;
};

}  // namespace weir
