// The part of the worker's handle that serves applications: memory, queue pairs, work and completions.
#include <algorithm>

#include "addon/records.h"
#include "addon/worker_handle.h"

namespace weir {

NicDevice& WorkerHandle::verbs_at(double index) const {
  NicDevice& nic = nic_at(index);
  if (nic.verbs() == nullptr) throw Napi::RangeError::New(env_, "the NIC has no places for applications");
  return nic;
}

uint32_t WorkerHandle::register_memory(double nic, Memory& memory, uint8_t access, uint32_t domain) {
  const MemoryRegion region = memory.region(access, domain);
  NicDevice& at = verbs_at(nic);
  return result_of(&Worker::between_turns, [&] { return at.soft_nic().memory().add(region); });
}

LentDescriptors WorkerHandle::lend_path(double nic, uint32_t number) {
  NicDevice& at = verbs_at(nic);
  return result_of(&Worker::between_turns, [&] { return at.lend_path(number); });
}

void WorkerHandle::modify_queue_pair(double nic, uint32_t qpn, const QueuePairChange& change) {
  NicDevice& at = verbs_at(nic);
  native().between_turns([&] {
    at.soft_nic().applications().modify(qpn, change.state, change.attributes, change.path, change.priority, change.rate_cap);
  });
}

size_t WorkerHandle::post(uint32_t nic, std::span<uint64_t> words, uint32_t count) {
  Worker& worker = native();
  const size_t most = std::min<size_t>(count, commands_in(words));
  size_t taken = 0;
  for (WorkCommand command; taken < most; ++taken) {
    read_command(words, taken, command);
    if (!worker.post(nic, command)) break;
  }
  if (taken > 0) worker.wake();
  return taken;
}

size_t WorkerHandle::drain_completions(double nic, std::span<uint64_t> words) {
  NicDevice& at = verbs_at(nic);
  native().doorbell().rearm();
  return drain(at.verbs()->completions, words);
}

double WorkerHandle::progress(double nic, std::span<uint64_t> words) {
  NicDevice& at = verbs_at(nic);
  const bool moved = native().help();
  native().doorbell().rearm();
  return weir::progress(moved, at.verbs()->completions, words);
}

}  // namespace weir
