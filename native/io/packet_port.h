// One network interface, or something that stands in for one. Backends and the wrappers (capture, impairment) share it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/types.h"
#include "wire/packet.h"

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
  uint8_t failure = 0;     // PacketMeta::failure
  Rate slowed = 0;         // Packet::slowed
  // The port notes here the packet of the worker's pool in whose place the frame lies; null when the bytes are the port's own.
  PacketId* packet = nullptr;
};

// Keeps the packet of a frame that has one: the caller owns it from now on. The frame still counts in release().
inline PacketId take(const RxFrame& frame) { return std::exchange(*frame.packet, kNoPacket); }

// A frame to send.
struct TxFrame {
  const uint8_t* data = nullptr;
  uint32_t length = 0;
  Offload offload = {};         // for the ports that can pass it on; others ignore it
  PacketId packet = kNoPacket;  // the packet that the bytes are in; needed by ports that keep packets
};

// Outcome for the frames that a port was given, from the first one on. Those behind are to be tried again later.
struct Transmitted {
  size_t sent = 0;       // the host has them
  bool refused = false;  // it will never take the next one, which is counted in losses
};

// Most bytes of one port's frames that the host may hold unsent, in its own count: the send buffer of a packet socket, and what
// was given to an AF_XDP socket that copies. A frame more may go over it. The bytes there are in nobody's shared buffer.
inline constexpr uint32_t kHostRoom = 256 * 1024;

// When to try again what the host has not taken for so long: soon at first, then ever less often, for each attempt is a system
// call that the other ports wait for.
constexpr Time retry_delay(Time refused_for) { return std::clamp<Time>(refused_for / 8, 20 * kMicrosecond, kMillisecond); }

// Damage that the host, not the network, did to the frames of a port. Any loss here makes a measurement invalid.
struct PortLosses {
  uint64_t receive_overrun = 0;    // receive ring full: frames that the kernel dropped (PACKET_STATISTICS)
  uint64_t receive_truncated = 0;  // frames longer than a slot, dropped
  uint64_t transmit_errors = 0;    // frames that the kernel refused (interface down, too long, ...)
  uint64_t transmit_dropped = 0;   // frames that transmit() has sent, and that the kernel threw away then
  // No losses:
  uint64_t stamps_corrected = 0;       // received frames whose stamp could not be right (io/stamps.h)
  uint64_t super_frames_sent = 0;      // super-frames that transmit() made of several frames
  uint64_t super_frames_received = 0;  // those of RoCEv2 or anything else
  uint64_t transmit_live = 0;          // frames sent as live frames (io/live_port.h)
  // On purpose (link/faults.h):
  uint64_t faults_dropped = 0;
  uint64_t faults_duplicated = 0;
  uint64_t faults_changed = 0;  // flipped a bit, marked, trimmed, refused
  uint64_t faults_delayed = 0;
};

// State of a port's interface. `replaced`: the name now stands for another interface.
enum class PortState : uint8_t { up, down, gone, replaced };

// Properties of a port that its drivers have to know.
struct PortCapabilities {
  // The packets of frames that transmit() has sent are the port's, which frees them when the kernel has done with them, and in no
  // call before the next. If not, they are the caller's still, and their bytes have been read.
  bool keeps_packets = false;
  // RxFrame::offload tells of checksums that senders left to their interface. If not, they have to be looked for.
  bool tells_checksums = true;
  // So many frames at a time are worth a wait for them, as long as more can be read at once. Not always the same.
  size_t batch = 1;
  // transmit() makes super-frames of packets of one queue pair that come one behind the other.
  bool joins = false;
};

// AF_XDP sockets of a port. The frames of a zero-copy one are in our memory from the adapter on, or until it has read them.
struct PortQueues {
  uint32_t receive = 0;  // receive queues of which the driver tells, each with a socket
  bool receive_zero_copy = false;
  bool transmit_zero_copy = false;
  bool operator==(const PortQueues&) const = default;
};

// A receive half, a transmit half, and the interface behind them. Nothing comes in by a half that a port does not have, and
// frames that go out there are gone. Single-threaded: all calls come from the worker that opened the port. Nothing here throws
// after construction; construction throws NativeError.
class PacketPort {
 public:
  virtual ~PacketPort() = default;
  virtual PortCapabilities capabilities() const { return {}; }

  // Fills `frames` with the oldest unseen frames, in arrival order; returns how many. A borrowed frame stays valid
  // until it is released; frames are released in the order received.
  virtual size_t receive(std::span<RxFrame>) { return 0; }
  virtual void release(size_t) {}
  // A descriptor that polls readable when frames wait, or -1 if there is none.
  virtual int wait_descriptor() const { return -1; }

  // Sends in order.
  virtual Transmitted transmit(std::span<const TxFrame> frames) { return {frames.size()}; }

  // The earliest time at which the port itself has something to do (a delayed frame of an impairment), or kNever.
  virtual Time next_deadline() const { return kNever; }
  virtual PortLosses losses() { return {}; }
  // Whether the host holds nothing of what transmit() took, so that what leaves by another way comes behind it (a system call,
  // with some ports).
  virtual bool passed_on() { return true; }
  // Whether frames leave by another way than the one asked for, because the interface does not take them so.
  virtual bool falls_back() const { return false; }

  // Asks the system; a few times a second is enough.
  virtual PortState state() { return PortState::up; }
  // As of the last state().
  virtual PortQueues queues() const { return {}; }
  // When it is known to change next, or kNever.
  virtual Time next_state_change() const { return kNever; }
  // The interface's longest IP packet now, asked of the system; 0: not known.
  virtual uint32_t mtu() { return 0; }
  // Frames to all multicast addresses come in from now on, and after a reopen(). A port may take them anyway.
  virtual void take_groups() {}
  // Whether the kernel's end of its cable is told that there is another.
  virtual void set_carrier(bool) {}
  // Queue pair numbers whose bits from kLentBlockShift on say a block of `blocks`, by bit: their RoCEv2 packets come by a socket
  // of its own from now on, as MAC control frames do as well, and here no more, until they are taken back. Another process may
  // send and receive by it (PortOptions::lent_socket). Returns its descriptor, which is the caller's; -1: this port has none to
  // lend. Throws NativeError.
  virtual int lend(uint16_t /*blocks*/) { return -1; }
  virtual void take_back(uint16_t /*blocks*/) {}
  // Opens a replaced interface anew: every borrowed frame is gone. Throws NativeError, and may then be called again.
  virtual void reopen() {}

  // Whether somebody records what passes, and a frame that has passed the interface by another socket (lend()), for that one.
  virtual bool witnesses() const { return false; }
  virtual void witness(const RxFrame& /*frame*/, bool /*outgoing*/) {}
  // So many more have passed there, and are lost to who records.
  virtual void miss(uint64_t /*frames*/) {}
  // Returns where a wrapper holds the port that it wraps.
  virtual std::unique_ptr<PacketPort>* inner() { return nullptr; }
};

// Does what the port does that it wraps, but for what is overridden.
class PortWrapper : public PacketPort {
 public:
  explicit PortWrapper(std::unique_ptr<PacketPort> inner) : inner_(std::move(inner)) {}
  PortCapabilities capabilities() const override { return inner_->capabilities(); }
  size_t receive(std::span<RxFrame> frames) override { return inner_->receive(frames); }
  void release(size_t count) override { inner_->release(count); }
  int wait_descriptor() const override { return inner_->wait_descriptor(); }
  Transmitted transmit(std::span<const TxFrame> frames) override { return inner_->transmit(frames); }
  Time next_deadline() const override { return inner_->next_deadline(); }
  bool passed_on() override { return inner_->passed_on(); }
  PortLosses losses() override { return inner_->losses(); }
  bool falls_back() const override { return inner_->falls_back(); }
  PortState state() override { return inner_->state(); }
  PortQueues queues() const override { return inner_->queues(); }
  Time next_state_change() const override { return inner_->next_state_change(); }
  uint32_t mtu() override { return inner_->mtu(); }
  void take_groups() override { inner_->take_groups(); }
  void reopen() override { inner_->reopen(); }
  int lend(uint16_t blocks) override { return inner_->lend(blocks); }
  bool witnesses() const override { return inner_->witnesses(); }
  void witness(const RxFrame& frame, bool outgoing) override { inner_->witness(frame, outgoing); }
  void miss(uint64_t frames) override { inner_->miss(frames); }
  void take_back(uint16_t blocks) override { inner_->take_back(blocks); }
  std::unique_ptr<PacketPort>* inner() override { return &inner_; }

 protected:
  std::unique_ptr<PacketPort> inner_;
};

// Tells a port that stamps frames in CLOCK_REALTIME, and wrappers that hold frames back, what time it is. The worker
// refreshes it once per turn; ports keep a reference.
struct PortClock {
  Time now = 0;              // the worker's clock (CLOCK_MONOTONIC on the wire)
  Time realtime_offset = 0;  // add to a CLOCK_REALTIME stamp to get the worker's clock
  Time (*read)() = nullptr;  // reads the worker's clock this very moment; null: `now`
};

}  // namespace weir
