// A program's connection to the daemon of its NIC: requests and answers, and the memory that both share.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "base/types.h"
#include "endpoint/program_protocol.h"
#include "transport/counters.h"
#include "transport/program_rings.h"

namespace weir {

class Session {
 public:
  // Throws NativeError: nobody listens at the socket, it may not be opened, or the daemon is of another version.
  // `direct`: it asks for a path of its own.
  explicit Session(const std::string& path, bool direct = false);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Any thread. The answer's `error` is EIO when the daemon is gone.
  ProgramAnswer ask(const ProgramRequest& request);
  // Whether the daemon has closed the connection.
  bool ended() const;
  // Closes it from here: who waits for an answer gets EIO.
  void hang_up() const;
  // Must be called after something was submitted.
  void wake_nic() const;
  // The program's counters; the daemon's are of the NIC and of all its programs.
  void tell_counters(const TransportCounters& counters) const;
  // Any thread: wakes the program's thread.
  void ring_thread() const;
  // That thread sleeps, unless it has been rung since it read this in ProgramMemory::bell.
  void wait_for_bell(uint32_t bell, Time duration) const;
  // Has the bell rung for frames from now on, and for nothing else; returns whether some have come already.
  bool ask_for_frames() const;
  ProgramMemory& memory() const { return *memory_; }
  const ProgramAnswer& hello() const { return hello_; }
  // Descriptors of the path that the daemon has lent (engine/lent_path.h), which are the caller's from then on; below 0: none.
  struct Path {
    int config = -1;
    int socket = -1;
  };
  Path take_path() { return std::exchange(path_, {}); }

 private:
  bool receive(ProgramAnswer& answer, int* descriptors, size_t count) const;
  void release();

  int socket_ = -1;
  int wake_ = -1;
  Path path_;
  ProgramMemory* memory_ = nullptr;
  ProgramAnswer hello_;
  std::mutex mutex_;
};

}  // namespace weir
