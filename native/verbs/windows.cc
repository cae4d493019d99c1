// Memory windows of type 1, and of type 2B: keys for a part of a region, that come and go with work requests (IBTA volume 1,
// 10.6.7). They change when the work is posted; its completion comes in its turn.
#include <cerrno>
#include <new>

#include "verbs/posting.h"

namespace weir {
namespace {

ProviderWindow& window_of(ibv_mw* mw) { return *reinterpret_cast<ProviderWindow*>(mw); }

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return errno = EINVAL, nullptr;
  auto* window = new (std::nothrow) ProviderWindow{};
  if (window == nullptr) return errno = ENOMEM, nullptr;
  MemoryRegion nothing;
  nothing.domain = domain_of(pd).number;
  ProgramNic& nic = nic_of(pd->context);
  {
    const std::lock_guard lock(nic.mutex());
    window->base.rkey = nic.memory().add(nothing);
  }
  if (window->base.rkey == 0) {
    delete window;
    return errno = ENOMEM, nullptr;
  }
  window->base.context = pd->context;
  window->base.pd = pd;
  window->base.type = type;
  ++domain_of(pd).users;
  return &window->base;
}

void release(ProviderWindow& window) {
  if (window.region != nullptr) std::erase(window.region->windows, &window);
  window.region = nullptr;
}

int dealloc_mw(ibv_mw* mw) {
  ProviderWindow& window = window_of(mw);
  ProgramNic& nic = nic_of(mw->context);
  {
    const std::lock_guard lock(nic.mutex());
    nic.memory().remove(mw->rkey);
    release(window);
  }
  --domain_of(mw->pd).users;
  delete &window;
  return 0;
}

// The next key of a window: only its lowest byte changes.
uint32_t key_after(uint32_t key) { return (key & ~0xffu) | ((key + 1) & 0xff); }

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  ibv_send_wr wr{};
  wr.wr_id = bind->wr_id;
  wr.send_flags = bind->send_flags;
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = key_after(mw->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ProgramNic& nic = nic_of(qp->context);
  const std::lock_guard lock(nic.mutex());
  if (!takes_work(pair_of(qp))) return EINVAL;
  // Others may have the key: there are 255 more.
  int error = post_one(nic, pair_of(qp), wr);
  for (int tries = 1; error == EEXIST && tries < 255; ++tries) {
    wr.bind_mw.rkey = key_after(wr.bind_mw.rkey);
    error = post_one(nic, pair_of(qp), wr);
  }
  return error;
}

}  // namespace

int bind_window(ProgramNic& nic, ProgramQueuePair& qp, ibv_mw* mw, uint32_t key, const ibv_mw_bind_info& info) {
  if (mw == nullptr || domain_of(mw->pd).number != qp.domain) return EINVAL;
  ProviderWindow& window = window_of(mw);
  const bool second = mw->type == IBV_MW_TYPE_2;
  if (((mw->rkey ^ key) & ~0xffu) != 0) return EINVAL;
  MemoryRegion region;
  region.domain = qp.domain;
  if (info.length > 0) {
    if (info.mr == nullptr) return EINVAL;
    auto& memory = *reinterpret_cast<ProviderRegion*>(info.mr);
    const auto access = static_cast<int>(info.mw_access_flags);
    constexpr int kRemote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if ((access & ~(kRemote | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED)) != 0 ||
        (memory.base.access & IBV_ACCESS_MW_BIND) == 0)
      return EINVAL;
    const bool writes = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
    if (writes && (memory.base.access & IBV_ACCESS_LOCAL_WRITE) == 0) return EINVAL;
    region.data = nic.memory().find(info.mr->lkey, qp.domain, info.addr, info.length, 0);
    if (region.data == nullptr) return EINVAL;
    region.address = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : info.addr;
    region.length = info.length;
    region.access = static_cast<uint8_t>((access & kRemote) | (second ? kRemoteInvalidate : 0));
    if (second) region.qpn = qp.base.qp.qp_num;
  }
  if (key != mw->rkey && !nic.memory().rename(mw->rkey, key)) return EEXIST;
  nic.memory().replace(key, region);
  mw->rkey = key;
  release(window);
  if (info.length > 0) {
    window.region = reinterpret_cast<ProviderRegion*>(info.mr);
    window.region->windows.push_back(&window);
    window.bound = region;
  }
  return 0;
}

bool has_windows(ProgramNic& nic, ProviderRegion& region) {
  std::erase_if(region.windows, [&](ProviderWindow* window) {
    const MemoryRegion& bound = window->bound;
    if (nic.memory().find(window->base.rkey, bound.domain, bound.address, 1, 0, bound.qpn) != nullptr) return false;
    window->region = nullptr;
    return true;
  });
  return !region.windows.empty();
}

int invalidate_locally(ProgramNic& nic, const ProgramQueuePair& qp, uint32_t key) {
  return nic.memory().invalidate(key, qp.domain) ? 0 : EINVAL;
}

void add_window_operations(verbs_context_ops& operations) {
  operations.alloc_mw = alloc_mw;
  operations.bind_mw = bind_mw;
  operations.dealloc_mw = dealloc_mw;
}

}  // namespace weir
