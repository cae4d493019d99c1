// A SoftNic on a real port.
#pragma once

#include <vector>

#include "endpoint/soft_nic.h"
#include "engine/config.h"
#include "engine/device.h"
#include "engine/frame_ring.h"

namespace weir {

class NicDevice final : public Device {
 public:
  NicDevice(const NicDeviceConfig& config, uint16_t index, WirePort port, PacketPool& pool, FrameRing& punted, Time begin);

  void turn(Time horizon, Time now) override;
  Time next_deadline() override;
  void stop_traffic(Time now) override;
  void reset_distributions() override {}
  void sample(Time at, SpscRing<Record>& ring) override;
  void settle_counters() override { nic_.settle_counters(); }
  void register_counters(CounterBlock& block) override;
  std::vector<WirePort>& ports() override { return ports_; }
  const std::string& queue_pair_name(size_t index) const { return config_.queue_pair_names[index]; }
  SoftNic& soft_nic() { return nic_; }

 private:
  void accept(const WirePort::Arrival& arrival);

  NicDeviceConfig config_;
  uint16_t index_;
  std::vector<WirePort> ports_;  // just one
  PacketPool& pool_;
  FrameRing& punted_;
  SoftNic nic_;
};

}  // namespace weir
