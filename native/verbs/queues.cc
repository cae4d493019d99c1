// Completion queues and queue pairs.
#include <endian.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/native_error.h"
#include "verbs/posting.h"
#include "verbs/recording.h"

namespace weir {
namespace {

// ---- completion queues ----

ibv_cq* create_cq(ibv_context*, int entries, ibv_comp_channel*, int vector) {
  if (entries < 1 || entries > kMostCompletions || vector != 0) return errno = EINVAL, nullptr;
  auto* queue = new (std::nothrow) CompletionQueue{};
  if (queue == nullptr) return errno = ENOMEM, nullptr;
  queue->ring.resize(std::bit_ceil(static_cast<uint32_t>(entries)));
  queue->base.cq.cqe = static_cast<int>(queue->ring.size());
  return &queue->base.cq;
}

int destroy_cq(ibv_cq* cq) {
  CompletionQueue& queue = queue_of(cq);
  if (queue.users.load() > 0) return EBUSY;
  // The program has to acknowledge events that it has taken; others are taken back.
  {
    ProgramNic& nic = nic_of(cq->context);
    const std::lock_guard lock(nic.mutex());
    queue.events -= nic.withdraw_completions(*cq);
    queue.async_events -= nic.withdraw(cq);
  }
  pthread_mutex_lock(&cq->mutex);
  while (cq->comp_events_completed != queue.events || cq->async_events_completed != queue.async_events) {
    pthread_cond_wait(&cq->cond, &cq->mutex);
  }
  pthread_mutex_unlock(&cq->mutex);
  if (queue.domain != nullptr) --*queue.domain;
  delete &queue;
  return 0;
}

// Waiting completions stay; fewer places than these are refused. Hardware has sent by now what was just posted, and has completed
// it.
int resize_cq(ibv_cq* cq, int entries) {
  CompletionQueue& queue = queue_of(cq);
  if (entries < 1 || entries > kMostCompletions) return EINVAL;
  ProgramNic& nic = nic_of(cq->context);
  if (entries < cq->cqe) nic.let_all_leave();
  const std::lock_guard lock(nic.mutex());
  const std::lock_guard readers(queue.readers);
  const uint32_t read = queue.read.load();
  const uint32_t waiting = queue.written.load() - read;
  if (waiting > static_cast<uint32_t>(entries)) return EINVAL;
  std::vector<ibv_wc> ring(std::bit_ceil(static_cast<uint32_t>(entries)));
  std::vector<CompletionQueue::Stamp> stamps(queue.stamps.empty() ? 0 : ring.size());
  for (uint32_t i = 0; i < waiting; ++i) {
    ring[i] = queue.ring[(read + i) % queue.ring.size()];
    if (!stamps.empty()) stamps[i] = queue.stamps[(read + i) % queue.ring.size()];
  }
  queue.ring.swap(ring);
  queue.stamps.swap(stamps);
  queue.read.store(0);
  queue.written.store(waiting);
  cq->cqe = static_cast<int>(queue.ring.size());
  return 0;
}

void waits() {
  if (Recording* recording = Recording::of_process(); recording != nullptr) [[unlikely]]
    recording->waits();
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* wc) {
  const AnsweredCall call(false);
  CompletionQueue& queue = queue_of(cq);
  if (queue.empty()) {
    look(nic_of(cq->context), queue);
    if (queue.empty()) return waits(), 0;
  }
  const int found = queue.poll(most, wc);
  if (Recording* recording = Recording::of_process(); recording != nullptr) [[unlikely]]
    for (int i = 0; i < found; ++i) recording->completes(wc[i]);
  nic_of(cq->context).may_leave();
  return found;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  const AnsweredCall call(true);
  queue_of(cq).armed.store(solicited_only != 0 ? CompletionQueue::kSolicited : CompletionQueue::kAny);
  waits();
  nic_of(cq->context).rest();  // a program that asks for an event is about to wait for it
  return 0;
}

void cq_event(ibv_cq* cq) { nic_of(cq->context).read_event(); }
void async_event(ibv_context* context, ibv_async_event*) { nic_of(context).read_event(); }

// ---- queue pairs ----

// Whether its send queue may come to that, or come back from there (IBTA volume 1, 10.3.1); SQE only comes of an error.
bool may_drain(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_SQE) return false;
  if (to == IBV_QPS_SQD) return from == IBV_QPS_RTS || from == IBV_QPS_SQD;
  return true;
}

QueuePairState state_of(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return QueuePairState::reset;
    case IBV_QPS_INIT:
      return QueuePairState::init;
    case IBV_QPS_RTR:
      return QueuePairState::rtr;
    case IBV_QPS_RTS:
    case IBV_QPS_SQD:
    case IBV_QPS_SQE:
      return QueuePairState::rts;
    default:
      return QueuePairState::error;
  }
}

// Makes room for work in its queues; a shared receive queue gets room for what the queue pair holds. False: there is none.
bool make_room(ProgramNic& nic, ProgramQueuePair& qp, ProgramSharedReceives* shared) {
  const std::lock_guard lock(nic.mutex());
  try {
    if (!qp.sends.make(nic.memory(), qp.domain, qp.cap)) return false;
    if (shared == nullptr) return qp.receives.make(nic.memory(), qp.domain, qp.cap.max_recv_wr, qp.cap.max_recv_sge);
    shared->posted.grow(shared->most + shared->users + 1);
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++shared->users;
  qp.shared = shared;
  return true;
}

// The caller must have the NIC's lock.
void release(ProgramNic& nic, ProgramQueuePair& qp) {
  qp.sends.release(nic.memory());
  qp.receives.release(nic.memory());
  if (qp.shared != nullptr) --qp.shared->users;
}

// Serves ibv_create_qp() as well as ibv_create_qp_ex(); the latter's fields are null and zero with the former.
ibv_qp* make_qp(ibv_pd* pd, ibv_qp_init_attr_ex* init) {
  const bool datagram = init->qp_type == IBV_QPT_UD;
  const bool unreliable = init->qp_type == IBV_QPT_UC;
  if (!datagram && !unreliable && init->qp_type != IBV_QPT_RC) return errno = EOPNOTSUPP, nullptr;
  ibv_qp_cap& cap = init->cap;
  auto* shared = reinterpret_cast<ProgramSharedReceives*>(init->srq);
  if (shared != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
  if (cap.max_send_wr > kMostWork || cap.max_recv_wr > kMostWork || cap.max_send_sge > kMostPieces ||
      cap.max_recv_sge > kMostPieces || cap.max_inline_data > kMostInline || init->send_cq == nullptr ||
      init->recv_cq == nullptr || (shared != nullptr && shared->domain != domain_of(pd).number)) {
    return errno = EINVAL, nullptr;
  }
  auto* qp = new (std::nothrow) ProgramQueuePair{};
  if (qp == nullptr) return errno = ENOMEM, nullptr;
  ibv_qp& base = qp->base.qp;
  base.qp_type = init->qp_type;
  ProgramNic& nic = nic_of(pd->context);
  cap.max_send_wr = std::max(cap.max_send_wr, 1u);
  cap.max_send_sge = std::max(cap.max_send_sge, 1u);
  if (shared == nullptr) {
    cap.max_recv_wr = std::max(cap.max_recv_wr, 1u);
    cap.max_recv_sge = std::max(cap.max_recv_sge, 1u);
  }
  // The addresses of the pieces would take as much; Linux does the same: programs send so much inline without asking.
  cap.max_inline_data = std::max<uint32_t>(cap.max_inline_data, cap.max_send_sge * sizeof(ibv_sge));
  qp->cap = cap;
  qp->domain = domain_of(pd).number;
  const auto give_up = [&](int error) {
    const std::lock_guard lock(nic.mutex());
    release(nic, *qp);
    delete qp;
    return errno = error, nullptr;
  };
  if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 && !add_batch(*qp, init->send_ops_flags))
    return give_up(EOPNOTSUPP);
  if (!make_room(nic, *qp, shared)) return give_up(ENOMEM);
  using Service = ProgramNic::Service;
  const Service service = datagram ? Service::datagram : unreliable ? Service::unreliable : Service::connection;
  SharedReceives* const receives = shared == nullptr ? nullptr : &shared->queue;
  if (const uint32_t error = nic.create(*qp, service, cap.max_send_wr, cap.max_recv_wr, receives); error != 0) {
    return give_up(static_cast<int>(error));
  }
  base.context = pd->context;
  base.qp_context = init->qp_context;
  base.pd = pd;
  base.send_cq = init->send_cq;
  base.recv_cq = init->recv_cq;
  base.srq = init->srq;
  base.qp_num = qp->qpn;
  base.state = IBV_QPS_RESET;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  qp->send_queue = &queue_of(init->send_cq);
  qp->receive_queue = &queue_of(init->recv_cq);
  ++qp->send_queue->users;
  ++qp->receive_queue->users;
  ++domain_of(pd).users;
  qp->connected = !datagram;
  qp->reliable = !datagram && !unreliable;
  qp->all_signaled = init->sq_sig_all != 0;
  return &base;
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp_init_attr_ex all{};
  all.qp_context = init->qp_context;
  all.send_cq = init->send_cq;
  all.recv_cq = init->recv_cq;
  all.srq = init->srq;
  all.cap = init->cap;
  all.qp_type = init->qp_type;
  all.sq_sig_all = init->sq_sig_all;
  ibv_qp* qp = make_qp(pd, &all);
  init->cap = all.cap;
  return qp;
}

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* init) {
  constexpr uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if ((init->comp_mask & ~kKnown) != 0) return errno = EOPNOTSUPP, nullptr;
  if ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0) return errno = EOPNOTSUPP, nullptr;
  if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) return errno = EINVAL, nullptr;
  return make_qp(init->pd, init);
}

int destroy_qp(ibv_qp* base) {
  ProgramQueuePair& qp = pair_of(base);
  ProgramNic& nic = nic_of(base->context);
  if (!qp.groups.empty()) return EBUSY;  // Linux does the same
  ProgramRequest request;
  request.kind = ProgramRequest::kDestroyQueuePair;
  request.object = base->qp_num;
  // The last acknowledgement, for one, without which the peer's last request fails.
  nic.let_leave(qp);
  {
    const std::lock_guard lock(nic.mutex());
    // A receive that it holds of those that are shared is done with, too.
    qp.ends = true;
    if (qp.shared != nullptr) qp.transport->modify(QueuePairState::reset, {});
    nic.forget(qp);
    release(nic, qp);
    qp.events -= nic.withdraw(base);
  }
  nic.ask(request);
  pthread_mutex_lock(&base->mutex);
  while (base->events_completed != qp.events) pthread_cond_wait(&base->cond, &base->mutex);
  pthread_mutex_unlock(&base->mutex);
  --qp.send_queue->users;
  --qp.receive_queue->users;
  --domain_of(base->pd).users;
  delete &qp;
  return 0;
}

// Attributes that a transition needs (IBTA volume 1, table 91).
int needed(const ProgramQueuePair& qp, ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_INIT && from == IBV_QPS_RESET) {
    return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (qp.datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  }
  if (to == IBV_QPS_RTR) {
    return (qp.connected ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN : 0) |
           (qp.reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
  }
  if (to == IBV_QPS_RTS && from == IBV_QPS_RTR) {
    return IBV_QP_SQ_PSN | (qp.reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
  }
  return 0;
}

// Takes those that `mask` names.
void take(ibv_qp_attr& into, const ibv_qp_attr& from, int mask) {
  const auto copy = [&](int bit, auto ibv_qp_attr::*field) {
    if ((mask & bit) != 0) into.*field = from.*field;
  };
  copy(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  copy(IBV_QP_PORT, &ibv_qp_attr::port_num);
  copy(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  copy(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  copy(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  copy(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  copy(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  copy(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  copy(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  copy(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  copy(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  copy(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  copy(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  copy(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  copy(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
}

QueueAttributes attributes_of(const ProgramQueuePair& qp, uint32_t largest_mtu) {
  const ibv_qp_attr& a = qp.attributes;
  QueueAttributes out;
  out.domain = qp.domain;
  out.access = static_cast<uint8_t>(a.qp_access_flags & (kRemoteWrite | kRemoteRead | kRemoteAtomic));
  const uint32_t unsaid = qp.datagram ? largest_mtu : std::min(largest_mtu, 1024u);
  out.path_mtu = a.path_mtu == 0 ? unsaid : 128u << a.path_mtu;
  out.remote_qpn = a.dest_qp_num;
  out.send_psn = a.sq_psn & 0xffffff;
  out.receive_psn = a.rq_psn & 0xffffff;
  out.timeout = a.timeout;
  out.retry_count = a.retry_cnt;
  out.rnr_retry = a.rnr_retry;
  out.min_rnr_timer = a.min_rnr_timer;
  out.max_rd_atomic = std::max<uint8_t>(a.max_rd_atomic, 1);
  out.max_dest_rd_atomic = a.max_dest_rd_atomic;
  out.queue_key = a.qkey;
  return out;
}

int modify_qp(ibv_qp* base, ibv_qp_attr* given, int mask) {
  ProgramQueuePair& qp = pair_of(base);
  ProgramNic& nic = nic_of(base->context);
  const ibv_qp_state from = base->state;
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? given->qp_state : from;
  if (to > IBV_QPS_ERR || !may_drain(from, to)) return EINVAL;
  // All may change there but the attributes that both ends have agreed on.
  constexpr int kSettled = IBV_QP_AV | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC;
  if (from == IBV_QPS_SQD && (to == IBV_QPS_SQD || to == IBV_QPS_RTS) && (mask & kSettled) != 0) return EINVAL;
  if ((mask & IBV_QP_CUR_STATE) != 0 && given->cur_qp_state != from) return EINVAL;
  const int must = needed(qp, from, to);
  if ((mask & must) != must) return EINVAL;
  if ((mask & IBV_QP_PORT) != 0 && given->port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && given->pkey_index != 0) return EINVAL;
  if ((mask & IBV_QP_AV) != 0 && given->ah_attr.is_global == 0) return EINVAL;
  // Linux does the same for programs that may not manage; QP 1 is the daemon's, whoever the program is.
  if ((mask & IBV_QP_QKEY) != 0 && (given->qkey & kPrivilegedQueueKey) != 0) return EPERM;
  ibv_qp_attr merged = qp.attributes;
  take(merged, *given, mask);
  const QueuePairState state = state_of(to);
  if (!may_become(state_of(from), state)) return EINVAL;
  std::swap(merged, qp.attributes);
  const QueueAttributes attributes = attributes_of(qp, nic.path_mtu());
  ProgramRequest request;
  const ibv_ah_attr& way = qp.attributes.ah_attr;
  std::memcpy(request.gid.data(), way.grh.dgid.raw, request.gid.size());
  request.source_index = way.grh.sgid_index;
  request.traffic_class = way.grh.traffic_class;
  request.hop_limit = way.grh.hop_limit;
  request.service_level = way.sl;
  // A connection that has a larger one from before goes on.
  const bool chooses = (mask & IBV_QP_PATH_MTU) != 0;
  int error = chooses && attributes.path_mtu > nic.path_mtu() ? EINVAL : 0;
  qp.drains = to == IBV_QPS_SQD;
  qp.tells = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && given->en_sqd_async_notify != 0;
  try {
    if (error == 0) error = static_cast<int>(nic.change(qp, state, attributes, request));
  } catch (const NativeError&) {
    error = EINVAL;
  }
  const bool ends = state == QueuePairState::reset || state == QueuePairState::error;
  if (error != 0 && !ends) qp.attributes = merged;
  // ibv_modify_qp() tells the queue pair's state, but the thread may look at it before.
  if (error == 0) base->state = to;
  Recording* recording = Recording::of_process();
  if (recording != nullptr && error == 0 && to == IBV_QPS_RTR && qp.connected)
    recording->connects(*base->context, base->qp_num, qp.attributes);
  return error;
}

int query_qp(ibv_qp* base, ibv_qp_attr* out, int, ibv_qp_init_attr* init) {
  const ProgramQueuePair& qp = pair_of(base);
  const std::lock_guard lock(nic_of(base->context).mutex());
  *out = qp.attributes;
  out->qp_state = out->cur_qp_state = base->state;
  out->sq_draining = qp.transport->send_queue_state() == SendQueueState::draining;
  out->cap = qp.cap;
  *init = {};
  init->qp_context = base->qp_context;
  init->send_cq = base->send_cq;
  init->recv_cq = base->recv_cq;
  init->srq = base->srq;
  init->cap = qp.cap;
  init->qp_type = base->qp_type;
  init->sq_sig_all = qp.all_signaled;
  return 0;
}

}  // namespace

void add_queue_operations(verbs_context_ops& operations) {
  operations.async_event = async_event;
  operations.cq_event = cq_event;
  operations.create_cq = create_cq;
  operations.create_qp = create_qp;
  operations.create_qp_ex = create_qp_ex;
  operations.destroy_cq = destroy_cq;
  operations.destroy_qp = destroy_qp;
  operations.modify_qp = modify_qp;
  operations.poll_cq = poll_cq;
  operations.query_qp = query_qp;
  operations.req_notify_cq = req_notify_cq;
  operations.resize_cq = resize_cq;
}

}  // namespace weir
