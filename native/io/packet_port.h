// One network interface, or something that stands in for one. Backends and the wrappers (capture, impairment) share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "wire/offload.h"

namespace weir {

// A received frame, borrowed from the port until release().
struct RxFrame {
  const uint8_t* data = nullptr;
  uint32_t length = 0;    // bytes at `data`, no FCS, without a tag that the kernel stripped
  Time stamp = 0;         // when the kernel (or the peer port) took the frame, in the worker's clock
  uint16_t vlan_tci = 0;  // the stripped 802.1Q tag, when vlan_stripped
  bool vlan_stripped = false;
  uint16_t vlan_tpid = 0;  // 0x8100 or 0x88a8, when vlan_stripped: which of the two the tag was
  Offload offload = {};    // as the host states it, unchecked; offsets are those at `data`
};

// A frame to send. Bytes belong to the caller; a port has read them when transmit() returns.
struct TxFrame {
  const uint8_t* data = nullptr;
  uint32_t length = 0;
  Offload offload = {};  // for the ports that can pass it on; others ignore it
};

// What the host, not the network, did to the frames of a port. Any loss here makes a measurement invalid.
struct PortLosses {
  uint64_t receive_overrun = 0;    // receive ring full: frames that the kernel dropped (PACKET_STATISTICS)
  uint64_t receive_truncated = 0;  // frames longer than a slot, dropped
  uint64_t transmit_errors = 0;    // frames that the kernel refused (interface down, too long, ...)
};

// What has become of a port's interface. `replaced`: the name now stands for another interface.
enum class PortState : uint8_t { up, down, gone, replaced };

// Single-threaded: all calls come from the worker that opened the port. Nothing here throws after construction;
// construction throws NativeError.
class PacketPort {
 public:
  virtual ~PacketPort() = default;
  // Fills `frames` with the oldest unseen frames, in arrival order; returns how many. A borrowed frame stays valid
  // until it is released; frames are released in the order received.
  virtual size_t receive(std::span<RxFrame> frames) = 0;
  virtual void release(size_t count) = 0;
  // Sends in order; returns how many were consumed (sent, or refused and counted in losses). Fewer than given means
  // "try the rest later".
  virtual size_t transmit(std::span<const TxFrame> frames) = 0;
  // A descriptor that polls readable when frames wait, or -1 if there is none.
  virtual int wait_descriptor() const { return -1; }
  // The earliest time at which the port itself has something to do (a delayed frame of an impairment), or kNever.
  virtual Time next_deadline() const { return kNever; }
  virtual PortLosses losses() = 0;
  // Asks the system; a few times a second is enough.
  virtual PortState state() { return PortState::up; }
  // Opens a replaced interface anew: every borrowed frame is gone. Throws NativeError, and may then be called again.
  virtual void reopen() {}
};

// Tells a port that stamps frames in CLOCK_REALTIME, and wrappers that hold frames back, what time it is. The worker
// refreshes it once per turn; ports keep a reference.
struct PortClock {
  Time now = 0;              // the worker's clock (CLOCK_MONOTONIC on the wire)
  Time realtime_offset = 0;  // add to a CLOCK_REALTIME stamp to get the worker's clock
};

}  // namespace weir
