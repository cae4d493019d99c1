// Protection domains, and those that stand for others; address handles.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "verbs/provider.h"

namespace weir {
namespace {

ibv_pd* alloc_pd(ibv_context* context) {
  auto* domain = new (std::nothrow) ProviderDomain{};
  if (domain == nullptr) return errno = ENOMEM, nullptr;
  ProgramNic& nic = nic_of(context);
  const std::lock_guard lock(nic.mutex());
  domain->number = nic.next_domain();
  return &domain->base;
}

// Objects made with it belong to the domain that it stands for. Its thread domain makes promises that the provider does not need.
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* init) {
  if (init->pd == nullptr) return errno = EINVAL, nullptr;
  // Allocators of the program are for memory that a NIC shares with it, and there is none.
  constexpr uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if ((init->comp_mask & ~kKnown) != 0) return errno = EINVAL, nullptr;
  auto* domain = new (std::nothrow) ProviderDomain{};
  if (domain == nullptr) return errno = ENOMEM, nullptr;
  domain->base.context = context;
  domain->parent = &domain_of(init->pd);
  domain->number = domain->parent->number;
  domain->threads = reinterpret_cast<ProviderThreads*>(init->td);
  ++domain->parent->users;
  if (domain->threads != nullptr) ++domain->threads->users;
  return &domain->base;
}

int dealloc_pd(ibv_pd* pd) {
  ProviderDomain& domain = domain_of(pd);
  if (domain.users > 0) return EBUSY;
  if (domain.parent != nullptr) --domain.parent->users;
  if (domain.threads != nullptr) --domain.threads->users;
  delete &domain;
  return 0;
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* init) {
  if (init->comp_mask != 0) return errno = EINVAL, nullptr;
  auto* threads = new (std::nothrow) ProviderThreads{};
  if (threads == nullptr) return errno = ENOMEM, nullptr;
  threads->base.context = context;
  return &threads->base;
}

int dealloc_td(ibv_td* td) {
  auto* threads = reinterpret_cast<ProviderThreads*>(td);
  if (threads->users > 0) return EBUSY;
  delete threads;
  return 0;
}

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  // An address without a global route has a LID alone, and the only one here is our own, 0: librdmacm's datagram sockets need it.
  const bool is_own = attributes->is_global == 0 && attributes->dlid == 0;
  if ((attributes->is_global == 0 && !is_own) || attributes->port_num != 1) return errno = EINVAL, nullptr;
  ProgramRequest request;
  request.kind = ProgramRequest::kCreateAddressHandle;
  if (!is_own) std::memcpy(request.gid.data(), attributes->grh.dgid.raw, request.gid.size());
  request.traffic_class = attributes->grh.traffic_class;
  request.hop_limit = attributes->grh.hop_limit;
  request.source_index = attributes->grh.sgid_index;
  request.service_level = attributes->sl;
  const ProgramAnswer answer = nic_of(pd->context).ask(request);
  if (answer.error != 0) return errno = static_cast<int>(answer.error), nullptr;
  auto* ah = static_cast<ProviderAddress*>(std::calloc(1, sizeof(ProviderAddress)));
  if (ah == nullptr) return nullptr;
  ah->handle = answer.object;
  ++domain_of(pd).users;
  return &ah->base;
}

int destroy_ah(ibv_ah* ah) {
  ProgramRequest request;
  request.kind = ProgramRequest::kDestroyAddressHandle;
  request.object = reinterpret_cast<ProviderAddress*>(ah)->handle;
  // Datagrams are complete when the daemon has them, which does not send them without it.
  nic_of(ah->context).let_leave_by(request.object);
  nic_of(ah->context).ask(request);
  --domain_of(ah->pd).users;
  std::free(ah);
  return 0;
}

}  // namespace

void add_domain_operations(verbs_context_ops& operations) {
  operations.alloc_parent_domain = alloc_parent_domain;
  operations.alloc_pd = alloc_pd;
  operations.alloc_td = alloc_td;
  operations.create_ah = create_ah;
  operations.dealloc_pd = dealloc_pd;
  operations.dealloc_td = dealloc_td;
  operations.destroy_ah = destroy_ah;
}

}  // namespace weir
