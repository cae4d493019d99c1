#include "verbs/program_nic.h"

#include <endian.h>

#include <utility>

#include "verbs/touch.h"

namespace weir {
namespace {

// Network header of a datagram, as libmlx5 says it in a completion's service level, which RoCE has no other use for: UCX drops
// datagrams that do not say so.
constexpr uint8_t kSlIpv6 = 1;
constexpr uint8_t kSlIpv4 = 2;

// Number of the only port, which is the element of its events.
constexpr uint64_t kPort = 1;
// A daemon that writes nonsense does not keep the thread busy.
constexpr uint32_t kMostLinkEvents = 64;

ibv_wc_opcode opcode_of(const Completion& c) {
  if (c.receive) return c.opcode == WorkOpcode::write_immediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  switch (c.opcode) {
    case WorkOpcode::write:
    case WorkOpcode::write_immediate:
      return IBV_WC_RDMA_WRITE;
    case WorkOpcode::read:
      return IBV_WC_RDMA_READ;
    case WorkOpcode::compare_swap:
      return IBV_WC_COMP_SWAP;
    case WorkOpcode::fetch_add:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

}  // namespace

ProgramNic::ProgramNic(const std::string& socket, int events) : ProgramTransports(socket, is_there, true, true), events_(events) {
  // A link that is down already is the state that it finds.
  links_ = shared_memory().links.load(std::memory_order_acquire);
  gids_ = shared_memory().gids.load(std::memory_order_acquire);
  catch_touches();
  start();
}

// Work that is not complete is of no use any more, nor are completions that wait.
void ProgramNic::forget(ProgramQueuePair& qp) {
  remove(qp);
  purge(qp);
}

void ProgramNic::purge(ProgramQueuePair& qp) {
  qp.send_queue->purge(qp.qpn);
  if (qp.receive_queue != qp.send_queue) qp.receive_queue->purge(qp.qpn);
}

void ProgramNic::received(ProgramPair& pair) {
  if (auto* shared = static_cast<ProgramQueuePair&>(pair).shared; shared != nullptr) look_at_limit(*shared);
}

void ProgramNic::attended(ProgramPair& pair) { look_at_draining(static_cast<ProgramQueuePair&>(pair)); }

void ProgramNic::changed(ProgramPair& pair, QueuePairState from, QueuePairState to) {
  auto& qp = static_cast<ProgramQueuePair&>(pair);
  qp.tells_drained = false;
  if (to == QueuePairState::rts && qp.drains) {
    qp.transport->drain();
    qp.tells_drained = qp.tells;
  }
  qp.watched = qp.tells_drained;
  if (to == QueuePairState::error && from != QueuePairState::error) told_error(qp);
  if (to == QueuePairState::reset) purge(qp);
}

void ProgramNic::look_at_limit(ProgramSharedReceives& shared) {
  if (shared.queue.size() >= shared.limit) return;
  shared.limit = 0;
  ++shared.events;
  report(IBV_EVENT_SRQ_LIMIT_REACHED, &shared.base.srq);
}

void ProgramNic::look_at_draining(ProgramQueuePair& qp) {
  if (!qp.tells_drained || qp.transport->send_queue_state() != SendQueueState::drained) return;
  qp.tells_drained = false;
  ++qp.events;
  report(IBV_EVENT_SQ_DRAINED, &qp.base.qp);
}

void ProgramNic::told_error(ProgramQueuePair& qp) {
  qp.tells_drained = false;
  if (qp.transport->send_queue_state() == SendQueueState::failed) {
    qp.base.qp.state = IBV_QPS_SQE;
    return;
  }
  qp.base.qp.state = IBV_QPS_ERR;
  if (qp.shared == nullptr || qp.datagram) return;
  ++qp.events;
  report(IBV_EVENT_QP_LAST_WQE_REACHED, &qp.base.qp);
}

void ProgramNic::report(ibv_event_type type, void* element) {
  events_.tell({reinterpret_cast<uint64_t>(element), static_cast<uint32_t>(type), 0});
  if (events_.waits()) told();
}

// A reader of the last event in a pipe just before has not seen that another waits.
void ProgramNic::told() {
  events_wait_.store(true, std::memory_order_seq_cst);
  refill();
}

ProgramNic::Channel& ProgramNic::channel_of(const ibv_cq& cq) {
  const int descriptor = cq.channel->fd;
  return channels_.try_emplace(descriptor, descriptor).first->second;
}

uint32_t ProgramNic::withdraw_completions(ibv_cq& cq) {
  return cq.channel == nullptr ? 0 : channel_of(cq).withdraw(reinterpret_cast<uint64_t>(&cq));
}

void ProgramNic::refill() {
  events_.refill();
  bool waits = events_.waits();
  for (auto& [descriptor, channel] : channels_) {
    channel.refill();
    waits |= channel.waits();
  }
  events_wait_.store(waits, std::memory_order_seq_cst);
}

void ProgramNic::read_event() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // A child process has a copy of what waits, which its parent hands on.
  if (!events_wait_.load(std::memory_order_seq_cst) || ::getpid() != process_) return;
  const std::lock_guard lock(mutex());
  refill();
}

// Each change is an event, also of a link that was gone and came back in between (IBTA volume 1, 11.6.3).
void ProgramNic::look_at_link() {
  const uint32_t now = shared_memory().links.load(std::memory_order_acquire);
  if (links_ == now) return;
  const std::lock_guard lock(mutex());
  for (uint32_t told = 0; links_ != now && told < kMostLinkEvents; ++told) {
    ++links_;
    events_.tell({kPort, static_cast<uint32_t>(links_ % 2 == 1 ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE), 0});
  }
  links_ = now;
  if (events_.waits()) told();
}

// Changes of a moment are one event: the program looks at the table as it is.
void ProgramNic::look_at_gids() {
  const uint32_t now = shared_memory().gids.load(std::memory_order_acquire);
  if (std::exchange(gids_, now) == now) return;
  const std::lock_guard lock(mutex());
  events_.tell({kPort, IBV_EVENT_GID_CHANGE, 0});
  if (events_.waits()) told();
}

void ProgramNic::complete(const Completion& c) {
  ProgramPair* const pair = find(c.qpn);
  if (pair == nullptr) return;
  auto& qp = static_cast<ProgramQueuePair&>(*pair);
  if (c.retired == 0) {
    // No completion tells that the peer did wrong.
    if (c.status == WorkStatus::success) {
      ++qp.events;
      report(IBV_EVENT_QP_ACCESS_ERR, &qp.base.qp);
    }
    return told_error(qp);
  }
  const bool good = c.status == WorkStatus::success;
  ibv_wc wc{};
  wc.wr_id = c.id;
  wc.status = static_cast<ibv_wc_status>(c.status);
  wc.opcode = opcode_of(c);
  if (c.receive) wc.wr_id = (qp.shared != nullptr ? qp.shared->posted : qp.receives).take(c.id);
  for (uint32_t left = c.receive ? 0 : c.retired; left > 0 && !qp.sends.empty(); --left) {
    const ibv_wc_opcode opcode = qp.sends.pop();
    if (left == 1 && opcode != IBV_WC_SEND) wc.opcode = opcode;
  }
  if (qp.direct && c.receive && qp.shared != nullptr) look_at_limit(*qp.shared);
  if (qp.ends) return;
  wc.byte_len = c.bytes;
  wc.qp_num = c.qpn;
  wc.src_qp = c.source_qpn;
  if ((c.flags & kWithImmediate) != 0) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = htobe32(c.immediate);
  }
  if ((c.flags & kWithInvalidate) != 0) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = c.immediate;
  }
  if ((c.flags & kWithGrh) != 0) {
    wc.wc_flags |= IBV_WC_GRH;
    wc.sl = (c.flags & kWithIpv6) != 0 ? kSlIpv6 : kSlIpv4;
  }
  ++seen_;
  CompletionQueue& queue = c.receive ? *qp.receive_queue : *qp.send_queue;
  if (!queue.push(wc)) {
    if (!std::exchange(queue.overrun, true)) {
      ++queue.async_events;
      report(IBV_EVENT_CQ_ERR, &queue.base.cq);
    }
    return;
  }
  if (queue.base.cq.channel == nullptr || queue.armed.load() == CompletionQueue::kNone) return;
  // A failure is told as if it had been asked for (IBTA volume 1, 11.4.2.2).
  if (queue.armed.load() == CompletionQueue::kSolicited && good && !c.solicited) return;
  queue.armed.store(CompletionQueue::kNone);
  ++queue.events;
  Channel& channel = channel_of(queue.base.cq);
  channel.tell({reinterpret_cast<uint64_t>(&queue.base.cq)});
  if (channel.waits()) told();
}

}  // namespace weir
