// The NIC as a program has it: its queue pairs' transports, run by whoever posts or polls, and by a thread of the library while
// nobody does; so a peer's requests are served while the program sleeps.
//
// One lock for all transports of a context. Completions wait in rings of their own (verbs/completion_queue.h), which polling does
// not need that lock for.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transport/address_table.h"
#include "transport/memory_table.h"
#include "transport/verbs_transport.h"
#include "verbs/completion_queue.h"
#include "verbs/session.h"

namespace weir {

// What stands for the lists of several pieces, and for inline data: one piece that the transport sees.
struct Staging {
  std::unique_ptr<uint8_t[]> bytes;
  uint32_t key = 0;
  std::vector<ibv_sge> pieces;         // where it goes when the work is done; none: nowhere
  ibv_wc_opcode opcode = IBV_WC_SEND;  // of a send: what its completion says
};

// Receives that were posted and are not done with: the transport knows them by their places here.
class PostedReceives {
 public:
  size_t size() const { return entries_.size() - free_.size(); }
  uint64_t add(uint64_t id, Staging staging) {
    if (free_.empty()) {
      free_.push_back(entries_.size());
      entries_.emplace_back();
    }
    const uint64_t place = free_.back();
    free_.pop_back();
    entries_[place] = {id, std::move(staging)};
    return place;
  }
  // It is done with; what add() was given.
  std::pair<uint64_t, Staging> take(uint64_t place) {
    free_.push_back(place);
    return std::exchange(entries_[place], {});
  }
  void clear(MemoryTable& memory) {
    for (const auto& [id, staging] : entries_) {
      if (staging.key != 0) memory.remove(staging.key);
    }
    entries_.clear();
    free_.clear();
  }

 private:
  std::vector<std::pair<uint64_t, Staging>> entries_;
  std::vector<uint64_t> free_;
};

// A shared receive queue. All with the NIC's lock.
struct ProgramSharedReceives {
  explicit ProgramSharedReceives(uint32_t depth) : queue(depth) {}

  verbs_srq base{};  // first: what libibverbs hands around
  SharedReceives queue;
  PostedReceives posted;
  uint32_t most = 0;
  uint32_t most_pieces = 0;
  uint32_t domain = 0;
  uint32_t limit = 0;  // fewer than these are an event, once; 0: no event
  std::atomic<uint32_t> users{0};
  uint32_t events = 0;  // that the program was told
};

struct Batch;

// One queue pair of the program.
struct ProgramQueuePair {
  verbs_qp base;  // first: what libibverbs hands around
  std::unique_ptr<VerbsTransport> transport;
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;
  ProgramSharedReceives* shared = nullptr;
  uint32_t domain = 0;
  bool datagram = false;
  bool connected = false;  // has one peer
  bool reliable = false;
  bool all_signaled = false;
  bool ends = false;  // is being destroyed: nobody hears of its work
  ibv_qp_cap cap{};
  ibv_qp_attr attributes{};
  // Posted and not done with, in order.
  std::deque<Staging> sends;
  PostedReceives receives;       // unless they are shared
  std::shared_ptr<Batch> batch;  // of ibv_qp_ex
  std::vector<ibv_gid> groups;   // multicast, that it has joined
  uint32_t events = 0;           // asynchronous ones that the program was told
  uint32_t unsent = 0;           // packets that the daemon has, acknowledgements among them
  uint32_t submitted = 0;        // data packets that the daemon has
  uint32_t most_submitted = 64;
  bool tells_drained = false;  // once its send queue has come to rest
  bool dirty = false;          // has more to send, perhaps
};

class ProgramNic final : public CompletionSink {
 public:
  static constexpr uint32_t kRegions = 1 << 16;

  // Throws NativeError. `events`: where asynchronous events are written to.
  ProgramNic(const std::string& socket, int events);
  ~ProgramNic() override;

  Session& session() { return session_; }
  // `error` is EIO when the daemon is gone.
  ProgramAnswer ask(const ProgramRequest& request);
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  std::mutex& mutex() { return mutex_; }
  // With the lock.
  MemoryTable& memory() { return memory_; }
  uint32_t next_domain() { return ++domains_; }
  uint32_t next_shared_number() { return ++shared_numbers_; }
  TransportContext context() {
    return {.memory = memory_, .completions = *this, .counters = counters_, .send_queue_errors = true};
  }
  void add(ProgramQueuePair& qp);
  void remove(ProgramQueuePair& qp);
  // It has been given something: sends what may go.
  void attend(ProgramQueuePair& qp);
  // Hands over what was sent to the daemon.
  void submit();

  // Somebody polls and finds nothing: moves things along, unless another thread does so.
  void help();
  // Waits until all that it was to send has left, or that goes by an address handle; without the lock, and not for long.
  void let_leave(const ProgramQueuePair& qp);
  void let_leave_by(uint32_t address_handle);
  void complete(const Completion& completion) override;
  // With the lock: whether there are fewer receives than the program wants to be told of.
  void look_at_limit(ProgramSharedReceives& shared);
  // The same: whether its send queue has come to rest, and the program wants to be told.
  void look_at_draining(ProgramQueuePair& qp);
  // With the lock: the queue pair, or its send queue alone, has failed, or was told to.
  void told_error(ProgramQueuePair& qp);
  void report(ibv_event_type type, void* element);
  // With the lock. Takes events about `element` that nobody has read out of a pipe of events, of `bytes` each; returns how many.
  static uint32_t withdraw(int pipe, size_t bytes, const void* element);
  uint32_t withdraw(const void* element) const { return withdraw(events_, kEventBytes, element); }

 private:
  static constexpr size_t kEventBytes = 16;

  bool turn(Time now);
  void send(ProgramQueuePair& qp, Time now);
  void write(ProgramQueuePair& qp, const OutgoingPacket& out, bool data, Time now);
  void take_returned(Time now);
  void wait_until(const std::function<bool()>& left);
  void tell_counters();
  void run();
  void sleep(Time duration);
  uint32_t slots_wanted() const;
  void fail();

  Session session_;
  int events_;
  std::mutex mutex_;
  MemoryTable memory_;
  TransportCounters counters_;
  uint32_t domains_ = 0;
  uint32_t shared_numbers_ = 0;
  std::unordered_map<uint32_t, ProgramQueuePair*> pairs_;
  std::vector<ProgramQueuePair*> dirty_;
  std::vector<ProgramQueuePair*> attended_;
  std::vector<uint32_t> free_;
  struct Sent {
    uint32_t qpn = 0;  // 0: nothing that has not come back
    uint32_t address_handle = 0;
    bool data = false;
    Time at = 0;
  };
  Sent sent_[kProgramPackets];
  uint32_t submitted_ = 0;
  uint32_t published_ = 0;
  uint32_t returned_ = 0;
  uint32_t frames_ = 0;
  Time deadline_ = kNever;
  Time sleeps_until_ = 0;  // of the thread; with the lock
  std::atomic<Time> polled_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

Time program_now();

}  // namespace weir
