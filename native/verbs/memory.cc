// Memory regions.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "verbs/provider.h"

namespace weir {
namespace {

// A NIC would refuse to pin memory that is not there, or may not be read, or not be written to where it is to write; without this
// its thread would find out, when a peer has sent something. If the system hides mappings, it does.
bool may_be_pinned(uintptr_t address, size_t bytes, bool to_write) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (maps == nullptr) return true;
  uintptr_t at = address;
  const uintptr_t end = address + bytes;
  // The lines are in the order of addresses: "55d0c8a00000-55d0c8a02000 r--p ...".
  for (char line[512]; at < end && std::fgets(line, sizeof line, maps.get()) != nullptr;) {
    uintptr_t first;
    uintptr_t last;
    char may[5];
    const bool whole = std::strchr(line, '\n') != nullptr;
    if (std::sscanf(line, "%lx-%lx %4s", &first, &last, may) == 3 && last > at) {
      if (first > at || may[0] != 'r' || (to_write && may[1] != 'w')) return false;
      at = last;
    }
    // The rest of a long name.
    for (bool ends = whole; !ends && std::fgets(line, sizeof line, maps.get()) != nullptr;)
      ends = std::strchr(line, '\n') != nullptr;
  }
  return at >= end;
}

constexpr int kRemoteWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | kRemoteWrites;
// Linux pins memory to write to it with any of these.
constexpr int kWrites = IBV_ACCESS_LOCAL_WRITE | kRemoteWrites | IBV_ACCESS_MW_BIND;
// Binding windows to it needs no right of the table's.
constexpr int kAccess = kRights | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;

// errno; 0: it may be registered.
int refused_memory(const void* address, size_t bytes, int access) {
  const auto first = reinterpret_cast<uintptr_t>(address);
  if (first + bytes < first) return EINVAL;
  return may_be_pinned(first, bytes, (access & kWrites) != 0) ? 0 : EFAULT;
}

uint64_t base_of(void* address, uint64_t own_address, int access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 && own_address == reinterpret_cast<uintptr_t>(address) ? 0 : own_address;
}

ibv_mr* add_region(ibv_pd* pd, const MemoryRegion& region, int access) {
  auto* out = new (std::nothrow) ProviderRegion{};
  if (out == nullptr) return errno = ENOMEM, nullptr;
  out->region = region;
  out->region.domain = domain_of(pd).number;
  ibv_mr& mr = out->base.mr;
  ProgramNic& nic = nic_of(pd->context);
  {
    const std::lock_guard lock(nic.mutex());
    mr.lkey = mr.rkey = nic.memory().add(out->region);
  }
  if (mr.lkey == 0) {
    delete out;
    return errno = ENOMEM, nullptr;
  }
  out->base.type = VERBS_MR_TYPE_MR;
  out->base.access = access;
  ++domain_of(pd).users;
  return &mr;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t bytes, uint64_t own_address, int access) {
  if (const int error = refused_access(access); error != 0) return errno = error, nullptr;
  if (const int error = refused_memory(address, bytes, access); error != 0) return errno = error, nullptr;
  MemoryRegion region;
  region.data = static_cast<uint8_t*>(address);
  region.address = base_of(address, own_address, access);
  region.length = bytes;
  region.access = static_cast<uint8_t>(access & kRights);
  return add_region(pd, region, access);
}

// Reads of it are zero, and writes to it go nowhere.
ibv_mr* alloc_null_mr(ibv_pd* pd) {
  alignas(64) static uint8_t zero[4'096];
  alignas(64) static uint8_t sink[4'096];
  MemoryRegion region;
  region.data = zero;
  region.length = UINT64_MAX;
  region.access = kLocalWrite;
  region.scratch = true;
  region.sink = sink;
  ibv_mr* mr = add_region(pd, region, IBV_ACCESS_LOCAL_WRITE);
  if (mr != nullptr) {
    mr->context = pd->context;
    mr->pd = pd;
    mr->length = SIZE_MAX;
  }
  return mr;
}

// It keeps its keys.
int rereg_mr(verbs_mr* mr, int changes, ibv_pd* pd, void* address, size_t bytes, int access) {
  auto& own = *reinterpret_cast<ProviderRegion*>(mr);
  MemoryRegion region = own.region;
  if ((changes & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
    if (const int error = refused_access(access); error != 0) return error;
    region.access = static_cast<uint8_t>(access & kRights);
  }
  if ((changes & IBV_REREG_MR_CHANGE_PD) != 0) region.domain = domain_of(pd).number;
  if ((changes & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    region.data = static_cast<uint8_t*>(address);
    region.address = reinterpret_cast<uintptr_t>(address);
    region.length = bytes;
  }
  constexpr int kMoves = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
  if ((changes & kMoves) != 0 && !region.scratch) {
    const int rights = (changes & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? access : mr->access;
    if (const int error = refused_memory(region.data, region.length, rights); error != 0) return error;
  }
  ProgramNic& nic = nic_of(mr->mr.context);
  const std::lock_guard lock(nic.mutex());
  if (has_windows(nic, own)) return EBUSY;
  nic.memory().replace(mr->mr.lkey, region);
  own.region = region;
  if ((changes & IBV_REREG_MR_CHANGE_ACCESS) != 0) mr->access = access;
  if ((changes & IBV_REREG_MR_CHANGE_PD) != 0) {
    ++domain_of(pd).users;
    --domain_of(mr->mr.pd).users;  // libibverbs names the new one when this is done
  }
  return 0;
}

int dereg_mr(verbs_mr* mr) {
  auto* own = reinterpret_cast<ProviderRegion*>(mr);
  ProgramNic& nic = nic_of(mr->mr.context);
  {
    const std::lock_guard lock(nic.mutex());
    if (has_windows(nic, *own)) return EBUSY;
    nic.memory().remove(mr->mr.lkey);
  }
  --domain_of(mr->mr.pd).users;
  delete own;
  return 0;
}

// All that is registered is there already.
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice, uint32_t flags, ibv_sge* pieces, uint32_t count) {
  if ((flags & ~static_cast<uint32_t>(IBV_ADVISE_MR_FLAG_FLUSH)) != 0 || count == 0) return EINVAL;
  ProgramNic& nic = nic_of(pd->context);
  const std::lock_guard lock(nic.mutex());
  const bool known = std::all_of(pieces, pieces + count, [&](const ibv_sge& piece) {
    return nic.memory().find(piece.lkey, domain_of(pd).number, piece.addr, piece.length, 0) != nullptr;
  });
  return known ? 0 : EFAULT;
}

}  // namespace

int refused_access(int access) {
  if ((access & ~(kAccess | IBV_ACCESS_OPTIONAL_RANGE)) != 0) return EOPNOTSUPP;
  return (access & kRemoteWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

void add_memory_operations(verbs_context_ops& operations) {
  operations.advise_mr = advise_mr;
  operations.alloc_null_mr = alloc_null_mr;
  operations.dereg_mr = dereg_mr;
  operations.reg_mr = reg_mr;
  operations.rereg_mr = rereg_mr;
}

}  // namespace weir
