// Two ports joined by memory, for tests and for devices of one process: what one end transmits the other receives.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "io/packet_port.h"

namespace weir {

struct MemoryPortOptions {
  uint32_t slots = 256;        // frames in flight each way
  uint32_t slot_bytes = 2048;  // a longer frame is refused and counted in transmit_errors
};

// Each direction is a single-producer single-consumer ring: the two ends may live on two threads. A full ring makes
// transmit() take fewer frames. Frames are stamped with the sender's PortClock::now; an in-band VLAN tag stays in band.
class MemoryPort final : public PacketPort {
 public:
  struct Ring;

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override;
  Transmitted transmit(std::span<const TxFrame> frames) override;
  PortLosses losses() override { return losses_; }

 private:
  friend std::pair<std::unique_ptr<MemoryPort>, std::unique_ptr<MemoryPort>> make_memory_pair(const MemoryPortOptions&,
                                                                                              const PortClock&, const PortClock&);
  MemoryPort(std::shared_ptr<Ring> in, std::shared_ptr<Ring> out, const PortClock& clock)
      : in_(std::move(in)), out_(std::move(out)), clock_(clock) {}

  std::shared_ptr<Ring> in_;
  std::shared_ptr<Ring> out_;
  const PortClock& clock_;
  uint64_t read_ = 0;  // frames received so far; those from Ring::taken to here are lent
  PortLosses losses_;
};

// Either end may go first; the other then receives what was left, and its transmit() fills the ring.
// Throws NativeError INVALID_CONFIG if a size is 0.
std::pair<std::unique_ptr<MemoryPort>, std::unique_ptr<MemoryPort>> make_memory_pair(const MemoryPortOptions& options,
                                                                                     const PortClock& first,
                                                                                     const PortClock& second);

}  // namespace weir
