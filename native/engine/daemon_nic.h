// A NIC that a daemon has, as an application of this process uses it: work down and completions up, as with a NIC of its own
// (engine/verbs_rings.h). The application is one thread; the transports are driven by it when it posts, else by a thread of
// theirs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "endpoint/queue_pair_table.h"
#include "engine/program_transports.h"
#include "engine/verbs_rings.h"

namespace weir {

// Way to a peer: the daemon finds out the rest.
struct ProgramWay {
  std::array<uint8_t, 16> gid{};
  uint32_t source_index = 0;
  uint32_t traffic_class = 0;
  uint32_t service_level = 0;
};
void describe(auto& v, Of<ProgramWay> auto& way) {
  v.type("ProgramWay", "How to get to a peer by a NIC that a daemon has.");
  v("gid", way.gid, field::any("The peer's; IPv4 as ::ffff:a.b.c.d."));
  v("source_index", way.source_index, field::any("Of the table of GIDs."));
  v("traffic_class", way.traffic_class, field::any("DSCP and ECN; 0: the NIC's default."));
  v("service_level", way.service_level, field::any("Priority, where the traffic class says nothing."));
}

struct ProgramChange {
  QueuePairState state{};
  QueueAttributes attributes;
  ProgramWay way;
};
void describe(auto& v, Of<ProgramChange> auto& change) {
  v.type("ProgramChange", "What a queue pair on a daemon's NIC is given with a change of state.");
  v("state", change.state, field::any("To come."));
  v.base(change.attributes);
  v("way", change.way, field::any("To the peer."));
}

class DaemonNic final : public ProgramTransports {
 public:
  // Throws NativeError. `doorbell` is called, by any thread, once when completions have come until rearm(), and when the daemon
  // is gone.
  DaemonNic(const std::string& socket, std::function<void()> doorbell);
  ~DaemonNic() override { stop(); }

  // The daemon is gone, and all completions that this leads to are there.
  bool over() const { return over_.load(std::memory_order_acquire); }
  // The key; 0: no place left.
  uint32_t register_memory(const MemoryRegion& region);
  bool deregister_memory(uint32_t key);
  // The functions that ask the daemon throw NativeError for what it refuses, NO_DAEMON when it is gone.
  uint32_t create_queue_pair(const VerbsQueuePairParameters& parameters);
  void modify_queue_pair(uint32_t qpn, const ProgramChange& change);
  // False when there is none of this number.
  bool destroy_queue_pair(uint32_t qpn);
  // Any thread: it may take as long as the peer is looked for.
  ProgramAnswer create_address_handle(const ProgramWay& way);
  void destroy_address_handle(uint32_t handle);
  // Posts all at once; `next(command)` fills in one and is false when there is none.
  void post(const std::function<bool(WorkCommand&)>& next);
  SpscRing<Completion>& completions() { return completions_; }
  // Must precede the reading of completions: those that come from now on ring again.
  void rearm() { announced_.store(false, std::memory_order_seq_cst); }
  TransportCounters counted();
  // Its packets have left, its queue pairs are destroyed, the daemon hears that it ends, and the doorbell rings no more. Only
  // completions that wait are of use afterwards.
  void close();

  void complete(const Completion& completion) override;

 private:
  void changed(ProgramPair& pair, QueuePairState from, QueuePairState to) override;
  void ended() override;
  ProgramAnswer answer_to(const ProgramRequest& request);

  std::function<void()> doorbell_;
  SpscRing<Completion> completions_{WorkBudget::kCompletions};
  WorkBudget budget_;
  std::unordered_map<uint32_t, std::unique_ptr<ProgramPair>> owned_;
  std::atomic<bool> announced_{false};
  std::atomic<bool> over_{false};
  std::atomic<uint32_t> asking_{0};  // other threads that ask
};

}  // namespace weir
