// Wraps a port and records what passes, in both directions, to a pcap file that tcpdump and Wireshark read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/packet_port.h"
#include "io/pcap_file.h"

namespace weir {

struct CaptureOptions {
  std::string path;
  uint32_t snap_length = kMaxPcapRecord;  // bytes of each frame to keep, a tag that the kernel stripped included
  uint32_t ring_bytes = 8 << 20;          // memory between the worker and the thread that writes the file
};

// The worker only copies bytes into the ring; a thread of the capture's own writes them out, at the latest every 10 ms.
// A frame for which the ring has no room passes all the same, but is missing in the file and counted.
// Received frames carry their own stamp, transmitted ones PortClock::now, both as CLOCK_REALTIME: the records are in
// the order in which the worker handled them, not always in that of their stamps.
class CapturePort final : public PacketPort {
 public:
  // The writing thread inherits the affinity and priority of the calling one. Throws NativeError: the file cannot be
  // written, or INVALID_CONFIG if ring_bytes cannot hold two of the longest records (snap_length + 16).
  CapturePort(std::unique_ptr<PacketPort> inner, const CaptureOptions& options, const PortClock& clock);
  // Writes what the ring holds and joins the thread.
  ~CapturePort() override;
  CapturePort(const CapturePort&) = delete;
  CapturePort& operator=(const CapturePort&) = delete;

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t count) override { inner_->release(count); }
  size_t transmit(std::span<const TxFrame> frames) override;
  bool keeps_packets() const override { return inner_->keeps_packets(); }
  int wait_descriptor() const override { return inner_->wait_descriptor(); }
  Time next_deadline() const override { return inner_->next_deadline(); }
  PortLosses losses() override { return inner_->losses(); }
  PortState state() override { return inner_->state(); }
  uint32_t mtu() override { return inner_->mtu(); }
  void reopen() override { inner_->reopen(); }

  // Frames that are missing in the file because the ring was full.
  uint64_t capture_dropped() const { return dropped_; }
  // errno of a failed write (disk full, ...), after which the file ends; 0 if there was none.
  int write_error() const { return write_error_.load(std::memory_order_relaxed); }

 private:
  void record(Time stamp, const uint8_t* data, uint32_t length, const RxFrame* stripped);
  void put(const uint8_t* data, size_t length);
  void wake_writer();
  void write_out();
  void drain();

  std::unique_ptr<PacketPort> inner_;
  const PortClock& clock_;
  const uint32_t snap_length_;
  std::vector<uint8_t> ring_;
  PcapWriter writer_;
  uint64_t filled_ = 0;  // worker: bytes ever put, the current record included
  uint64_t dropped_ = 0;
  bool woken_ = false;
  alignas(64) std::atomic<uint64_t> published_{0};  // bytes of whole records; written by the worker
  alignas(64) std::atomic<uint64_t> drained_{0};    // written by the thread
  std::atomic<bool> stopping_{false};
  std::atomic<int> write_error_{0};
  int wake_ = -1;  // eventfd
  std::thread thread_;
};

}  // namespace weir
