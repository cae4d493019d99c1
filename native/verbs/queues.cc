// Completion queues, queue pairs, and work.
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/native_error.h"
#include "transport/datagram.h"
#include "transport/reliable_connection.h"
#include "transport/unreliable_connection.h"
#include "verbs/posting.h"

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
  // Those that the program has taken it has to acknowledge; others are taken back.
  if (cq->channel != nullptr) {
    const std::lock_guard lock(nic_of(cq->context).mutex());
    queue.events -= ProgramNic::withdraw(cq->channel->fd, sizeof(uint64_t), cq);
  }
  {
    ProgramNic& nic = nic_of(cq->context);
    const std::lock_guard lock(nic.mutex());
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

// What waits stays; fewer places than that are refused.
int resize_cq(ibv_cq* cq, int entries) {
  CompletionQueue& queue = queue_of(cq);
  if (entries < 1 || entries > kMostCompletions) return EINVAL;
  const std::lock_guard lock(nic_of(cq->context).mutex());
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

int poll_cq(ibv_cq* cq, int most, ibv_wc* wc) {
  CompletionQueue& queue = queue_of(cq);
  if (queue.empty()) {
    nic_of(cq->context).help();
    if (queue.empty()) return 0;
  }
  return queue.poll(most, wc);
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  queue_of(cq).armed.store(solicited_only != 0 ? CompletionQueue::kSolicited : CompletionQueue::kAny);
  return 0;
}

void cq_event(ibv_cq*) {}

// ---- queue pairs ----

QueuePairState state_of(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return QueuePairState::reset;
    case IBV_QPS_INIT:
      return QueuePairState::init;
    case IBV_QPS_RTR:
      return QueuePairState::rtr;
    case IBV_QPS_RTS:
      return QueuePairState::rts;
    default:
      return QueuePairState::error;
  }
}

// Of ibv_create_qp() as well as of ibv_create_qp_ex(); the latter's fields are null and zero with the former.
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
  if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 && !add_batch(*qp, init->send_ops_flags)) {
    delete qp;
    return errno = EOPNOTSUPP, nullptr;
  }
  ProgramNic& nic = nic_of(pd->context);
  ProgramRequest request;
  request.kind = ProgramRequest::kCreateQueuePair;
  request.datagram = datagram;
  request.unreliable = unreliable;
  const ProgramAnswer answer = nic.ask(request);
  if (answer.error != 0) {
    delete qp;
    return errno = static_cast<int>(answer.error), nullptr;
  }
  cap.max_send_wr = std::max(cap.max_send_wr, 1u);
  cap.max_send_sge = std::max(cap.max_send_sge, 1u);
  if (shared == nullptr) {
    cap.max_recv_wr = std::max(cap.max_recv_wr, 1u);
    cap.max_recv_sge = std::max(cap.max_recv_sge, 1u);
  }
  // As much as the addresses of the pieces would take, as Linux has it: programs send so much inline without asking.
  cap.max_inline_data = std::max<uint32_t>(cap.max_inline_data, cap.max_send_sge * sizeof(ibv_sge));
  base.context = pd->context;
  base.qp_context = init->qp_context;
  base.pd = pd;
  base.send_cq = init->send_cq;
  base.recv_cq = init->recv_cq;
  base.srq = init->srq;
  base.qp_num = answer.object;
  base.state = IBV_QPS_RESET;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  qp->send_queue = &queue_of(init->send_cq);
  qp->receive_queue = &queue_of(init->recv_cq);
  ++qp->send_queue->users;
  ++qp->receive_queue->users;
  ++domain_of(pd).users;
  if (shared != nullptr) ++shared->users;
  qp->shared = shared;
  qp->domain = domain_of(pd).number;
  qp->datagram = datagram;
  qp->connected = !datagram;
  qp->reliable = !datagram && !unreliable;
  qp->all_signaled = init->sq_sig_all != 0;
  qp->cap = cap;
  const std::lock_guard lock(nic.mutex());
  SharedReceives* const receives = shared == nullptr ? nullptr : &shared->queue;
  const auto make = [&]<class Type>() {
    qp->transport = std::make_unique<Type>(base.qp_num, nic.context(), cap.max_send_wr, cap.max_recv_wr, receives);
  };
  if (datagram) {
    make.template operator()<Datagram>();
  } else if (unreliable) {
    make.template operator()<UnreliableConnection>();
  } else {
    make.template operator()<ReliableConnection>();
  }
  nic.add(*qp);
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

// With the lock.
void purge(ProgramQueuePair& qp) {
  qp.send_queue->purge(qp.base.qp.qp_num);
  if (qp.receive_queue != qp.send_queue) qp.receive_queue->purge(qp.base.qp.qp_num);
}

int destroy_qp(ibv_qp* base) {
  ProgramQueuePair& qp = pair_of(base);
  ProgramNic& nic = nic_of(base->context);
  ProgramRequest request;
  request.kind = ProgramRequest::kDestroyQueuePair;
  request.object = base->qp_num;
  // The last acknowledgement, for one, without which the peer's last request fails.
  const Time patience = program_now() + 100 * kMillisecond;
  while (!nic.settled(qp) && program_now() < patience) ::usleep(50);
  {
    const std::lock_guard lock(nic.mutex());
    // A receive that it holds of those that are shared is done with, too.
    qp.ends = true;
    if (qp.shared != nullptr) qp.transport->modify(QueuePairState::reset, {});
    nic.remove(qp);
    purge(qp);
    qp.events -= nic.withdraw(base);
  }
  nic.ask(request);
  pthread_mutex_lock(&base->mutex);
  while (base->events_completed != qp.events) pthread_cond_wait(&base->cond, &base->mutex);
  pthread_mutex_unlock(&base->mutex);
  --qp.send_queue->users;
  --qp.receive_queue->users;
  if (qp.shared != nullptr) --qp.shared->users;
  --domain_of(base->pd).users;
  delete &qp;
  return 0;
}

// Which attributes a transition needs (IBTA volume 1, table 91).
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

// Those that `mask` names.
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
  out.path_mtu = qp.datagram ? largest_mtu : a.path_mtu == 0 ? 1024 : 128u << a.path_mtu;
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
  if (to > IBV_QPS_ERR || to == IBV_QPS_SQD || to == IBV_QPS_SQE) return EINVAL;
  if ((mask & IBV_QP_CUR_STATE) != 0 && given->cur_qp_state != from) return EINVAL;
  const int must = needed(qp, from, to);
  if ((mask & must) != must) return EINVAL;
  if ((mask & IBV_QP_PORT) != 0 && given->port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && given->pkey_index != 0) return EINVAL;
  if ((mask & IBV_QP_AV) != 0 && given->ah_attr.is_global == 0) return EINVAL;
  ibv_qp_attr merged = qp.attributes;
  take(merged, *given, mask);
  const QueuePairState state = state_of(to);
  if (!may_become(state_of(from), state)) return EINVAL;
  std::swap(merged, qp.attributes);
  const QueueAttributes attributes = attributes_of(qp, nic.session().hello().path_mtu);
  int error = attributes.path_mtu > nic.session().hello().path_mtu ? EINVAL : 0;
  const bool ends = state == QueuePairState::reset || state == QueuePairState::error;
  const auto apply = [&] {
    const std::lock_guard lock(nic.mutex());
    try {
      qp.transport->modify(state, attributes);
      if (to == IBV_QPS_ERR && from != IBV_QPS_ERR) nic.told_error(qp);
      if (state == QueuePairState::reset) purge(qp);
      nic.attend(qp);
      nic.submit();
      return 0;
    } catch (const NativeError&) {
      return EINVAL;
    }
  };
  if (error == 0 && ends) error = apply();
  if (error == 0 && !(ends && nic.failed()) && !(from == to && state == QueuePairState::rts)) {
    ProgramRequest request;
    request.kind = ProgramRequest::kModifyQueuePair;
    request.object = base->qp_num;
    request.state = static_cast<uint32_t>(state);
    request.path_mtu = attributes.path_mtu;
    request.remote_qpn = attributes.remote_qpn;
    request.partition_key = attributes.partition_key;
    request.receive_psn = attributes.receive_psn;
    const ibv_ah_attr& way = qp.attributes.ah_attr;
    std::memcpy(request.gid.data(), way.grh.dgid.raw, request.gid.size());
    request.source_index = way.grh.sgid_index;
    request.traffic_class = way.grh.traffic_class;
    request.hop_limit = way.grh.hop_limit;
    request.service_level = way.sl;
    error = static_cast<int>(nic.ask(request).error);
  }
  if (error == 0 && !ends) error = apply();
  if (error != 0 && !ends) qp.attributes = merged;
  // ibv_modify_qp() tells the queue pair's state, but the thread may look at it before.
  if (error == 0) base->state = to;
  return error;
}

int query_qp(ibv_qp* base, ibv_qp_attr* out, int, ibv_qp_init_attr* init) {
  const ProgramQueuePair& qp = pair_of(base);
  *out = qp.attributes;
  out->qp_state = out->cur_qp_state = base->state;
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

// ---- work ----

// At a time: of memory that is none there is no more.
constexpr uint32_t kCopied = 4'096;

// One piece that stands for several, or for inline data. False: no memory.
bool stage(ProgramNic& nic, uint32_t domain, const ibv_sge* pieces, int count, uint64_t length, Staging& out) {
  out.bytes.reset(new (std::nothrow) uint8_t[length]);
  if (out.bytes == nullptr) return false;
  MemoryRegion region;
  region.data = out.bytes.get();
  region.address = reinterpret_cast<uintptr_t>(region.data);
  region.length = length;
  region.domain = domain;
  region.access = kLocalWrite;
  out.key = nic.memory().add(region);
  out.pieces.assign(pieces, pieces + count);
  return out.key != 0;
}

// Whether each piece is memory that the program may use so.
bool allowed(ProgramNic& nic, uint32_t domain, const ibv_sge* pieces, int count, uint8_t access) {
  return std::all_of(pieces, pieces + count, [&](const ibv_sge& piece) {
    return piece.length == 0 || nic.memory().find(piece.lkey, domain, piece.addr, piece.length, access) != nullptr;
  });
}

// Only where they are allowed.
void gather(ProgramNic& nic, uint32_t domain, const ibv_sge* pieces, int count, uint8_t* to) {
  for (const ibv_sge* piece = pieces; piece != pieces + count; ++piece) {
    for (uint32_t offset = 0; offset < piece->length; offset += kCopied) {
      const uint32_t length = std::min(piece->length - offset, kCopied);
      std::memcpy(to, nic.memory().find(piece->lkey, domain, piece->addr + offset, length, 0), length);
      to += length;
    }
  }
}

void gather_inline(const ibv_sge* pieces, int count, uint8_t* to) {
  for (const ibv_sge* piece = pieces; piece != pieces + count; ++piece) {
    if (piece->length > 0) std::memcpy(to, reinterpret_cast<const void*>(piece->addr), piece->length);
    to += piece->length;
  }
}

uint64_t length_of(const ibv_sge* pieces, int count) {
  uint64_t length = 0;
  for (int i = 0; i < count; ++i) length += pieces[i].length;
  return length;
}

int do_locally(ProgramNic& nic, ProgramQueuePair& qp, const ibv_send_wr& wr) {
  if (qp.transport->state() != QueuePairState::rts) return 0;  // it is flushed
  if (wr.opcode == IBV_WR_LOCAL_INV) return invalidate_locally(nic, qp, wr.invalidate_rkey);
  return bind_window(nic, qp, wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
}

int post_send(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad) {
  ProgramQueuePair& qp = pair_of(base);
  ProgramNic& nic = nic_of(base->context);
  const std::lock_guard lock(nic.mutex());
  int error = takes_work(qp) ? 0 : EINVAL;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    error = post_one(nic, qp, *wr);
    if (error != 0) break;
  }
  if (error != 0) *bad = wr;
  nic.attend(qp);
  nic.submit();
  return error;
}

int post_recv(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  ProgramQueuePair& qp = pair_of(base);
  ProgramNic& nic = nic_of(base->context);
  const std::lock_guard lock(nic.mutex());
  const bool takes = qp.shared == nullptr && qp.transport->state() != QueuePairState::reset;
  int error = takes ? 0 : EINVAL;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    ReceiveWork work;
    error = qp.receives.size() >= qp.cap.max_recv_wr ? ENOMEM
                                                     : take_receive(nic, qp.receives, qp.domain, qp.cap.max_recv_sge, *wr, work);
    if (error != 0) break;
    qp.transport->post_receive(work);
  }
  if (error != 0) *bad = wr;
  return error;
}

}  // namespace

bool takes_work(const ProgramQueuePair& qp) {
  const QueuePairState state = qp.transport->state();
  return state == QueuePairState::rts || state == QueuePairState::error;
}

int understand(const ProgramQueuePair& qp, const ibv_send_wr& wr, SendWork& work) {
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > qp.cap.max_send_sge) return EINVAL;
  const uint64_t length = length_of(wr.sg_list, wr.num_sge);
  if (length > kMaxMessage || (is_inline && length > qp.cap.max_inline_data)) return EINVAL;
  work.id = wr.wr_id;
  work.length = static_cast<uint32_t>(length);
  work.flags = static_cast<uint8_t>((qp.all_signaled || (wr.send_flags & IBV_SEND_SIGNALED) != 0 ? kSignaled : 0) |
                                    ((wr.send_flags & IBV_SEND_SOLICITED) != 0 ? kSolicited : 0) |
                                    ((wr.send_flags & IBV_SEND_FENCE) != 0 ? kFence : 0));
  work.remote_address = wr.wr.rdma.remote_addr;
  work.remote_key = wr.wr.rdma.rkey;
  work.immediate = be32toh(wr.imm_data);
  switch (wr.opcode) {
    case IBV_WR_SEND:
      work.opcode = WorkOpcode::send;
      break;
    case IBV_WR_SEND_WITH_IMM:
      work.opcode = WorkOpcode::send_immediate;
      break;
    case IBV_WR_SEND_WITH_INV:
      if (!qp.reliable) return EINVAL;
      work.opcode = WorkOpcode::send_invalidate;
      work.remote_key = wr.invalidate_rkey;
      break;
    case IBV_WR_RDMA_WRITE:
      work.opcode = WorkOpcode::write;
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      work.opcode = WorkOpcode::write_immediate;
      break;
    case IBV_WR_RDMA_READ:
      work.opcode = WorkOpcode::read;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD: {
      const bool swap = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
      work.opcode = swap ? WorkOpcode::compare_swap : WorkOpcode::fetch_add;
      work.remote_address = wr.wr.atomic.remote_addr;
      work.remote_key = wr.wr.atomic.rkey;
      work.compare = swap ? wr.wr.atomic.compare_add : 0;
      work.swap_add = swap ? wr.wr.atomic.swap : wr.wr.atomic.compare_add;
      break;
    }
    case IBV_WR_BIND_MW:
    case IBV_WR_LOCAL_INV:
      if (qp.datagram || wr.num_sge > 0) return EINVAL;
      work.flags |= kLocal;
      break;
    default:
      return EINVAL;
  }
  const bool fetches = work.opcode >= WorkOpcode::read;
  if (fetches && (is_inline || !qp.reliable)) return EINVAL;
  if (qp.datagram) {
    if (work.opcode > WorkOpcode::send_immediate || wr.wr.ud.ah == nullptr) return EINVAL;
    work.address_handle = reinterpret_cast<const ProviderAddress*>(wr.wr.ud.ah)->handle;
    work.remote_qpn = wr.wr.ud.remote_qpn;
    // With its top bit set, the queue pair's own takes its place (IBTA volume 1, 10.2.5).
    work.queue_key = (wr.wr.ud.remote_qkey & 0x80000000u) != 0 ? qp.attributes.qkey : wr.wr.ud.remote_qkey;
  }
  return 0;
}

int post_one(ProgramNic& nic, ProgramQueuePair& qp, const ibv_send_wr& wr) {
  if (qp.sends.size() >= qp.cap.max_send_wr) return ENOMEM;
  SendWork work;
  if (const int error = understand(qp, wr, work); error != 0) return error;
  Staging staging;
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  const bool fetches = work.opcode >= WorkOpcode::read;
  if ((work.flags & kLocal) != 0) {
    if (const int error = do_locally(nic, qp, wr); error != 0) return error;
    staging.opcode = wr.opcode == IBV_WR_BIND_MW ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV;
  } else if (work.length > 0 && (is_inline || wr.num_sge > 1)) {
    if (is_inline || allowed(nic, qp.domain, wr.sg_list, wr.num_sge, fetches ? kLocalWrite : 0)) {
      if (!stage(nic, qp.domain, wr.sg_list, wr.num_sge, work.length, staging)) return ENOMEM;
      work.local_address = reinterpret_cast<uintptr_t>(staging.bytes.get());
      work.local_key = staging.key;
      if (is_inline) {
        gather_inline(wr.sg_list, wr.num_sge, staging.bytes.get());
      } else if (!fetches) {
        gather(nic, qp.domain, wr.sg_list, wr.num_sge, staging.bytes.get());
      }
      if (!fetches) staging.pieces.clear();
    }  // else there is no such key: the transport says so in its turn
  } else if (wr.num_sge > 0) {
    work.local_address = wr.sg_list->addr;
    work.local_key = wr.sg_list->lkey;
  }
  qp.sends.push_back(std::move(staging));
  qp.transport->post_send(work);
  return 0;
}

int take_receive(ProgramNic& nic, PostedReceives& receives, uint32_t domain, uint32_t most_pieces, const ibv_recv_wr& wr,
                 ReceiveWork& work) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > most_pieces) return EINVAL;
  const uint64_t length = length_of(wr.sg_list, wr.num_sge);
  if (length > UINT32_MAX) return EINVAL;
  work.length = static_cast<uint32_t>(length);
  Staging staging;
  if (wr.num_sge > 1 && length > 0) {
    if (allowed(nic, domain, wr.sg_list, wr.num_sge, kLocalWrite)) {
      if (!stage(nic, domain, wr.sg_list, wr.num_sge, length, staging)) return ENOMEM;
      work.local_address = reinterpret_cast<uintptr_t>(staging.bytes.get());
      work.local_key = staging.key;
    }
  } else if (wr.num_sge > 0) {
    work.local_address = wr.sg_list->addr;
    work.local_key = wr.sg_list->lkey;
  }
  work.id = receives.add(wr.wr_id, std::move(staging));
  return 0;
}

void add_queue_operations(verbs_context_ops& operations) {
  operations.cq_event = cq_event;
  operations.create_cq = create_cq;
  operations.create_qp = create_qp;
  operations.create_qp_ex = create_qp_ex;
  operations.destroy_cq = destroy_cq;
  operations.destroy_qp = destroy_qp;
  operations.modify_qp = modify_qp;
  operations.poll_cq = poll_cq;
  operations.post_recv = post_recv;
  operations.post_send = post_send;
  operations.query_qp = query_qp;
  operations.req_notify_cq = req_notify_cq;
  operations.resize_cq = resize_cq;
}

}  // namespace weir
