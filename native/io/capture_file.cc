#include "io/capture_file.h"

#include <poll.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr int kWriteIntervalMs = 10;

}  // namespace

CaptureFile::CaptureFile(const std::string& path, std::shared_ptr<Capture> capture)
    : path_(path), capture_(std::move(capture)), writer_(path, capture_->snap_length()) {
  capture_->wake_when_half_full();
  try {
    thread_ = std::thread([this] { write_out(); });
  } catch (const std::system_error& error) {
    throw NativeError("EAGAIN", error.code().value(), "clone", std::string("cannot start a capture: ") + error.what(), "");
  }
}

void CaptureFile::finish() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  capture_->wake();
  thread_.join();
}

void CaptureFile::write_out() {
  while (!stopping_.load(std::memory_order_acquire)) {
    pollfd wake{capture_->descriptor(), POLLIN, 0};
    if (::poll(&wake, 1, kWriteIntervalMs) > 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake.fd, &count, sizeof count);
    }
    drain();
  }
  drain();
}

void CaptureFile::drain() {
  Capture::Waiting waiting;
  if (!capture_->peek(waiting)) return;
  do {
    const CapturedFrame& frame = waiting.frame;
    writer_.write_encoded(pcap_record_header(frame.stamp, frame.captured, frame.original));
    for (const std::span<const uint8_t> piece : waiting.bytes) writer_.write_encoded(piece);
    capture_->take(waiting);
  } while (capture_->peek(waiting));
  writer_.flush();
  error_.store(writer_.error(), std::memory_order_relaxed);
}

}  // namespace weir
