// A thread that writes what a capture holds to a pcap file, at the latest every 10 ms.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "io/capture.h"
#include "io/pcap_file.h"

namespace weir {

class CaptureFile {
 public:
  // The thread inherits the affinity and priority of the calling one. Throws NativeError: the file cannot be written.
  CaptureFile(const std::string& path, std::shared_ptr<Capture> capture);
  ~CaptureFile() { finish(); }
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // Writes what the capture holds and joins the thread; idempotent. error() is final after it.
  void finish();

  // errno of a failed write (disk full, ...), after which the file ends; 0 if there was none.
  int error() const { return error_.load(std::memory_order_relaxed); }
  const Capture& capture() const { return *capture_; }
  const std::string& path() const { return path_; }

 private:
  void write_out();
  void drain();

  const std::string path_;
  std::shared_ptr<Capture> capture_;
  PcapWriter writer_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> error_{0};
  std::thread thread_;
};

}  // namespace weir
