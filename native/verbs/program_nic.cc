#include "verbs/program_nic.h"

#include <endian.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/native_error.h"
#include "verbs/touch.h"

namespace weir {
namespace {

constexpr uint32_t kPacketMask = kProgramPackets - 1;
constexpr uint32_t kFrameMask = kProgramFrames - 1;
constexpr uint32_t kFramesOfTurn = 128;
// Data packets of a queue pair that wait in the daemon: fewer where they leave slowly, so that a timer does not run out there.
constexpr uint32_t kLeastSubmitted = 4;
constexpr uint32_t kMostSubmitted = 128;
constexpr Time kSlow = 2 * kMillisecond;
constexpr Time kFast = 500 * kMicrosecond;
// The thread leaves all to who polls without a pause, and looks whether somebody still does: the more seldom, the longer so. Who
// waits for memory to change polls seldom, and then it is the thread that changes it.
constexpr Time kPolledLately = 10 * kMicrosecond;
constexpr Time kShortestNap = 20 * kMicrosecond;
constexpr Time kLongestNap = 320 * kMicrosecond;
constexpr unsigned long kTimerSlack = 5 * kMicrosecond;
constexpr Time kLongestSleep = 100 * kMillisecond;  // then it looks whether the daemon lives

uint64_t secret() {
  uint64_t value = 0;
  if (::getrandom(&value, sizeof value, 0) < 0) {
    throw NativeError::from_errno("getrandom", "the system gives no random numbers", "allow the system call getrandom");
  }
  return value;
}

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

// Copies `bytes` of what has come to where the program wants them, unless that is its memory no more.
void scatter(const MemoryTable& memory, uint32_t domain, const Staging& staging, uint32_t bytes) {
  const uint8_t* from = staging.bytes.get();
  for (const ibv_sge& piece : staging.pieces) {
    const uint32_t part = std::min(bytes, piece.length);
    for (uint32_t offset = 0; offset < part; offset += kMostTouched) {
      const uint32_t length = std::min(part - offset, kMostTouched);
      uint8_t* to = memory.find(piece.lkey, domain, piece.addr + offset, length, kLocalWrite);
      if (to != nullptr) std::memcpy(to, from + offset, length);
    }
    from += part;
    bytes -= part;
  }
}

}  // namespace

Time program_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

ProgramNic::ProgramNic(const std::string& socket, int events)
    : session_(socket), events_(events), memory_(kRegions, secret(), is_there) {
  catch_touches();
  free_.reserve(kProgramPackets);
  for (uint32_t slot = kProgramPackets; slot > 0; --slot) free_.push_back(slot - 1);
  // Signals are the program's; faults are whose they are.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProgramNic::~ProgramNic() {
  stopping_.store(true, std::memory_order_release);
  ProgramMemory& shared = session_.memory();
  shared.bell.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &shared.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  thread_.join();
}

ProgramAnswer ProgramNic::ask(const ProgramRequest& request) {
  ProgramAnswer answer;
  if (failed()) {
    answer.error = EIO;
    return answer;
  }
  return session_.ask(request);
}

void ProgramNic::add(ProgramQueuePair& qp) { pairs_[qp.base.qp.qp_num] = &qp; }

void ProgramNic::remove(ProgramQueuePair& qp) {
  pairs_.erase(qp.base.qp.qp_num);
  std::erase(dirty_, &qp);
  for (const Staging& staging : qp.sends) {
    if (staging.key != 0) memory_.remove(staging.key);
  }
  qp.receives.clear(memory_);
}

void ProgramNic::attend(ProgramQueuePair& qp) { send(qp, program_now()); }

// Until nothing may go, or the daemon has enough of it.
void ProgramNic::send(ProgramQueuePair& qp, Time now) {
  for (;;) {
    if (free_.empty()) break;
    OutgoingPacket out;
    if (qp.transport->control_waits()) {
      qp.transport->take_control(out);
      write(qp, out, false, now);
    } else if (qp.submitted < qp.most_submitted && qp.transport->data_bytes() > 0) {
      if (!qp.transport->take_data(now, out)) continue;
      write(qp, out, true, now);
      if (qp.transport->next_deadline() == 0) qp.transport->advance(now);
    } else {
      break;
    }
  }
  look_at_draining(qp);
  const bool more = qp.transport->control_waits() || qp.transport->data_bytes() > 0;
  if (more && !qp.dirty) dirty_.push_back(&qp);
  if (more) qp.dirty = true;
  deadline_ = std::min(deadline_, qp.transport->next_deadline());
}

void ProgramNic::write(ProgramQueuePair& qp, const OutgoingPacket& out, bool data, Time now) {
  const uint32_t slot = free_.back();
  free_.pop_back();
  ProgramPacketSlot& at = session_.memory().packets[slot];
  const DataHeader& header = out.header;
  ProgramPacket& packet = at.packet;
  packet.qpn = qp.base.qp.qp_num;
  packet.payload_bytes = out.payload_bytes;
  packet.destination_qp = header.destination_qp;
  packet.address_handle = out.address_handle;
  packet.queue_key = header.deth.queue_key;
  packet.psn = header.psn;
  packet.immediate = header.immediate;
  packet.opcode = header.opcode;
  packet.flags =
      static_cast<uint8_t>((header.ack_request ? ProgramPacket::kAckRequest : 0) |
                           (header.solicited ? ProgramPacket::kSolicited : 0) | (header.becn ? ProgramPacket::kBecn : 0));
  packet.aeth = header.aeth;
  packet.reth = header.reth;
  packet.atomic = header.atomic;
  packet.atomic_original = header.atomic_original;
  if (out.payload_bytes > 0) std::memcpy(at.payload, out.payload, out.payload_bytes);
  sent_[slot] = {qp.base.qp.qp_num, packet.address_handle, data, now};
  ++qp.unsent;
  qp.submitted += data;
  session_.memory().submitted[submitted_++ & kPacketMask].store(slot, std::memory_order_relaxed);
}

void ProgramNic::submit() {
  if (submitted_ != published_) {
    published_ = submitted_;
    session_.memory().submitted_written.store(submitted_, std::memory_order_release);
    session_.wake_nic();
  }
  // A deadline that the thread does not know of.
  if (sleeps_until_ - deadline_ > kMillisecond) {
    sleeps_until_ = deadline_;
    ProgramMemory& shared = session_.memory();
    shared.bell.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &shared.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

void ProgramNic::take_returned(Time now) {
  ProgramMemory& shared = session_.memory();
  const uint32_t written = shared.returned_written.load(std::memory_order_acquire);
  for (; returned_ != written; ++returned_) {
    const uint32_t slot = shared.returned[returned_ & kPacketMask].load(std::memory_order_relaxed) & kPacketMask;
    const Sent sent = std::exchange(sent_[slot], {});
    free_.push_back(slot);
    const auto found = pairs_.find(sent.qpn);
    if (found == pairs_.end()) continue;
    ProgramQueuePair& qp = *found->second;
    --qp.unsent;
    if (!sent.data) continue;
    --qp.submitted;
    if (now - sent.at > kSlow) {
      qp.most_submitted = std::max(kLeastSubmitted, qp.most_submitted - qp.most_submitted / 8);
    } else if (now - sent.at < kFast) {
      qp.most_submitted = std::min(kMostSubmitted, qp.most_submitted + 1);
    }
  }
}

// The daemon's counters are of the NIC and of all its programs.
void ProgramNic::tell_counters() {
  ProgramMemory& shared = session_.memory();
  for (int i = 0; i < TransportCounters::kCount; ++i) {
    shared.counted[i].store(counters_.words()[i], std::memory_order_relaxed);
  }
}

// Returns whether anything has come or gone.
bool ProgramNic::turn(Time now) {
  ProgramMemory& shared = session_.memory();
  const uint32_t before = submitted_ + returned_ + frames_;
  const bool timers = deadline_ <= now;
  const uint32_t written = shared.frames_written.load(std::memory_order_acquire);
  for (uint32_t count = 0; frames_ != written && count < kFramesOfTurn; ++count) {
    const ProgramFrameSlot& slot = shared.frames[frames_ & kFrameMask];
    if (const auto found = pairs_.find(slot.meta.destination_qp); found != pairs_.end()) {
      ProgramQueuePair& qp = *found->second;
      qp.transport->receive(now, slot.bytes, slot.meta);
      if (qp.shared != nullptr) look_at_limit(*qp.shared);
      if (!qp.dirty) dirty_.push_back(&qp);
      qp.dirty = true;
    } else {
      ++counters_.drop_wrong_state;  // it has been destroyed meanwhile
    }
    shared.frames_read.store(++frames_, std::memory_order_release);
  }
  take_returned(now);
  if (timers) {
    deadline_ = kNever;
    for (const auto& [qpn, qp] : pairs_) {
      if (qp->transport->next_deadline() <= now) {
        qp->transport->advance(now);
        if (!qp->dirty) dirty_.push_back(qp);
        qp->dirty = true;
      }
      deadline_ = std::min(deadline_, qp->transport->next_deadline());
    }
  }
  // Those that have more afterwards are in the list again.
  attended_.swap(dirty_);
  for (ProgramQueuePair* qp : attended_) {
    qp->dirty = false;
    send(*qp, now);
  }
  attended_.clear();
  submit();
  const bool moved = submitted_ + returned_ + frames_ != before;
  if (moved || timers) tell_counters();
  return moved;
}

void ProgramNic::help() {
  const Time now = program_now();
  polled_.store(now, std::memory_order_relaxed);
  if (!mutex_.try_lock()) return;
  const bool moved = turn(now);
  mutex_.unlock();
  if (moved) {
    polled_.store(program_now(), std::memory_order_relaxed);
  } else {
    sched_yield();  // the daemon, which moves things, may want this CPU
  }
}

void ProgramNic::wait_until(const std::function<bool()>& left) {
  const Time patience = program_now() + 100 * kMillisecond;
  for (Time now = program_now(); now < patience; now = program_now()) {
    {
      const std::lock_guard lock(mutex_);
      turn(now);
      if (failed() || left()) return;
    }
    ::usleep(50);
  }
}

void ProgramNic::let_leave(const ProgramQueuePair& qp) {
  wait_until([&] { return qp.unsent == 0; });
}

void ProgramNic::let_leave_by(uint32_t address_handle) {
  wait_until([&] {
    return std::none_of(std::begin(sent_), std::end(sent_), [&](const Sent& sent) {
      const auto found = sent.qpn == 0 ? pairs_.end() : pairs_.find(sent.qpn);
      return found != pairs_.end() && found->second->datagram && sent.address_handle == address_handle;
    });
  });
}

void ProgramNic::run() {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlack);
  Time looked = 0;
  Time nap = kShortestNap;
  while (!stopping_.load(std::memory_order_acquire)) {
    const Time now = program_now();
    if (now - looked > kLongestSleep) {
      looked = now;
      if (session_.ended()) return fail();
    }
    std::unique_lock lock(mutex_, std::defer_lock);
    if (now - polled_.load(std::memory_order_relaxed) < kPolledLately || !lock.try_lock()) {
      const timespec pause{0, nap};
      nanosleep(&pause, nullptr);
      nap = std::min(2 * nap, kLongestNap);
      continue;
    }
    nap = kShortestNap;
    Time until = now;
    sleeps_until_ = 0;
    if (!turn(now)) until = sleeps_until_ = std::min(deadline_, now + kLongestSleep);
    lock.unlock();
    if (until > now) sleep(until - now);
  }
}

void ProgramNic::sleep(Time duration) {
  ProgramMemory& shared = session_.memory();
  const uint32_t bell = shared.bell.load(std::memory_order_acquire);
  bool waits = true;
  {
    const std::lock_guard lock(mutex_);
    const uint32_t wanted = returned_ + slots_wanted();
    shared.returned_wanted.store(wanted, std::memory_order_relaxed);
    shared.program_sleeps.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    waits = shared.frames_written.load(std::memory_order_acquire) == frames_ &&
            static_cast<int32_t>(shared.returned_written.load(std::memory_order_acquire) - wanted) < 0 &&
            deadline_ >= sleeps_until_;
  }
  if (waits && !stopping_.load(std::memory_order_acquire)) {
    const timespec timeout{static_cast<time_t>(duration / kSecond), static_cast<long>(duration % kSecond)};
    ::syscall(SYS_futex, &shared.bell, FUTEX_WAIT, bell, &timeout, nullptr, 0);
  }
  shared.program_sleeps.store(0, std::memory_order_relaxed);
}

// How many slots have to come back before it is worth a wake: half of what the daemon has of a queue pair that waits for them.
uint32_t ProgramNic::slots_wanted() const {
  uint32_t wanted = kProgramPackets;
  for (const ProgramQueuePair* qp : dirty_) wanted = std::min(wanted, std::max(1u, qp->unsent / 2));
  return wanted;
}

// The daemon is gone: nothing that was posted will be done.
void ProgramNic::fail() {
  const std::lock_guard lock(mutex_);
  failed_.store(true, std::memory_order_release);
  for (const auto& [qpn, qp] : pairs_) {
    if (qp->transport->state() == QueuePairState::reset) continue;
    if (qp->transport->state() == QueuePairState::error) continue;
    qp->transport->modify(QueuePairState::error, {});
    told_error(*qp);
  }
  report(IBV_EVENT_DEVICE_FATAL, nullptr);
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
  const struct {
    uint64_t element;
    uint32_t type;
    uint32_t reserved;
  } event{reinterpret_cast<uint64_t>(element), type, 0};
  static_assert(sizeof event == kEventBytes);
  // With the pipe full, nobody listens.
  (void)!::write(events_, &event, sizeof event);
}

uint32_t ProgramNic::withdraw(int pipe, size_t bytes, const void* element) {
  int waiting = 0;
  if (::ioctl(pipe, FIONREAD, &waiting) < 0 || waiting <= 0) return 0;
  std::vector<uint8_t> events(static_cast<size_t>(waiting));
  const ssize_t got = ::read(pipe, events.data(), events.size());
  uint32_t count = 0;
  for (ssize_t at = 0; at + static_cast<ssize_t>(bytes) <= got; at += static_cast<ssize_t>(bytes)) {
    uint64_t about;
    std::memcpy(&about, events.data() + at, sizeof about);
    if (about == reinterpret_cast<uint64_t>(element)) {
      ++count;
    } else {
      (void)!::write(pipe, events.data() + at, bytes);
    }
  }
  return count;
}

void ProgramNic::complete(const Completion& c) {
  const auto found = pairs_.find(c.qpn);
  if (found == pairs_.end()) return;
  ProgramQueuePair& qp = *found->second;
  if (c.retired == 0) {
    // What the peer did wrong no completion tells.
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
  const auto done = [&](const Staging& staging, bool arrived, uint32_t bytes) {
    if (staging.key == 0) return;
    if (arrived) scatter(memory_, qp.domain, staging, bytes);
    memory_.remove(staging.key);
  };
  if (c.receive) {
    const auto [id, staging] = (qp.shared != nullptr ? qp.shared->posted : qp.receives).take(c.id);
    wc.wr_id = id;
    done(staging, good, c.bytes);
  }
  for (uint32_t left = c.receive ? 0 : c.retired; left > 0 && !qp.sends.empty(); --left) {
    done(qp.sends.front(), left > 1 || good, UINT32_MAX);
    if (left == 1 && qp.sends.front().opcode != IBV_WC_SEND) wc.opcode = qp.sends.front().opcode;
    qp.sends.pop_front();
  }
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
  if ((c.flags & kWithGrh) != 0) wc.wc_flags |= IBV_WC_GRH;
  CompletionQueue& queue = c.receive ? *qp.receive_queue : *qp.send_queue;
  if (!queue.push(wc)) {
    if (!std::exchange(queue.overrun, true)) {
      ++queue.async_events;
      report(IBV_EVENT_CQ_ERR, &queue.base.cq);
    }
    return;
  }
  if (queue.base.cq.channel == nullptr || queue.armed.load() == CompletionQueue::kNone) return;
  // What failed is told as if it had been asked for (IBTA volume 1, 11.4.2.2).
  if (queue.armed.load() == CompletionQueue::kSolicited && good && !c.solicited) return;
  queue.armed.store(CompletionQueue::kNone);
  const auto handle = reinterpret_cast<uint64_t>(&queue.base.cq);
  ++queue.events;
  (void)!::write(queue.base.cq.channel->fd, &handle, sizeof handle);
}

}  // namespace weir
