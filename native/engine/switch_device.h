// A SoftSwitch on real ports.
#pragma once

#include <vector>

#include "base/indexed_heap.h"
#include "engine/config.h"
#include "engine/device.h"
#include "engine/frame_ring.h"
#include "engine/shared_switch.h"
#include "switching/wire_switch.h"
#include "wire/packet_pool.h"

namespace weir {

// Throws NativeError INVALID_CONFIG for what a switch cannot run with, FDB_FULL for routes that do not fit the forwarding table.
void check(const SwitchDeviceConfig& config);

class SwitchDevice final : public Device {
 public:
  // `ports`: its own, then the twins that the kernel has of some. `shared`: of a switch that several workers share, of whom this
  // one is number `share`; else null. Ports of others, and their twins, are there, but absent. Throws NativeError as check()
  // does, and when a route does not fit the forwarding table.
  SwitchDevice(const SwitchDeviceConfig& config, uint16_t index, std::vector<WirePort> ports, PacketPool& pool, FrameRing& punted,
               SharedSwitch* shared = nullptr, uint32_t share = 0);

  void turn(Time horizon, Time now) override;
  Time next_deadline() override;
  void stop_traffic(Time) override {}
  void reset_distributions() override { switch_.statistics().reset_distributions(); }
  void sample(Time at, SpscRing<Record>& ring) override;
  void settle_counters() override { switch_.statistics().settle_counters(); }
  void register_counters(CounterBlock& block) override;
  std::vector<WirePort>& ports() override { return ports_; }
  void link_changed(size_t port) override;
  uint64_t frames_seen() const override;
  // Takes parameters that have passed check(), which takes longer than the device may stand still. Throws NativeError
  // INVALID_CONFIG where ports or twins differ, and has changed nothing then.
  void reconfigure(const SwitchDeviceConfig& config);
  SoftSwitch& soft_switch() { return switch_; }
  // Tells of PFC storms at ports that have begun or ended since this was last called.
  void tell_storms(Time now, SpscRing<Record>& ring);
  const SwitchDeviceConfig& config() const { return config_; }

 private:
  void live_until(Time horizon, bool last);
  bool hand_over(uint16_t port, bool last);
  void accept(uint16_t port, const RxFrame& frame);
  PacketId admit(uint16_t port, const RxFrame& frame);
  void punt(uint16_t port, Time at, PacketId id);
  void hand_to_kernel();
  void accept_from_kernel(size_t twin, const RxFrame& frame);
  void flush_twins();
  void look_for_checksum(uint16_t port, PacketId id);
  void write_bytes(PacketId id);

  SwitchDeviceConfig config_;
  uint16_t index_;
  std::vector<WirePort> ports_;
  PacketPool& pool_;
  FrameRing& punted_;
  SharedSwitch* shared_;
  Time now_ = 0;       // time of the turn
  uint64_t sent_ = 0;  // frames
  WireSwitch wire_;
  SoftSwitch& switch_ = wire_.device;
  IndexedHeap arrivals_;
  std::vector<uint8_t> told_storms_;  // storms that were told, by port
  std::vector<uint16_t> interfaces_;  // interfaces of the router, by twin
  size_t passes_ = 1;                 // passes of a turn, at most, unless time asks for more
};

}  // namespace weir
