#include "io/capture.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr int kWriteIntervalMs = 10;
constexpr uint32_t kAddresses = 12;  // a tag stands behind the two MAC addresses
constexpr uint32_t kTag = 4;

uint32_t checked_ring(const CaptureOptions& options) {
  if (options.ring_bytes < 2 * (uint64_t{std::min(options.snap_length, kMaxPcapRecord)} + sizeof(PcapRecordHeader))) {
    throw NativeError("INVALID_CONFIG", 0, "", "capture ring of " + std::to_string(options.ring_bytes) + " bytes is too small",
                      "must be at least twice the snap length");
  }
  return options.ring_bytes;
}

}  // namespace

CapturePort::CapturePort(std::unique_ptr<PacketPort> inner, const CaptureOptions& options, const PortClock& clock)
    : inner_(std::move(inner)),
      clock_(clock),
      snap_length_(std::min(options.snap_length, kMaxPcapRecord)),
      ring_(checked_ring(options)),
      writer_(options.path, snap_length_),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw NativeError::from_errno("eventfd", "cannot start a capture", "");
  try {
    thread_ = std::thread([this] { write_out(); });
  } catch (const std::system_error& error) {
    ::close(wake_);
    throw NativeError("EAGAIN", error.code().value(), "clone", std::string("cannot start a capture: ") + error.what(), "");
  }
}

CapturePort::~CapturePort() {
  stopping_.store(true, std::memory_order_release);
  wake_writer();
  thread_.join();
  ::close(wake_);
}

size_t CapturePort::receive(std::span<RxFrame> frames) {
  const size_t count = inner_->receive(frames);
  for (const RxFrame& frame : frames.first(count)) {
    record(frame.stamp, frame.data, frame.length, frame.vlan_stripped ? &frame : nullptr);
  }
  return count;
}

size_t CapturePort::transmit(std::span<const TxFrame> frames) {
  const size_t count = inner_->transmit(frames);
  for (const TxFrame& frame : frames.first(count)) record(clock_.now, frame.data, frame.length, nullptr);
  return count;
}

void CapturePort::record(Time stamp, const uint8_t* data, uint32_t length, const RxFrame* stripped) {
  const bool tag = stripped != nullptr && length >= kAddresses;
  const uint32_t original = length + (tag ? kTag : 0);
  const uint32_t captured = std::min(original, snap_length_);
  const uint64_t held = filled_ - drained_.load(std::memory_order_acquire);
  if (ring_.size() - held < sizeof(PcapRecordHeader) + captured) {
    ++dropped_;
    return;
  }
  const PcapRecordHeader header = pcap_record_header(stamp - clock_.realtime_offset, captured, original);
  put(header.data(), header.size());
  if (tag) {
    const std::array<uint8_t, kTag> bytes = {
        static_cast<uint8_t>(stripped->vlan_tpid >> 8), static_cast<uint8_t>(stripped->vlan_tpid),
        static_cast<uint8_t>(stripped->vlan_tci >> 8), static_cast<uint8_t>(stripped->vlan_tci)};
    const uint32_t addresses = std::min(captured, kAddresses);
    const uint32_t tagged = std::min(captured - addresses, kTag);
    put(data, addresses);
    put(bytes.data(), tagged);
    put(data + addresses, captured - addresses - tagged);
  } else {
    put(data, captured);
  }
  published_.store(filled_, std::memory_order_release);
  // The one system call: when the ring is half full before the thread's next look at it.
  const bool half_full = held > ring_.size() / 2;
  if (half_full && !woken_) wake_writer();
  woken_ = half_full;
}

void CapturePort::put(const uint8_t* data, size_t length) {
  const size_t at = static_cast<size_t>(filled_ % ring_.size());
  const size_t first = std::min(length, ring_.size() - at);
  if (first > 0) std::memcpy(ring_.data() + at, data, first);
  if (length > first) std::memcpy(ring_.data(), data + first, length - first);
  filled_ += length;
}

void CapturePort::wake_writer() {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the thread is awake.
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

void CapturePort::write_out() {
  while (!stopping_.load(std::memory_order_acquire)) {
    pollfd wake{wake_, POLLIN, 0};
    if (::poll(&wake, 1, kWriteIntervalMs) > 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_, &count, sizeof count);
    }
    drain();
  }
  drain();
}

void CapturePort::drain() {
  const uint64_t end = published_.load(std::memory_order_acquire);
  uint64_t begin = drained_.load(std::memory_order_relaxed);
  if (begin == end) return;
  while (begin < end) {
    const size_t at = static_cast<size_t>(begin % ring_.size());
    const size_t length = static_cast<size_t>(std::min<uint64_t>(end - begin, ring_.size() - at));
    writer_.write_encoded({ring_.data() + at, length});
    begin += length;
    drained_.store(begin, std::memory_order_release);
  }
  writer_.flush();
  write_error_.store(writer_.error(), std::memory_order_relaxed);
}

}  // namespace weir
