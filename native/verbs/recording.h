// What a program asks of its queue pairs and is told of them, as a file: `weir record` makes a message graph of it. With
// WEIR_RECORD in its environment, a folder, each process has a file there; without it nothing is done.
//
// The file is memory that is shared with the kernel: an event costs no system call, and those of a program that is killed are
// there as well.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "verbs/abi.h"

namespace weir {

// An event as it is in the file, little-endian. Of all zeros: there are no more.
struct RecordedEvent {
  enum class Kind : uint8_t { none, process, connects, address, posts, completes, waits };

  uint64_t at = 0;  // CLOCK_MONOTONIC, ns
  Kind kind = Kind::none;
  uint8_t opcode = 0;  // ibv_wr_opcode of posts, ibv_wc_opcode of completes
  uint8_t status = 0;  // ibv_wc_status
  uint8_t reserved = 0;
  uint32_t queue_pair = 0;
  uint32_t bytes = 0;    // of posts and of what was received; of process, its id
  uint32_t other = 0;    // connects: the peer's queue pair
  uint8_t gid[16] = {};  // connects: the peer's; address, which follows: its own
};
static_assert(sizeof(RecordedEvent) == 40);

class Recording {
 public:
  // The process's; null: nothing is recorded.
  static Recording* of_process() { return current_.load(std::memory_order_acquire); }

  void connects(ibv_context& context, uint32_t queue_pair, const ibv_qp_attr& attributes);
  void posts(uint32_t queue_pair, uint8_t opcode, uint32_t bytes);
  void completes(const ibv_wc& wc);
  // The program looks for completions and finds none, or waits for one.
  void waits();

 private:
  static Recording* begin();
  explicit Recording(int file) : file_(file) {}
  void write(RecordedEvent event);
  bool grow();

  static std::atomic<Recording*> current_;

  int file_;
  std::mutex mutex_;
  RecordedEvent* events_ = nullptr;
  size_t next_ = 0;  // place in what is mapped
  size_t room_ = 0;
  uint64_t mapped_ = 0;  // bytes of the file, before what is mapped
  std::atomic<bool> waits_{false};
};

}  // namespace weir
