// Copies of the frames that pass a program's own path, in memory that it shares with the daemon, whose captures take them.
// Nothing is copied while nobody captures; a frame for which there is no room passes all the same, and is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "io/packet_port.h"

namespace weir {

struct MirrorMemory {
  static constexpr uint64_t kBytes = 8 << 20;

  std::atomic<uint32_t> wanted;               // the daemon captures
  alignas(64) std::atomic<uint64_t> written;  // bytes so far; the program's
  std::atomic<uint64_t> lost;                 // frames
  alignas(64) std::atomic<uint64_t> read;     // the daemon's
  alignas(64) uint8_t bytes[kBytes];
};

// The program's end: around its port.
class MirrorPort final : public PortWrapper {
 public:
  // Both outlive it.
  MirrorPort(std::unique_ptr<PacketPort> inner, MirrorMemory& memory, const PortClock& clock)
      : PortWrapper(std::move(inner)), memory_(memory), clock_(clock) {}

  size_t receive(std::span<RxFrame> frames) override;
  Transmitted transmit(std::span<const TxFrame> frames) override;

 private:
  bool wanted() const { return memory_.wanted.load(std::memory_order_relaxed) != 0; }
  void put(const RxFrame& frame, bool outgoing);
  void put(const void* data, size_t length);

  MirrorMemory& memory_;
  const PortClock& clock_;
  uint64_t filled_ = 0;
};

// The daemon's end, which believes nothing that it reads.
class MirrorReader {
 public:
  explicit MirrorReader(MirrorMemory& memory) : memory_(memory) {}
  // Hands on what there is to captures of the port, and has the program copy as long as there are any.
  void drain(PacketPort& port);

 private:
  void copy_out(uint64_t from, void* to, size_t length) const;

  MirrorMemory& memory_;
  uint64_t taken_ = 0;
  uint64_t lost_ = 0;
  std::unique_ptr<uint8_t[]> frame_;  // made by the first capture
};

}  // namespace weir
