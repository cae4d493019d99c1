#include "verbs/posting.h"

#include <endian.h>

#include <cerrno>

#include "engine/virtual_turns.h"
#include "verbs/recording.h"

namespace weir {
namespace {

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
  const AnsweredCall call(true);
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
  const AnsweredCall call(true);
  ProgramQueuePair& qp = pair_of(base);
  ProgramNic& nic = nic_of(base->context);
  const std::lock_guard lock(nic.mutex());
  const bool takes = qp.shared == nullptr && qp.transport->state() != QueuePairState::reset;
  int error = takes ? 0 : EINVAL;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    ReceiveWork work;
    error = qp.receives.size() >= qp.cap.max_recv_wr ? ENOMEM : take_receive(qp.receives, qp.cap.max_recv_sge, *wr, work);
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
    // If its top bit is set, the queue pair's own takes its place (IBTA volume 1, 10.2.5).
    work.queue_key = (wr.wr.ud.remote_qkey & kPrivilegedQueueKey) != 0 ? qp.attributes.qkey : wr.wr.ud.remote_qkey;
  }
  return 0;
}

int post_one(ProgramNic& nic, ProgramQueuePair& qp, const ibv_send_wr& wr) {
  if (qp.sends.room() == 0) return ENOMEM;
  SendWork work;
  if (const int error = understand(qp, wr, work); error != 0) return error;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  if ((work.flags & kLocal) != 0) {
    if (const int error = do_locally(nic, qp, wr); error != 0) return error;
    opcode = wr.opcode == IBV_WR_BIND_MW ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV;
  } else {
    const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
    const PostedMemory memory = is_inline ? qp.sends.copy(wr.sg_list, wr.num_sge) : qp.sends.put(wr.sg_list, wr.num_sge);
    work.local_address = memory.address;
    work.local_key = memory.key;
  }
  qp.sends.push(opcode);
  if (Recording* recording = Recording::of_process(); recording != nullptr) [[unlikely]]
    recording->posts(qp.base.qp.qp_num, static_cast<uint8_t>(wr.opcode), work.length);
  qp.transport->post_send(work);
  return 0;
}

int take_receive(PostedReceives& receives, uint32_t most_pieces, const ibv_recv_wr& wr, ReceiveWork& work) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > most_pieces) return EINVAL;
  const uint64_t length = length_of(wr.sg_list, wr.num_sge);
  if (length > UINT32_MAX) return EINVAL;
  work = receives.add(wr, static_cast<uint32_t>(length));
  return 0;
}

void add_posting_operations(verbs_context_ops& operations) {
  operations.post_recv = post_recv;
  operations.post_send = post_send;
}

}  // namespace weir
