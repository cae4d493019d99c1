// Frames sent as XDP frames that the kernel makes of packets: one system call for many, without socket buffers, rings, and
// completions ("live frames", BPF_F_TEST_XDP_LIVE_FRAMES in Documentation/bpf/bpf_prog_run.rst).
//
// The bytes of the worker's packets are a BPF map (MappedPacketBytes), which is at the same time the memory of AF_XDP sockets.
// For each frame the kernel runs a program: it takes the next descriptor, copies the packet into a page, and redirects that to
// the interface. The kernel does not return the interface's outcome, and a full ring loses frames without a word; but it
// passes a tracepoint with the outcome of each bulk of up to 16. A second program counts there; so run() knows which frames are
// gone, the rest is the caller's still, and order is kept: a batch whose predecessor was not taken whole sends nothing.
//
// The pages are of a pool that the kernel makes and gives up in each call. It is freed a second later, and not for nothing
// (io/live_port.h), where pages of it are still with the receiver of the frames; a third program, at another tracepoint, finds
// that out.
//
// A program whose frames are redirected is slow to begin (two synchronize_rcu() for each call) unless it is attached to
// something. So it is, for good, to the loopback of a network namespace that has nothing else, no name, and goes with the
// process.
//
// One thread. Needs Linux 5.18, CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON and CAP_SYS_ADMIN (of the namespace) at first, and nothing
// later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "io/network_namespace.h"
#include "io/packet_port.h"
#include "wire/packet_memory.h"

namespace weir {

// Makes the bytes of a PacketMemory of that shape. Throws NativeError: EPERM, ENOMEM, ...
std::unique_ptr<MappedBytes> map_packet_bytes(const PacketShape& shape);

class LiveTransmit {
 public:
  static constexpr uint32_t kLongest = 3'400;  // bytes: what a page has room for beside the kernel's own
  static constexpr uint32_t kMost = 512;       // frames of one run()
  static constexpr uint32_t kMostPorts = 256;

  // `memory` is mapped, and outlives it; its ids are those of run(). Throws NativeError.
  explicit LiveTransmit(const PacketMemory& memory);
  ~LiveTransmit();
  LiveTransmit(const LiveTransmit&) = delete;
  LiveTransmit& operator=(const LiveTransmit&) = delete;

  // Number of a new port, from 0. Throws NativeError.
  uint32_t add_port();
  // Frames that the port sends go to that interface of the calling thread's network namespace, until it is deleted. Throws
  // NativeError.
  void connect(uint32_t port, int interface_index);

  struct Done {
    size_t sent = 0;          // the first ones; the interface has them
    bool refused = false;     // the next one is not for want of room in the interface's ring: it takes no XDP frames
    bool left_pages = false;  // pages of the frames are still with who takes them: the kernel could not free their pool
  };
  // Sends at most kMost frames of at most kLongest bytes, each in a short packet of the memory. They are copied.
  Done run(uint32_t port, std::span<const TxFrame> frames);

 private:
  struct Control;

  void load(const PacketMemory& memory);

  const Descriptor control_map_;
  const Descriptor interfaces_;
  Control* control_ = nullptr;
  std::optional<Descriptor> program_, counter_, tracepoint_, watcher_, left_, anchor_, link_;
  uint32_t ports_ = 0;
};

}  // namespace weir
