// Copies frames that pass a port, in both directions, into a ring that another thread reads.
//
//   Capture      the ring, and counts of the frames; shared by the worker that writes and the one thread that reads
//   CapturePort  the wrapper of one port, which records to a Capture as one of its taps
//
// A CapturePort may be put around a port while that is in use, between two calls of it, and taken away again: a port that
// nobody captures is not touched. To record, a worker copies bytes: no lock, no allocation, no system call. A frame for which the
// ring has no room passes all the same, and is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/packet_port.h"
#include "wire/captured_frame.h"

namespace weir {

// Kinds of frames: bits of CaptureOptions::kinds. A frame is taken that is of one of them.
inline constexpr uint8_t kCaptureRoce = 1 << 0;   // RoCEv2, CNPs left out
inline constexpr uint8_t kCaptureCnp = 1 << 1;    //
inline constexpr uint8_t kCapturePfc = 1 << 2;    // PFC and PAUSE
inline constexpr uint8_t kCaptureCnm = 1 << 3;    //
inline constexpr uint8_t kCaptureOther = 1 << 4;  //
inline constexpr uint8_t kCaptureCe = 1 << 5;     // any IP packet with a congestion mark
inline constexpr uint8_t kCaptureAll = (1 << 6) - 1;

struct CaptureOptions {
  uint32_t snap_length = kLongestCapture;  // bytes of each frame to keep, a tag that the kernel stripped included
  uint32_t ring_bytes = 8 << 20;           // memory between the worker and the reader, a multiple of 8
  uint8_t kinds = kCaptureAll;
};

class Capture {
 public:
  // Counts of the frames of one tap so far. Any thread.
  struct Counts {
    uint64_t seen = 0;
    uint64_t captured = 0;
    uint64_t dropped = 0;  // wanted, but the ring was full
  };

  // Throws NativeError INVALID_CONFIG if ring_bytes cannot hold two of the longest records.
  Capture(const CaptureOptions& options, size_t taps);

  size_t taps() const { return counts_.size(); }
  Counts counts(size_t tap) const;

  // The reader: moves as many whole records, the oldest first, as `out` has room for; returns how many bytes.
  size_t drain(std::span<uint8_t> out);
  // Room for any record.
  size_t longest_record() const { return CapturedFrame{.captured = options_.snap_length}.length(); }

 private:
  friend class CapturePort;
  struct AtomicCounts {
    std::atomic<uint64_t> seen{0};
    std::atomic<uint64_t> wanted{0};
    std::atomic<uint64_t> dropped{0};
  };

  void record(CapturedFrame frame, const uint8_t* data, uint32_t length, const RxFrame* stripped, const Offload& offload);
  uint64_t held_now();
  void put(const void* data, size_t length);
  void copy_out(uint64_t from, std::span<uint8_t> to) const;

  const CaptureOptions options_;
  std::vector<uint8_t> ring_;
  std::vector<AtomicCounts> counts_;
  uint64_t filled_ = 0;                             // worker: bytes ever put, the current record included
  uint64_t taken_ = 0;                              // worker: drained_ at its last look
  alignas(64) std::atomic<uint64_t> published_{0};  // bytes of whole records; written by the worker
  alignas(64) std::atomic<uint64_t> drained_{0};    // written by the reader
};

// Received frames carry their own stamp, transmitted ones PortClock::now, both as CLOCK_REALTIME: the records are in the order in
// which the worker handled them, not always in that of their stamps.
class CapturePort final : public PortWrapper {
 public:
  // `inner` may come later, by insert().
  CapturePort(std::unique_ptr<PacketPort> inner, std::shared_ptr<Capture> capture, uint32_t tap, const PortClock& clock)
      : PortWrapper(std::move(inner)), capture_(std::move(capture)), tap_(tap), clock_(clock) {}

  size_t receive(std::span<RxFrame> frames) override;
  Transmitted transmit(std::span<const TxFrame> frames) override;

  bool witnesses() const override { return true; }
  void witness(const RxFrame& frame, bool outgoing) override;
  void miss(uint64_t frames) override;

  const Capture& capture() const { return *capture_; }

 private:
  // Records the packets in a super-frame of RoCEv2.
  void record(const CapturedFrame& captured, const uint8_t* data, uint32_t length, const RxFrame* stripped, Offload offload);

  std::shared_ptr<Capture> capture_;
  const uint32_t tap_;
  const PortClock& clock_;
  std::vector<uint8_t> packet_;
};

// Puts `capture` around the innermost of a chain of ports, where it sees what the wire does. Frames that are lent stay so.
void insert(std::unique_ptr<PacketPort>& outermost, std::unique_ptr<CapturePort> capture);
// Takes it out of the chain again; null if it is not there.
std::unique_ptr<PacketPort> remove(std::unique_ptr<PacketPort>& outermost, const CapturePort* capture);

}  // namespace weir
