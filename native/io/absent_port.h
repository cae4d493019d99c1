// Stands where another worker has the port.
#pragma once

#include "io/packet_port.h"

namespace weir {

class AbsentPort final : public PacketPort {
 public:
  size_t receive(std::span<RxFrame>) override { return 0; }
  void release(size_t) override {}
  Transmitted transmit(std::span<const TxFrame> frames) override { return {frames.size()}; }
  PortLosses losses() override { return {}; }
};

}  // namespace weir
