// What the parts of the provider have in common: the context, and the objects that libibverbs hands around.
#pragma once

#include <memory>

#include "verbs/abi.h"
#include "verbs/program_nic.h"

namespace weir {

struct ProviderContext {
  verbs_context base;  // first: libibverbs makes it
  ProgramNic* nic;

  static ProviderContext& of(ibv_context* context) {
    return *reinterpret_cast<ProviderContext*>(reinterpret_cast<char*>(context) - offsetof(verbs_context, context));
  }
};

struct ProviderDomain {
  ibv_pd base;
  uint32_t number;
};

struct ProviderRegion {
  verbs_mr base;
  MemoryRegion region;
};

struct ProviderAddress {
  ibv_ah base;
  uint32_t handle;
};

inline ProgramNic& nic_of(ibv_context* context) { return *ProviderContext::of(context).nic; }

inline constexpr uint32_t kMostQueuePairs = 1024;
inline constexpr int kMostWork = 32'768;  // of one queue
inline constexpr int kMostPieces = 32;    // of one work request
inline constexpr uint32_t kMostInline = 1024;
inline constexpr int kMostCompletions = 4 << 20;

// Adds the operations of queues: queue pairs, completion queues, work.
void add_queue_operations(verbs_context_ops& operations);

}  // namespace weir
