#include "verbs/posting.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "verbs/touch.h"

namespace weir {
namespace {

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

// False where they are not allowed, or not there.
bool gather(ProgramNic& nic, uint32_t domain, const ibv_sge* pieces, int count, uint8_t* to) {
  for (const ibv_sge* piece = pieces; piece != pieces + count; ++piece) {
    for (uint32_t offset = 0; offset < piece->length; offset += kMostTouched) {
      const uint32_t length = std::min(piece->length - offset, kMostTouched);
      const uint8_t* from = nic.memory().find(piece->lkey, domain, piece->addr + offset, length, 0);
      if (from == nullptr) return false;
      std::memcpy(to, from, length);
      to += length;
    }
  }
  return true;
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
  const bool failed = qp.transport->send_queue_state() == SendQueueState::failed;
  if (failed || qp.transport->state() != QueuePairState::rts) return 0;  // it is flushed
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
      } else if (!fetches && !gather(nic, qp.domain, wr.sg_list, wr.num_sge, staging.bytes.get())) {
        work.local_key = 0;  // no region's: the transport says so in its turn
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

void add_posting_operations(verbs_context_ops& operations) {
  operations.post_recv = post_recv;
  operations.post_send = post_send;
}

}  // namespace weir
