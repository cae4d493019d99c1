// A path of its own that a NIC's daemon lends to a program: a block of queue pair numbers, a packet socket by which their packets
// come and go, and what the daemon's NIC is like. The program has a NIC of its own on it (engine/lent_nic.h). What it sends is
// looked at by nobody, so it is for programs that the daemon's owner trusts.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/describe.h"
#include "engine/config.h"
#include "engine/lent_mirror.h"
#include "io/packet_port.h"

namespace weir {

// What the program's NIC is made of.
struct LentNicConfig {
  NicDeviceConfig nic;
  uint32_t packet_bytes = 2048;
};
void describe(auto& v, Of<LentNicConfig> auto& config) {
  v.type("LentNicConfig", "The NIC of a program that has a path of its own.");
  v("nic", config.nic, field::any("As the daemon's, without its streams and neighbours."));
  v("packet_bytes", config.packet_bytes, field::within(kTelemetryStride, 1 << 20, "Longest frame.", "bytes"));
}

// Memory that both share.
struct LentMemory {
  static constexpr uint32_t kConfigBytes = 1 << 20;

  uint64_t length;               // of ...
  uint8_t config[kConfigBytes];  // ... a LentNicConfig (base/struct_bytes.h)
  MirrorMemory mirror;
};

struct UnmapLentMemory {
  void operator()(LentMemory* memory) const;
};
using MappedLentMemory = std::unique_ptr<LentMemory, UnmapLentMemory>;

// The daemon's end of it.
class LentPath {
 public:
  // `port` outlives it. Nothing if it lends no socket. Throws NativeError.
  static std::unique_ptr<LentPath> lend(PacketPort& port, int block, const LentNicConfig& config);
  ~LentPath();
  LentPath(const LentPath&) = delete;
  LentPath& operator=(const LentPath&) = delete;

  // The daemon's NIC is another now.
  void rewrite(const LentNicConfig& config) const;
  int block() const { return block_; }
  // Hands captures of the port what has passed.
  void witness() { mirror_->drain(port_); }
  // These stay its own.
  int socket() const { return socket_; }
  int config() const { return config_; }

 private:
  LentPath(PacketPort& port, int block) : port_(port), block_(block) {}

  PacketPort& port_;
  int block_;
  int socket_ = -1;
  int config_ = -1;  // a memfd: LentMemory
  MappedLentMemory memory_;
  std::optional<MirrorReader> mirror_;
};

// Reads what the daemon has written there. Throws NativeError MALFORMED, also while it is being written.
LentNicConfig read_lent_config(const LentMemory& memory);
// The descriptor is not needed any more afterwards. Throws NativeError.
MappedLentMemory map_lent_memory(int descriptor);

// Descriptors for a program.
struct LentDescriptors {
  int block = -1;  // -1: none is lent
  int config = -1;
  int socket = -1;
};
void describe(auto& v, Of<LentDescriptors> auto& lent) {
  v.type("LentPath", "A path of its own for a program. The descriptors end with closeProgram().");
  v("block", lent.block, field::any("Block of queue pair numbers; -1: the NIC has no path to lend."));
  v("config", lent.config, field::any("Descriptor of what the daemon's NIC is like."));
  v("socket", lent.socket, field::any("Descriptor of a packet socket."));
}

}  // namespace weir
