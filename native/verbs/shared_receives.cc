// Shared receive queues.
#include <algorithm>
#include <cerrno>
#include <new>

#include "engine/virtual_turns.h"
#include "verbs/posting.h"

namespace weir {
namespace {

ProgramSharedReceives& receives_of(ibv_srq* srq) { return *reinterpret_cast<ProgramSharedReceives*>(srq); }

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  ibv_srq_attr& attributes = init->attr;
  if (attributes.max_wr > static_cast<uint32_t>(kMostWork) || attributes.max_sge > static_cast<uint32_t>(kMostPieces)) {
    return errno = EINVAL, nullptr;
  }
  attributes.max_wr = std::max(attributes.max_wr, 1u);
  attributes.max_sge = std::max(attributes.max_sge, 1u);
  auto* srq = new (std::nothrow) ProgramSharedReceives(attributes.max_wr);
  if (srq == nullptr) return errno = ENOMEM, nullptr;
  srq->most = attributes.max_wr;
  srq->most_pieces = attributes.max_sge;
  srq->domain = domain_of(pd).number;
  ProgramNic& nic = nic_of(pd->context);
  const std::lock_guard lock(nic.mutex());
  if (!srq->posted.make(nic.memory(), srq->domain, srq->most, srq->most_pieces)) {
    delete srq;
    return errno = ENOMEM, nullptr;
  }
  // libibverbs fills in the rest of it only where it is ibv_create_srq() that asks.
  ibv_srq& base = srq->base.srq;
  base.context = pd->context;
  base.srq_context = init->srq_context;
  base.pd = pd;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  ++domain_of(pd).users;
  srq->base.number = nic.next_shared_number();
  return &base;
}

ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* init) {
  const uint32_t type = (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? init->srq_type : IBV_SRQT_BASIC;
  if (type != IBV_SRQT_BASIC || (init->comp_mask & ~(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD)) != 0) {
    return errno = EOPNOTSUPP, nullptr;
  }
  if ((init->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) return errno = EINVAL, nullptr;
  ibv_srq_init_attr basic{.srq_context = init->srq_context, .attr = init->attr};
  ibv_srq* srq = create_srq(init->pd, &basic);
  init->attr = basic.attr;
  return srq;
}

int destroy_srq(ibv_srq* base) {
  ProgramSharedReceives& srq = receives_of(base);
  ProgramNic& nic = nic_of(base->context);
  {
    const std::lock_guard lock(nic.mutex());
    if (srq.users > 0) return EBUSY;
    srq.posted.release(nic.memory());
    srq.events -= nic.withdraw(base);
  }
  pthread_mutex_lock(&base->mutex);
  while (base->events_completed != srq.events) pthread_cond_wait(&base->cond, &base->mutex);
  pthread_mutex_unlock(&base->mutex);
  --domain_of(base->pd).users;
  delete &srq;
  return 0;
}

int modify_srq(ibv_srq* base, ibv_srq_attr* attributes, int mask) {
  ProgramSharedReceives& srq = receives_of(base);
  ProgramNic& nic = nic_of(base->context);
  const std::lock_guard lock(nic.mutex());
  const bool resizes = (mask & IBV_SRQ_MAX_WR) != 0;
  const uint32_t most = resizes ? attributes->max_wr : srq.most;
  if (most < std::max(srq.queue.size(), 1u) || most > static_cast<uint32_t>(kMostWork)) return EINVAL;
  if ((mask & IBV_SRQ_LIMIT) != 0 && attributes->srq_limit > most) return EINVAL;
  if (resizes) {
    SharedReceives queue(most);
    while (!srq.queue.empty()) queue.push(srq.queue.pop());
    srq.posted.grow(most + srq.users);
    srq.queue = std::move(queue);
    srq.most = most;
  }
  if ((mask & IBV_SRQ_LIMIT) != 0) srq.limit = attributes->srq_limit;
  nic.look_at_limit(srq);
  return 0;
}

int query_srq(ibv_srq* base, ibv_srq_attr* out) {
  ProgramSharedReceives& srq = receives_of(base);
  const std::lock_guard lock(nic_of(base->context).mutex());
  *out = {.max_wr = srq.most, .max_sge = srq.most_pieces, .srq_limit = srq.limit};
  return 0;
}

int get_srq_num(ibv_srq* base, uint32_t* number) {
  *number = receives_of(base).base.number;
  return 0;
}

int post_srq_recv(ibv_srq* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const AnsweredCall call(true);
  ProgramSharedReceives& srq = receives_of(base);
  ProgramNic& nic = nic_of(base->context);
  const std::lock_guard lock(nic.mutex());
  for (; wr != nullptr; wr = wr->next) {
    ReceiveWork work;
    const int error = srq.queue.full() ? ENOMEM : take_receive(srq.posted, srq.most_pieces, *wr, work);
    if (error != 0) return *bad = wr, error;
    srq.queue.push(work);
  }
  return 0;
}

}  // namespace

void add_shared_receive_operations(verbs_context_ops& operations) {
  operations.create_srq = create_srq;
  operations.create_srq_ex = create_srq_ex;
  operations.destroy_srq = destroy_srq;
  operations.get_srq_num = get_srq_num;
  operations.modify_srq = modify_srq;
  operations.post_srq_recv = post_srq_recv;
  operations.query_srq = query_srq;
}

}  // namespace weir
