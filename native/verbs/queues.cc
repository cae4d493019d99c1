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
#include "verbs/provider.h"

namespace weir {
namespace {

CompletionQueue& queue_of(ibv_cq* cq) { return *reinterpret_cast<CompletionQueue*>(cq); }
ProgramQueuePair& pair_of(ibv_qp* qp) { return *reinterpret_cast<ProgramQueuePair*>(qp); }

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
  pthread_mutex_lock(&cq->mutex);
  while (cq->comp_events_completed != queue.events) pthread_cond_wait(&cq->cond, &cq->mutex);
  pthread_mutex_unlock(&cq->mutex);
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
  for (uint32_t i = 0; i < waiting; ++i) ring[i] = queue.ring[(read + i) % queue.ring.size()];
  queue.ring.swap(ring);
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

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  const bool datagram = attributes->qp_type == IBV_QPT_UD;
  if (!datagram && attributes->qp_type != IBV_QPT_RC) return errno = EOPNOTSUPP, nullptr;
  if (attributes->srq != nullptr) return errno = EOPNOTSUPP, nullptr;
  ibv_qp_cap& cap = attributes->cap;
  if (cap.max_send_wr > kMostWork || cap.max_recv_wr > kMostWork || cap.max_send_sge > kMostPieces ||
      cap.max_recv_sge > kMostPieces || cap.max_inline_data > kMostInline) {
    return errno = EINVAL, nullptr;
  }
  ProgramNic& nic = nic_of(pd->context);
  ProgramRequest request;
  request.kind = ProgramRequest::kCreateQueuePair;
  request.datagram = datagram;
  const ProgramAnswer answer = nic.ask(request);
  if (answer.error != 0) return errno = static_cast<int>(answer.error), nullptr;
  auto* qp = new (std::nothrow) ProgramQueuePair{};
  if (qp == nullptr) return errno = ENOMEM, nullptr;
  cap.max_send_wr = std::max(cap.max_send_wr, 1u);
  cap.max_recv_wr = std::max(cap.max_recv_wr, 1u);
  cap.max_send_sge = std::max(cap.max_send_sge, 1u);
  cap.max_recv_sge = std::max(cap.max_recv_sge, 1u);
  // As much as the addresses of the pieces would take, as Linux has it: programs send so much inline without asking.
  cap.max_inline_data = std::max<uint32_t>(cap.max_inline_data, cap.max_send_sge * sizeof(ibv_sge));
  ibv_qp& base = qp->base.qp;
  base.context = pd->context;
  base.qp_context = attributes->qp_context;
  base.pd = pd;
  base.send_cq = attributes->send_cq;
  base.recv_cq = attributes->recv_cq;
  base.qp_num = answer.object;
  base.state = IBV_QPS_RESET;
  base.qp_type = attributes->qp_type;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  qp->send_queue = &queue_of(attributes->send_cq);
  qp->receive_queue = &queue_of(attributes->recv_cq);
  ++qp->send_queue->users;
  ++qp->receive_queue->users;
  qp->domain = reinterpret_cast<ProviderDomain*>(pd)->number;
  qp->datagram = datagram;
  qp->all_signaled = attributes->sq_sig_all != 0;
  qp->cap = cap;
  const std::lock_guard lock(nic.mutex());
  if (datagram) {
    qp->transport = std::make_unique<Datagram>(base.qp_num, nic.context(), cap.max_send_wr, cap.max_recv_wr);
  } else {
    qp->transport = std::make_unique<ReliableConnection>(base.qp_num, nic.context(), cap.max_send_wr, cap.max_recv_wr);
  }
  nic.add(*qp);
  return &base;
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
    nic.remove(qp);
    purge(qp);
    qp.events -= nic.withdraw(qp);
  }
  nic.ask(request);
  pthread_mutex_lock(&base->mutex);
  while (base->events_completed != qp.events) pthread_cond_wait(&base->cond, &base->mutex);
  pthread_mutex_unlock(&base->mutex);
  --qp.send_queue->users;
  --qp.receive_queue->users;
  delete &qp;
  return 0;
}

// Which attributes a transition needs (IBTA volume 1, table 91).
int needed(const ProgramQueuePair& qp, ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_INIT && from == IBV_QPS_RESET) {
    return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (qp.datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  }
  if (to == IBV_QPS_RTR) {
    return qp.datagram
               ? 0
               : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  if (to == IBV_QPS_RTS && from == IBV_QPS_RTR) {
    return qp.datagram ? IBV_QP_SQ_PSN
                       : IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
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
  init->cap = qp.cap;
  init->qp_type = base->qp_type;
  init->sq_sig_all = qp.all_signaled;
  return 0;
}

// ---- work ----

// One piece that stands for several, or for inline data. False: no memory.
bool stage(ProgramNic& nic, const ProgramQueuePair& qp, const ibv_sge* pieces, int count, uint64_t length, Staging& out) {
  out.bytes.reset(new (std::nothrow) uint8_t[length]);
  if (out.bytes == nullptr) return false;
  MemoryRegion region;
  region.data = out.bytes.get();
  region.address = reinterpret_cast<uintptr_t>(region.data);
  region.length = length;
  region.domain = qp.domain;
  region.access = kLocalWrite;
  out.key = nic.memory().add(region);
  out.pieces.assign(pieces, pieces + count);
  return out.key != 0;
}

// Whether each piece is memory that the program may use so.
bool allowed(ProgramNic& nic, const ProgramQueuePair& qp, const ibv_sge* pieces, int count, uint8_t access) {
  return std::all_of(pieces, pieces + count, [&](const ibv_sge& piece) {
    return piece.length == 0 || nic.memory().find(piece.lkey, qp.domain, piece.addr, piece.length, access) != nullptr;
  });
}

uint64_t length_of(const ibv_sge* pieces, int count) {
  uint64_t length = 0;
  for (int i = 0; i < count; ++i) length += pieces[i].length;
  return length;
}

int post_one(ProgramNic& nic, ProgramQueuePair& qp, const ibv_send_wr& wr) {
  if (qp.sends.size() >= qp.cap.max_send_wr) return ENOMEM;
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > qp.cap.max_send_sge) return EINVAL;
  const uint64_t length = length_of(wr.sg_list, wr.num_sge);
  if (length > kMaxMessage || (is_inline && length > qp.cap.max_inline_data)) return EINVAL;
  SendWork work;
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
    default:
      return EINVAL;
  }
  const bool fetches = work.opcode >= WorkOpcode::read;
  if (is_inline && fetches) return EINVAL;
  if (qp.datagram) {
    if (work.opcode > WorkOpcode::send_immediate || wr.wr.ud.ah == nullptr) return EINVAL;
    work.address_handle = reinterpret_cast<const ProviderAddress*>(wr.wr.ud.ah)->handle;
    work.remote_qpn = wr.wr.ud.remote_qpn;
    // With its top bit set, the queue pair's own takes its place (IBTA volume 1, 10.2.5).
    work.queue_key = (wr.wr.ud.remote_qkey & 0x80000000u) != 0 ? qp.attributes.qkey : wr.wr.ud.remote_qkey;
  }
  Staging staging;
  if (length > 0 && (is_inline || wr.num_sge > 1)) {
    if (is_inline || allowed(nic, qp, wr.sg_list, wr.num_sge, fetches ? kLocalWrite : 0)) {
      if (!stage(nic, qp, wr.sg_list, wr.num_sge, length, staging)) return ENOMEM;
      uint8_t* to = staging.bytes.get();
      work.local_address = reinterpret_cast<uintptr_t>(to);
      work.local_key = staging.key;
      if (!fetches) {
        for (int i = 0; i < wr.num_sge; to += wr.sg_list[i].length, ++i) {
          if (wr.sg_list[i].length > 0) std::memcpy(to, reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
        }
        staging.pieces.clear();
      }
    }  // else there is no such key: the transport says so in its turn
  } else if (wr.num_sge > 0) {
    work.local_address = wr.sg_list->addr;
    work.local_key = wr.sg_list->lkey;
  }
  qp.sends.push_back(std::move(staging));
  qp.transport->post_send(work);
  return 0;
}

int post_send(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad) {
  ProgramQueuePair& qp = pair_of(base);
  ProgramNic& nic = nic_of(base->context);
  const std::lock_guard lock(nic.mutex());
  const QueuePairState state = qp.transport->state();
  int error = state == QueuePairState::rts || state == QueuePairState::error ? 0 : EINVAL;
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
  const auto post = [&] {
    if (qp.receives.size() >= qp.cap.max_recv_wr) return ENOMEM;
    if (wr->num_sge < 0 || static_cast<uint32_t>(wr->num_sge) > qp.cap.max_recv_sge) return EINVAL;
    const uint64_t length = length_of(wr->sg_list, wr->num_sge);
    if (length > UINT32_MAX) return EINVAL;
    ReceiveWork work{.id = wr->wr_id, .length = static_cast<uint32_t>(length)};
    Staging staging;
    if (wr->num_sge > 1 && length > 0) {
      if (allowed(nic, qp, wr->sg_list, wr->num_sge, kLocalWrite)) {
        if (!stage(nic, qp, wr->sg_list, wr->num_sge, length, staging)) return ENOMEM;
        work.local_address = reinterpret_cast<uintptr_t>(staging.bytes.get());
        work.local_key = staging.key;
      }
    } else if (wr->num_sge > 0) {
      work.local_address = wr->sg_list->addr;
      work.local_key = wr->sg_list->lkey;
    }
    qp.receives.push_back(std::move(staging));
    qp.transport->post_receive(work);
    return 0;
  };
  int error = qp.transport->state() == QueuePairState::reset ? EINVAL : 0;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    error = post();
    if (error != 0) break;
  }
  if (error != 0) *bad = wr;
  return error;
}

}  // namespace

void add_queue_operations(verbs_context_ops& operations) {
  operations.cq_event = cq_event;
  operations.create_cq = create_cq;
  operations.create_qp = create_qp;
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
