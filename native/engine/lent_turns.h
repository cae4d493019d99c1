// How a program's own NIC is turned: by who posts and polls, and by a thread of this library while nobody does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "endpoint/program_session.h"
#include "engine/lent_nic.h"
#include "engine/program_pair.h"

namespace weir {

class LentTurns {
 public:
  // What it needs of the program's transports. `mutex` is for all of them, and for the NIC; all of this outlives it.
  struct Host {
    std::mutex& mutex;
    const Session& session;
    const TransportCounters& counters;
    std::function<void(ProgramPair&)> attended;  // told with the lock, of queue pairs that are watched
  };
  // Takes both descriptors. Throws NativeError.
  LentTurns(Session::Path path, Host host) : host_(std::move(host)), nic_(path.config, path.socket) {}

  void start();
  void stop();

  // Without the lock. Takes over its transport, unless its place does not become free: false.
  bool adopt(ProgramPair& pair);

  // The caller of these must have the lock. Throws as VerbsTransport::modify(). In reset the queue pair has its transport again.
  void modify(ProgramPair& pair, QueuePairState to, const QueueAttributes& attributes, const ProgramAnswer& way);
  void give_back(ProgramPair& pair);
  void attend(ProgramPair& pair) { nic_.attend(pair.qpn); }
  // Sends what was attended to, or leaves it to who polls.
  void submit();
  // Returns whether frames have come or gone.
  bool turn();
  // All answers of the queue pair have left.
  bool has_left(const ProgramPair& pair) { return !pair.transport->control_waits() && nic_.sent_all(); }

  // Any thread: somebody polls at that time, finds something, or polls no more. Who has asked for an event may find something and
  // wait for the next one: it is none who polls until it has found nothing.
  void poll(Time now) {
    polled_.store(now, std::memory_order_relaxed);
    found_.store(false, std::memory_order_relaxed);
  }
  void find(Time now) {
    if (polled_.load(std::memory_order_relaxed) != 0) polled_.store(now, std::memory_order_relaxed);
    found_.store(true, std::memory_order_relaxed);
  }
  void rest() {
    if (polled_.exchange(0, std::memory_order_seq_cst) != 0 && naps_.load(std::memory_order_seq_cst)) nic_.ring();
  }
  // Without the lock, several times in a second: the daemon's NIC may be another now.
  void look();

 private:
  void run();
  bool nap(Time duration);
  void tell_expected(const ProgramPair& pair, bool whether) const;

  Host host_;
  LentNic nic_;
  std::vector<ProgramPair*> pairs_;
  Time sleeps_until_ = 0;  // end of the thread's sleep; read and written with the lock
  Time submitted_ = 0;     // when something was posted last, or the end of the turn that it made
  Time told_ = 0;
  uint32_t paths_ = 0;              // ProgramMemory::paths, as it was last heard of
  std::atomic<Time> polled_{1};     // 0: since an event was asked for, nobody has; long ago at first
  std::atomic<Time> turned_{0};     // when the last turn was
  std::atomic<bool> naps_{false};   // the thread leaves all to who polls, for a moment
  std::atomic<bool> found_{false};  // who polls has found something, and not come back
  // The thread's own.
  bool eager_ = true;    // frames end its naps
  uint32_t wasted_ = 0;  // naps that frames ended in a row, with nothing left to do
  Time eager_at_ = 0;    // then they may end naps again
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weir
