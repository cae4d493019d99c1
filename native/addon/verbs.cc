// The part of the worker's handle that serves applications: memory, queue pairs, work and completions.
#include <algorithm>
#include <utility>

#include "addon/worker_handle.h"
#include "base/layout.h"

namespace weir {

NicDevice& WorkerHandle::verbs_at(double index) const {
  NicDevice& nic = nic_at(index);
  if (nic.verbs() == nullptr) throw Napi::RangeError::New(env_, "the NIC has no places for applications");
  return nic;
}

uint32_t WorkerHandle::register_memory(double nic, Memory& memory, uint8_t access, uint32_t domain) {
  const std::shared_ptr<LazyMemory>& block = memory.block();
  MemoryRegion region;
  region.data = block->data();
  region.address = reinterpret_cast<uintptr_t>(block->data());
  region.length = block->all().size();
  region.access = access;
  region.domain = domain;
  region.owner = block;
  NicDevice& at = verbs_at(nic);
  return result_of(&Worker::between_turns, [&] { return at.soft_nic().memory().add(region); });
}

void WorkerHandle::modify_queue_pair(double nic, uint32_t qpn, const QueuePairChange& change) {
  NicDevice& at = verbs_at(nic);
  native().between_turns([&] {
    at.soft_nic().modify_queue_pair(qpn, change.state, change.attributes, change.path, change.priority, change.rate_cap);
  });
}

size_t WorkerHandle::post(uint32_t nic, std::span<uint64_t> words, uint32_t count) {
  static const size_t kWords = words_of_record<WorkCommand>();
  Worker& worker = native();
  const size_t most = std::min<size_t>(count, words.size() / kWords);
  size_t taken = 0;
  for (WorkCommand command; taken < most; ++taken) {
    RecordAt record(words.data() + taken * kWords);
    describe(record, command);
    if (!worker.post(nic, command)) break;
  }
  if (taken > 0) worker.wake();
  return taken;
}

size_t WorkerHandle::drain_completions(double nic, std::span<uint64_t> words) {
  static const size_t kWords = words_of_record<Completion>();
  NicDevice& at = verbs_at(nic);
  const size_t room = words.size() / kWords;
  size_t count = 0;
  native().rearm_doorbell();
  for (Completion completion; count < room && at.verbs()->completions.pop(completion); ++count) {
    RecordAt record(words.data() + count * kWords);
    describe(record, std::as_const(completion));
  }
  return count;
}

}  // namespace weir
