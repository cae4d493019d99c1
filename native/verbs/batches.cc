// ibv_qp_ex: work that is put together call by call, and posted all at once or not at all.
#include <algorithm>
#include <cerrno>

#include "engine/virtual_turns.h"
#include "verbs/posting.h"

namespace weir {

struct Batch {
  struct Item {
    ibv_send_wr wr;
    size_t piece;  // its first
    size_t byte;   // its first, of inline data
  };
  std::mutex mutex;  // locked from wr_start() to wr_complete() or wr_abort()
  std::vector<Item> items;
  std::vector<ibv_sge> pieces;
  std::vector<uint8_t> bytes;

  void clear() {
    items.clear();
    pieces.clear();
    bytes.clear();
  }
};

namespace {

Batch& batch_of(ibv_qp_ex* qp) { return *pair_of(&qp->qp_base).batch; }

void start(ibv_qp_ex* qp) {
  batch_of(qp).mutex.lock();
  batch_of(qp).clear();
}

void abort(ibv_qp_ex* qp) { batch_of(qp).mutex.unlock(); }

int post(ProgramQueuePair& qp, Batch& batch) {
  ProgramNic& nic = nic_of(qp.base.qp.context);
  const std::lock_guard lock(nic.mutex());
  if (!takes_work(qp)) return EINVAL;
  if (batch.items.size() > qp.sends.room()) return ENOMEM;
  for (Batch::Item& item : batch.items) {
    item.wr.sg_list = batch.pieces.data() + item.piece;
    if ((item.wr.send_flags & IBV_SEND_INLINE) != 0 && item.wr.num_sge > 0) {
      item.wr.sg_list->addr = reinterpret_cast<uintptr_t>(batch.bytes.data() + item.byte);
    }
    SendWork work;
    if (const int error = understand(qp, item.wr, work); error != 0) return error;
  }
  int error = 0;
  for (const Batch::Item& item : batch.items) {
    error = post_one(nic, qp, item.wr);
    if (error != 0) break;
  }
  nic.attend(qp);
  nic.submit();
  return error;
}

int complete(ibv_qp_ex* qp) {
  const AnsweredCall call(true);
  Batch& batch = batch_of(qp);
  const int error = post(pair_of(&qp->qp_base), batch);
  batch.mutex.unlock();
  return error;
}

ibv_send_wr& add(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  Batch& batch = batch_of(qp);
  ibv_send_wr wr{};
  wr.wr_id = qp->wr_id;
  wr.send_flags = qp->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  wr.opcode = opcode;
  batch.items.push_back({wr, batch.pieces.size(), batch.bytes.size()});
  return batch.items.back().wr;
}

void atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t key, uint64_t address, uint64_t compare_add, uint64_t swap) {
  auto& to = add(qp, opcode).wr.atomic;
  to.rkey = key;
  to.remote_addr = address;
  to.compare_add = compare_add;
  to.swap = swap;
}
void compare_swap(ibv_qp_ex* qp, uint32_t key, uint64_t address, uint64_t compare, uint64_t swap) {
  atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, key, address, compare, swap);
}
void fetch_add(ibv_qp_ex* qp, uint32_t key, uint64_t address, uint64_t value) {
  atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, key, address, value, 0);
}
void bind(ibv_qp_ex* qp, ibv_mw* window, uint32_t key, const ibv_mw_bind_info* info) {
  auto& to = add(qp, IBV_WR_BIND_MW).bind_mw;
  to.mw = window;
  to.rkey = key;
  to.bind_info = *info;
}
void invalidate(ibv_qp_ex* qp, uint32_t key) { add(qp, IBV_WR_LOCAL_INV).invalidate_rkey = key; }

ibv_send_wr& remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t key, uint64_t address) {
  ibv_send_wr& wr = add(qp, opcode);
  wr.wr.rdma.rkey = key;
  wr.wr.rdma.remote_addr = address;
  return wr;
}
void read(ibv_qp_ex* qp, uint32_t key, uint64_t address) { remote(qp, IBV_WR_RDMA_READ, key, address); }
void write(ibv_qp_ex* qp, uint32_t key, uint64_t address) { remote(qp, IBV_WR_RDMA_WRITE, key, address); }
void write_immediate(ibv_qp_ex* qp, uint32_t key, uint64_t address, __be32 immediate) {
  remote(qp, IBV_WR_RDMA_WRITE_WITH_IMM, key, address).imm_data = immediate;
}
void send(ibv_qp_ex* qp) { add(qp, IBV_WR_SEND); }
void send_immediate(ibv_qp_ex* qp, __be32 immediate) { add(qp, IBV_WR_SEND_WITH_IMM).imm_data = immediate; }
void send_invalidate(ibv_qp_ex* qp, uint32_t key) { add(qp, IBV_WR_SEND_WITH_INV).invalidate_rkey = key; }

// The functions below concern the work that was added last.

void set_address(ibv_qp_ex* qp, ibv_ah* ah, uint32_t qpn, uint32_t queue_key) {
  if (batch_of(qp).items.empty()) return;
  auto& to = batch_of(qp).items.back().wr.wr.ud;
  to.ah = ah;
  to.remote_qpn = qpn;
  to.remote_qkey = queue_key;
}

void set_pieces(ibv_qp_ex* qp, size_t count, const ibv_sge* pieces) {
  Batch& batch = batch_of(qp);
  if (batch.items.empty()) return;
  batch.pieces.insert(batch.pieces.end(), pieces, pieces + count);
  batch.items.back().wr.num_sge = static_cast<int>(count);
}
void set_piece(ibv_qp_ex* qp, uint32_t key, uint64_t address, uint32_t length) {
  const ibv_sge piece{.addr = address, .length = length, .lkey = key};
  set_pieces(qp, 1, &piece);
}

// The program may use its memory again at once.
void set_inline_list(ibv_qp_ex* qp, size_t count, const ibv_data_buf* buffers) {
  Batch& batch = batch_of(qp);
  if (batch.items.empty()) return;
  const size_t before = batch.bytes.size();
  size_t length = 0;
  for (size_t i = 0; i < count; ++i) length += buffers[i].length;
  // Too much is refused when all is posted, and need not be copied.
  if (length <= pair_of(&qp->qp_base).cap.max_inline_data) {
    for (size_t i = 0; i < count; ++i) {
      const auto* from = static_cast<const uint8_t*>(buffers[i].addr);
      batch.bytes.insert(batch.bytes.end(), from, from + buffers[i].length);
    }
  }
  Batch::Item& item = batch.items.back();
  item.byte = before;
  item.wr.send_flags |= IBV_SEND_INLINE;
  batch.pieces.push_back({.addr = 0, .length = static_cast<uint32_t>(std::min<size_t>(length, UINT32_MAX)), .lkey = 0});
  item.wr.num_sge = 1;
}
void set_inline(ibv_qp_ex* qp, void* address, size_t length) {
  const ibv_data_buf buffer{.addr = address, .length = length};
  set_inline_list(qp, 1, &buffer);
}

}  // namespace

bool add_batch(ProgramQueuePair& qp, uint64_t operations) {
  constexpr uint64_t kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr uint64_t kUnreliable =
      kSends | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
  constexpr uint64_t kReliable = kUnreliable | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;
  const ibv_qp_type type = qp.base.qp.qp_type;
  if ((operations & ~(type == IBV_QPT_UD ? kSends : type == IBV_QPT_UC ? kUnreliable : kReliable)) != 0) return false;
  qp.batch = std::make_shared<Batch>();
  qp.base.behind.comp_mask = qp.base.behind.later_comp_mask = kExtendedQueuePair;
  ibv_qp_ex& to = qp.base.qp_ex;
  to.wr_start = start;
  to.wr_complete = complete;
  to.wr_abort = abort;
  to.wr_atomic_cmp_swp = compare_swap;
  to.wr_atomic_fetch_add = fetch_add;
  to.wr_bind_mw = bind;
  to.wr_local_inv = invalidate;
  to.wr_rdma_read = read;
  to.wr_rdma_write = write;
  to.wr_rdma_write_imm = write_immediate;
  to.wr_send = send;
  to.wr_send_imm = send_immediate;
  to.wr_send_inv = send_invalidate;
  to.wr_set_ud_addr = set_address;
  to.wr_set_inline_data = set_inline;
  to.wr_set_inline_data_list = set_inline_list;
  to.wr_set_sge = set_piece;
  to.wr_set_sge_list = set_pieces;
  return true;
}

}  // namespace weir
