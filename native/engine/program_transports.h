// The transports of a program's queue pairs on a NIC that a daemon has: run by the threads that post or poll, and by a thread of
// this library while nobody does; so a peer's requests are served while the program sleeps.
//
// Where the daemon has lent the program a path of its own (engine/lent_path.h), connections to others on the wire are driven by a
// NIC of the program's, without the daemon; those to itself, and datagrams, go by the daemon as ever.
//
// One lock is for all of them. Heirs of this class decide what becomes of completions, and what else the program is told: the
// provider of libibverbs (native/verbs/), or the verbs of TypeScript (engine/daemon_nic.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "endpoint/program_session.h"
#include "engine/lent_turns.h"
#include "engine/program_pair.h"
#include "transport/memory_table.h"
#include "transport/program_link.h"
#include "transport/verbs_transport.h"

namespace weir {

class ProgramTransports : public CompletionSink {
 public:
  using Service = RelayedTransport::Service;
  // Regions of a program's own, and those that stand for what its queues keep of work (verbs/posted_work.h): up to three for a
  // queue pair, one for a shared receive queue.
  static constexpr uint32_t kOwnRegions = 1 << 16;
  static constexpr uint32_t kSharedReceives = 1 << 13;
  static constexpr uint32_t kRegions = kOwnRegions + 3 * kProgramQueuePairs + kSharedReceives;

  // Throws NativeError. `probe`: whether registered memory is there, where others than the table dispose of it.
  // `send_queue_errors`: as TransportContext has it.
  // `direct`: it takes a path of its own, if the daemon lends one.
  explicit ProgramTransports(const std::string& socket, MemoryTable::Probe probe = nullptr, bool send_queue_errors = false,
                             bool direct = false);
  ~ProgramTransports() override;
  ProgramTransports(const ProgramTransports&) = delete;
  ProgramTransports& operator=(const ProgramTransports&) = delete;

  const ProgramAnswer& hello() const { return session_.hello(); }
  const ProgramMemory& shared_memory() const { return session_.memory(); }
  // `error` is EIO when the daemon is gone.
  ProgramAnswer ask(const ProgramRequest& request);
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // The caller of both must not have the lock. They return the errno that the daemon has answered.
  uint32_t create(ProgramPair& pair, Service service, uint32_t send_depth, uint32_t receive_depth,
                  SharedReceives* shared = nullptr);
  // `way`: of its fields those that say where the peer is, and how to get there. Throws NativeError as VerbsTransport::modify()
  // does, and then nothing has changed.
  uint32_t change(ProgramPair& pair, QueuePairState to, const QueueAttributes& attributes, ProgramRequest way);

  std::mutex& mutex() { return mutex_; }
  // The caller must have the lock.
  MemoryTable& memory() { return memory_; }
  // Its waiting packets are not sent any more, and nothing is received; the daemon does not know yet.
  void remove(ProgramPair& pair);
  // It has been given something: sends what may go.
  void attend(ProgramPair& pair);
  // Hands over what was sent to the daemon.
  void submit();

  // Somebody polls `queue`, and finds nothing: moves things along, unless another thread does so. Returns whether anything has
  // come or gone.
  bool help(const void* queue = nullptr);
  // A poller has found something, and may do other things than poll from now on: the daemon wakes the thread for frames.
  void may_leave();
  // A thread that helped polls no more, and the library's thread is at it again at once.
  void rest();
  // Waits until all that it was to send has left, or that goes by an address handle; without the lock, and not for long.
  void let_leave(const ProgramPair& pair);
  void let_leave_by(uint32_t address_handle);
  void let_all_leave();

 protected:
  // The daemon hears that the program ends.
  void hang_up() { session_.hang_up(); }
  // The thread runs between these two, which who inherits calls when it is made and before it is gone; stop() also twice.
  void start();
  void stop();
  // Null when there is none of this number. The caller must have the lock.
  ProgramPair* find(uint32_t qpn) const;
  const TransportCounters& counters() const { return counters_; }
  // What the program can see: completions, events, and packets that wrote to its memory. The caller must have the lock.
  uint64_t seen_ = 0;

 private:
  // These are told with the lock. A frame has come to the queue pair.
  virtual void received(ProgramPair&) {}
  // The packets that could be sent of it were.
  virtual void attended(ProgramPair&) {}
  // It was told to be in another state, or the daemon is gone.
  virtual void changed(ProgramPair& pair, QueuePairState from, QueuePairState to) = 0;
  // The daemon is gone; all queue pairs have been told.
  virtual void ended() = 0;
  // Called without the lock several times in a second.
  virtual void look() {}

  struct Sent {
    uint32_t qpn = 0;  // 0: nothing that has not come back
    uint32_t address_handle = 0;
    ProgramPair::Share ProgramPair::*share = nullptr;  // the share of a data packet
    Time at = 0;
    bool ends = false;  // a message that nobody acknowledges
  };

  enum class Help : uint8_t { refused, none, moved, seen };
  Help help_once();
  bool turn(Time now);
  void send(ProgramPair& pair, Time now);
  void write(ProgramPair& pair, const OutgoingPacket& out, bool data, Time now);
  ProgramPacketSlot& take_slot(ProgramPair& pair, Sent sent);
  bool withdraw(ProgramPair& pair, Time now);
  void take_returned(Time now);
  void wait_until(const std::function<bool()>& left);
  void run();
  void sleep(Time duration);
  bool nap(Time duration, bool helped);
  uint32_t slots_wanted() const;
  void fail();

  Session session_;
  std::mutex mutex_;
  MemoryTable memory_;
  TransportCounters counters_;
  const bool send_queue_errors_;
  std::unordered_map<uint32_t, ProgramPair*> pairs_;
  std::vector<ProgramPair*> dirty_;
  std::vector<ProgramPair*> attended_;
  std::vector<uint32_t> free_;
  std::array<Sent, kProgramPackets> sent_;
  uint32_t submitted_ = 0;
  uint32_t published_ = 0;
  uint32_t returned_ = 0;
  uint32_t frames_ = 0;
  uint32_t ends_ = 0;  // packets that the daemon has, and whose way back ends a message
  Time deadline_ = kNever;
  Time sleeps_until_ = 0;                        // end of the thread's sleep; read and written with the lock
  static inline std::atomic<uint32_t> open_{0};  // of the process
  std::atomic<Time> polled_{0};
  std::atomic<bool> naps_{false};
  std::atomic<bool> may_have_left_{false};  // a poller has found something, and has not polled since
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;

  std::unique_ptr<LentTurns> lent_;  // null: the daemon has lent no path
};

}  // namespace weir
