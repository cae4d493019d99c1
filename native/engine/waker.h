// Ends the idle sleep of a worker's thread, from any thread.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>

#include "base/native_error.h"

namespace weir {

class Waker {
 public:
  // Throws NativeError.
  Waker() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (event_ < 0)
      throw NativeError::from_errno("eventfd", "cannot create a wake-up descriptor", "raise the limit on open files");
  }
  ~Waker() { ::close(event_); }
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // Whether the thread sleeps or not: its next sleep ends at once.
  void ring() { ::eventfd_write(event_, 1); }
  // Must be called after something was put where the thread looks before it sleeps: costs a system call only if it sleeps.
  void wake() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_relaxed)) ring();
  }

  // The thread itself: about to sleep, after which it must look once more; polls readable once rung; awake, and whether that was
  // so.
  void doze() {
    sleeping_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  int descriptor() const { return event_; }
  void rise(bool rung) {
    sleeping_.store(false, std::memory_order_relaxed);
    eventfd_t ignored;
    if (rung) ::eventfd_read(event_, &ignored);
  }

 private:
  int event_;
  std::atomic<bool> sleeping_{false};
};

}  // namespace weir
