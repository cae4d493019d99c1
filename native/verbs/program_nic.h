// The NIC as a program of libibverbs has it: its queue pairs and shared receive queues, and what becomes of completions and
// events. The transports themselves are driven by ProgramTransports (engine/program_transports.h). Completions wait in rings of
// their own (verbs/completion_queue.h), which polling does not need its lock for.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/program_transports.h"
#include "verbs/completion_queue.h"
#include "verbs/event_pipe.h"
#include "verbs/posted_work.h"

namespace weir {

// A shared receive queue. All with the NIC's lock.
struct ProgramSharedReceives {
  explicit ProgramSharedReceives(uint32_t depth) : queue(depth) {}

  verbs_srq base{};  // first: what libibverbs hands around
  SharedReceives queue;
  PostedReceives posted;  // receives that queue pairs hold are among them
  uint32_t most = 0;
  uint32_t most_pieces = 0;
  uint32_t domain = 0;
  uint32_t limit = 0;   // fewer than these are an event, once; 0: no event
  uint32_t users = 0;   // queue pairs
  uint32_t events = 0;  // events that the program was told
};

struct Batch;

// Base that libibverbs hands around.
struct ProgramQueuePairBase {
  verbs_qp base;
};

// One queue pair of the program.
struct ProgramQueuePair : ProgramQueuePairBase, ProgramPair {
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;
  ProgramSharedReceives* shared = nullptr;
  uint32_t domain = 0;
  bool connected = false;  // has one peer
  bool reliable = false;
  bool all_signaled = false;
  bool ends = false;  // is being destroyed: nobody hears of its work
  ibv_qp_cap cap{};
  ibv_qp_attr attributes{};
  PostedSends sends;
  PostedReceives receives;       // its own, unless they are shared
  std::shared_ptr<Batch> batch;  // batch of ibv_qp_ex
  std::vector<ibv_gid> groups;   // multicast, that it has joined
  uint32_t events = 0;           // asynchronous ones that the program was told
  bool drains = false;           // is to: ibv_modify_qp() to SQD
  bool tells = false;            // it also says when it has
  bool tells_drained = false;    // it will, once its send queue has come to rest
};

class ProgramNic final : public ProgramTransports {
 public:
  // Throws NativeError. `events`: where asynchronous events are written to.
  ProgramNic(const std::string& socket, int events);
  ~ProgramNic() override { stop(); }

  // The caller must have the lock.
  uint32_t next_domain() { return ++domains_; }
  uint32_t next_shared_number() { return ++shared_numbers_; }
  void forget(ProgramQueuePair& qp);
  void complete(const Completion& completion) override;
  // Whether there are fewer receives than the program wants to be told of.
  void look_at_limit(ProgramSharedReceives& shared);
  void report(ibv_event_type type, void* element);
  // Take events that nobody has read back; return how many.
  uint32_t withdraw(const void* element) { return events_.withdraw(reinterpret_cast<uint64_t>(element)); }
  uint32_t withdraw_completions(ibv_cq& cq);
  // False: the interface is down, or the daemon is gone.
  bool link_up() const { return !failed() && (shared_memory().links.load(std::memory_order_acquire) & 1) == 0; }
  // The largest, bytes.
  uint32_t path_mtu() const {
    const uint32_t told = shared_memory().mtu.load(std::memory_order_relaxed);
    return told != 0 ? told : hello().path_mtu;
  }
  // The program has read an event, so there may be room for others; the caller must not have the lock.
  void read_event();

 private:
  // Form in which libibverbs reads them.
  struct AsyncEvent {
    uint64_t element;
    uint32_t type;
    uint32_t reserved;
    bool operator==(const AsyncEvent&) const = default;
  };
  static_assert(sizeof(AsyncEvent) == 16);
  struct CompletionEvent {
    uint64_t element;
    bool operator==(const CompletionEvent&) const = default;
  };
  using Channel = EventPipe<CompletionEvent>;

  Channel& channel_of(const ibv_cq& cq);
  void told();  // something, for which there was no room
  void refill();
  void received(ProgramPair& pair) override;
  void attended(ProgramPair& pair) override;
  void changed(ProgramPair& pair, QueuePairState from, QueuePairState to) override;
  void ended() override { report(IBV_EVENT_DEVICE_FATAL, nullptr); }
  // A program that reads its descriptors without libibverbs tells nobody.
  void look() override {
    read_event();
    look_at_link();
    look_at_gids();
  }
  void look_at_link();
  void look_at_gids();
  // Whether its send queue has come to rest, and the program wants to be told.
  void look_at_draining(ProgramQueuePair& qp);
  // The queue pair, or its send queue alone, has failed, or was told to.
  void told_error(ProgramQueuePair& qp);
  static void purge(ProgramQueuePair& qp);

  EventPipe<AsyncEvent> events_;
  std::unordered_map<int, Channel> channels_;  // channels by their descriptors
  std::atomic<bool> events_wait_{false};       // some wait for room in one of these
  const pid_t process_ = ::getpid();
  uint32_t links_ = 0;  // changes of the link that the program has heard of; the thread's own
  uint32_t gids_ = 0;   // changes of the table of GIDs that it has heard of; as those of the link
  uint32_t domains_ = 0;
  uint32_t shared_numbers_ = 0;
};

}  // namespace weir
