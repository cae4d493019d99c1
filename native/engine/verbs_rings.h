// Between an application and the poll thread: work requests down, completions up. One thread at each end; the poll thread
// never waits. Applications post no more than their queue pairs hold, so completions always find room.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/record_ring.h"
#include "transport/work.h"

namespace weir {

struct WorkCommand {
  uint32_t qpn = 0;
  bool receive = false;  // then of `work` only id, local_address, length and local_key count
  SendWork work;
};
void describe(auto& v, Of<WorkCommand> auto& command) {
  v.type("WorkCommand", "A work request for a queue pair.");
  v.base(command.work);
  v("receive", command.receive, field::any("Then of the request only id, local_address, length and local_key count."));
  v("qpn", command.qpn, field::any("Queue pair."));
}

class VerbsRings final : public CompletionSink {
 public:
  static constexpr uint32_t kCommands = 1 << 14;
  // Work requests that all queue pairs of a NIC may hold together; the rest of the ring is for events.
  static constexpr uint32_t kMostWork = 1 << 17;

  VerbsRings() : commands(kCommands), completions(2 * kMostWork) {}
  void complete(const Completion& completion) override { completions.push(completion); }

  SpscRing<WorkCommand> commands;
  SpscRing<Completion> completions;
};

}  // namespace weir
