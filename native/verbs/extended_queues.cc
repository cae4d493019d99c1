// ibv_cq_ex: completions that are read one by one and field by field.
#include <bit>
#include <cerrno>
#include <new>

#include "engine/virtual_turns.h"
#include "verbs/provider.h"
#include "verbs/recording.h"

namespace weir {
namespace {

CompletionQueue& polled(ibv_cq_ex* cq) { return *reinterpret_cast<CompletionQueue*>(cq); }
const ibv_wc& entry_of(ibv_cq_ex* cq) {
  const CompletionQueue& queue = polled(cq);
  return queue.ring[queue.at % queue.ring.size()];
}

void show(ibv_cq_ex* cq) {
  cq->wr_id = entry_of(cq).wr_id;
  cq->status = entry_of(cq).status;
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  const AnsweredCall call(false);
  if (attributes->comp_mask != 0) return EINVAL;
  CompletionQueue& queue = polled(cq);
  if (queue.empty()) look(nic_of(cq->context), queue);
  queue.readers.lock();
  Recording* const recording = Recording::of_process();
  if (queue.empty()) {
    queue.readers.unlock();
    if (recording != nullptr) recording->waits();
    return ENOENT;
  }
  queue.at = queue.read.load(std::memory_order_relaxed);
  show(cq);
  if (recording != nullptr) [[unlikely]]
    recording->completes(entry_of(cq));
  return 0;
}

// The poll ends behind the last completion that was there.
int next_poll(ibv_cq_ex* cq) {
  CompletionQueue& queue = polled(cq);
  if (queue.at + 1 == queue.written.load(std::memory_order_acquire)) return ENOENT;
  ++queue.at;
  show(cq);
  if (Recording* recording = Recording::of_process(); recording != nullptr) [[unlikely]]
    recording->completes(entry_of(cq));
  return 0;
}

void end_poll(ibv_cq_ex* cq) {
  const AnsweredCall call(false);
  CompletionQueue& queue = polled(cq);
  queue.read.store(queue.at + 1, std::memory_order_release);
  queue.readers.unlock();
  nic_of(cq->context).may_leave();
}

template <auto Field>
auto read(ibv_cq_ex* cq) {
  return entry_of(cq).*Field;
}

uint64_t read_clock(ibv_cq_ex* cq) { return polled(cq).stamps[polled(cq).at % polled(cq).ring.size()].clock; }
uint64_t read_wall(ibv_cq_ex* cq) { return polled(cq).stamps[polled(cq).at % polled(cq).ring.size()].wall; }

__be32 read_immediate(ibv_cq_ex* cq) { return entry_of(cq).imm_data; }

ibv_cq_ex* create_cq_ex(ibv_context*, ibv_cq_init_attr_ex* init) {
  constexpr uint64_t kStamped = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  if ((init->wc_flags & ~(static_cast<uint64_t>(IBV_WC_STANDARD_FLAGS) | kStamped)) != 0) return errno = EOPNOTSUPP, nullptr;
  if ((init->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) != 0) return errno = EOPNOTSUPP, nullptr;
  constexpr uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  const uint32_t flags = (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? init->flags : 0;
  if ((flags & ~kFlags) != 0) return errno = EOPNOTSUPP, nullptr;
  if (init->cqe < 1 || init->cqe > static_cast<uint32_t>(kMostCompletions) || init->comp_vector != 0) {
    return errno = EINVAL, nullptr;
  }
  auto* queue = new (std::nothrow) CompletionQueue{};
  if (queue == nullptr) return errno = ENOMEM, nullptr;
  queue->ring.resize(std::bit_ceil(init->cqe));
  // A program that promises to poll in time is not told that it did not.
  queue->overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  if ((init->wc_flags & kStamped) != 0) queue->stamps.resize(queue->ring.size());
  ibv_cq_ex& cq = queue->base.cq_ex;
  cq.cqe = static_cast<int>(queue->ring.size());
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read<&ibv_wc::opcode>;
  cq.read_vendor_err = read<&ibv_wc::vendor_err>;
  cq.read_wc_flags = read<&ibv_wc::wc_flags>;
  const auto offer = [&](uint64_t flag, auto& place, auto function) {
    if ((init->wc_flags & flag) != 0) place = function;
  };
  offer(IBV_WC_EX_WITH_BYTE_LEN, cq.read_byte_len, read<&ibv_wc::byte_len>);
  offer(IBV_WC_EX_WITH_IMM, cq.read_imm_data, read_immediate);
  offer(IBV_WC_EX_WITH_QP_NUM, cq.read_qp_num, read<&ibv_wc::qp_num>);
  offer(IBV_WC_EX_WITH_SRC_QP, cq.read_src_qp, read<&ibv_wc::src_qp>);
  offer(
      IBV_WC_EX_WITH_SLID, cq.read_slid, +[](ibv_cq_ex* one) -> uint32_t { return entry_of(one).slid; });
  offer(IBV_WC_EX_WITH_SL, cq.read_sl, read<&ibv_wc::sl>);
  offer(IBV_WC_EX_WITH_DLID_PATH_BITS, cq.read_dlid_path_bits, read<&ibv_wc::dlid_path_bits>);
  offer(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, cq.read_completion_ts, read_clock);
  offer(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, cq.read_completion_wallclock_ns, read_wall);
  if ((init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && init->parent_domain != nullptr) {
    queue->domain = &domain_of(init->parent_domain).users;
    ++*queue->domain;
  }
  return &cq;
}

// Moderation says how late an event may come, at most: here it comes at once, whatever is asked for.
int modify_cq(ibv_cq*, ibv_modify_cq_attr* attributes) {
  return (attributes->attr_mask & ~static_cast<uint32_t>(IBV_CQ_ATTR_MODERATE)) != 0 ? EINVAL : 0;
}

int query_rt_values(ibv_context*, ibv_values_ex* values) {
  const uint32_t asked = values->comp_mask;
  values->comp_mask = 0;
  if ((asked & IBV_VALUES_MASK_RAW_CLOCK) == 0) return 0;
  values->raw_clock = {0, static_cast<long>(CompletionQueue::ns_of(CLOCK_MONOTONIC))};
  values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

}  // namespace

void add_extended_queue_operations(verbs_context_ops& operations) {
  operations.create_cq_ex = create_cq_ex;
  operations.modify_cq = modify_cq;
  operations.query_rt_values = query_rt_values;
}

}  // namespace weir
