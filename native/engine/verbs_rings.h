// Rings between an application and the poll thread: work requests down, completions up. One thread at each end; the poll thread
// never waits. Applications post no more than their queue pairs hold, so completions always find room.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "base/native_error.h"
#include "engine/record_ring.h"
#include "transport/work.h"

namespace weir {

struct WorkCommand {
  uint32_t qpn = 0;
  bool receive = false;  // then of `work` only id, local_address, length and local_key count
  uint32_t times = 1;    // so many that are all the same
  SendWork work;
};
void describe(auto& v, Of<WorkCommand> auto& command) {
  v.type("WorkCommand", "A work request for a queue pair.");
  v.base(command.work);
  v("receive", command.receive, field::any("Then of the request only id, local_address, length and local_key count."));
  v("qpn", command.qpn, field::any("Queue pair."));
  v("times", command.times, field::any("So many that are all the same."));
}

// Completions as applications read them: so many in a row that are all the same.
struct CompletionRun {
  Completion completion;
  uint32_t times = 1;
};
void describe(auto& v, Of<CompletionRun> auto& run) {
  v.type("CompletionRun", "What became of work requests.");
  v.base(run.completion);
  v("times", run.times, field::any("So many in a row that are all the same."));
}

// Budget of work that the queue pairs of an application's NIC may hold together: so much finds room in a ring of completions.
class WorkBudget {
 public:
  static constexpr uint32_t kMost = 1 << 17;
  // Places of such a ring; what is not for work is for events.
  static constexpr uint32_t kCompletions = 2 * kMost;

  // Throws NativeError NO_RESOURCES unless a queue pair with such queues fits in.
  void require(uint64_t send_depth, uint64_t receive_depth) const {
    if (send_depth + receive_depth <= kMost - total_) return;
    throw NativeError("NO_RESOURCES", 0, "", "the queue pairs of this device hold too many work requests together",
                      "131072 at most: make queues less deep, or destroy queue pairs");
  }
  void take(uint32_t qpn, uint32_t send_depth, uint32_t receive_depth) { total_ += depths_[qpn] = send_depth + receive_depth; }
  void give_back(uint32_t qpn) {
    total_ -= depths_[qpn];
    depths_.erase(qpn);
  }

 private:
  std::map<uint32_t, uint32_t> depths_;
  uint32_t total_ = 0;
};

class VerbsRings final : public CompletionSink {
 public:
  static constexpr uint32_t kCommands = 1 << 14;

  VerbsRings() : commands(kCommands), completions(WorkBudget::kCompletions) {}
  void complete(const Completion& completion) override { completions.push(completion); }

  SpscRing<WorkCommand> commands;
  SpscRing<Completion> completions;
};

}  // namespace weir
