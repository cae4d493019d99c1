// Common ground of the provider's parts: the context, and the objects that libibverbs hands around.
#pragma once

#include <atomic>
#include <memory>

#include "verbs/abi.h"
#include "verbs/operations_abi.h"
#include "verbs/program_nic.h"

namespace weir {

// libibverbs makes it, with a verbs_context of its own size in it: that of later versions is larger.
struct ProviderContext {
  static constexpr size_t kRoom = 4'096;

  ProgramNic* nic;
  alignas(16) char base[kRoom];

  verbs_context* verbs() { return reinterpret_cast<verbs_context*>(base); }
  // <infiniband/verbs.h> promises this: the size of the whole is right before its last member.
  static ProviderContext& of(ibv_context* context) {
    const size_t size = reinterpret_cast<const size_t*>(context)[-1];
    char* const start = reinterpret_cast<char*>(context) + sizeof(ibv_context) - size;
    return *reinterpret_cast<ProviderContext*>(start - offsetof(ProviderContext, base));
  }
};

struct ProviderDomain {
  ibv_pd base;
  uint32_t number;
  std::atomic<uint32_t> users;  // all that is made with it
  ProviderDomain* parent;       // the domain that a parent domain stands for
  struct ProviderThreads* threads;
};
struct ProviderThreads {
  ibv_td base;
  std::atomic<uint32_t> users;
};

struct ProviderRegion;
struct ProviderWindow {
  ibv_mw base;
  ProviderRegion* region;  // region that it was bound to, with the NIC's lock
  MemoryRegion bound;      // the binding
};
struct ProviderRegion {
  verbs_mr base;
  MemoryRegion region;
  std::vector<ProviderWindow*> windows;  // to be used with the NIC's lock
};
// Returns, with the NIC's lock, whether a window stands for a part of the region: one that was invalidated does no more.
bool has_windows(ProgramNic& nic, ProviderRegion& region);

struct ProviderAddress {
  ibv_ah base;
  uint32_t handle;
};

inline ProgramNic& nic_of(ibv_context* context) { return *ProviderContext::of(context).nic; }
inline ProviderDomain& domain_of(ibv_pd* pd) { return *reinterpret_cast<ProviderDomain*>(pd); }
inline CompletionQueue& queue_of(ibv_cq* cq) { return *reinterpret_cast<CompletionQueue*>(cq); }
// Looks for completions where there are none. Whoever has asked for an event looks once more, and then waits for it.
inline void look(ProgramNic& nic, const CompletionQueue& queue) {
  nic.help(&queue);
  const bool asked = queue.base.cq.channel != nullptr && queue.armed.load(std::memory_order_relaxed) != CompletionQueue::kNone;
  if (queue.empty() && asked) nic.rest();
}
inline ProgramQueuePair& pair_of(ibv_qp* qp) {
  return static_cast<ProgramQueuePair&>(*reinterpret_cast<ProgramQueuePairBase*>(qp));
}

inline constexpr int kMostWork = 32'768;  // most work of one queue
inline constexpr int kMostPieces = 32;    // most pieces of one work request
inline constexpr uint32_t kMostInline = 1024;
inline constexpr int kMostCompletions = 4 << 20;
inline constexpr uint32_t kClockKilohertz = 1'000'000;  // clock of completions' timestamps: the host's monotonic clock, in ns

// Adds the operations of a subject.
void add_domain_operations(verbs_context_ops& operations);
void add_multicast_operations(verbs_context_ops& operations);
void add_memory_operations(verbs_context_ops& operations);
void add_window_operations(verbs_context_ops& operations);
void add_queue_operations(verbs_context_ops& operations);
void add_posting_operations(verbs_context_ops& operations);
void add_extended_queue_operations(verbs_context_ops& operations);
void add_shared_receive_operations(verbs_context_ops& operations);

// errno; 0: a region or window may have these.
int refused_access(int access);

}  // namespace weir
