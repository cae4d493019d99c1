#include "endpoint/soft_nic.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/native_error.h"
#include "endpoint/stream_transport.h"

namespace weir {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr Time kFetchAhead = 16 * 1'024;
constexpr size_t kMany = 2'048;  // queue pairs, of less than 1 KB each, that a cache of the second level has no room for
constexpr uint32_t kMaxPayload = 4'096;
constexpr Time kTimerTick = 16'384;
constexpr uint32_t kStreamDomain = UINT32_MAX;

// GCC drops calls of functions that do nothing but fetch.
#define WEIR_FETCHES __attribute__((always_inline))

WEIR_FETCHES inline void fetch(const void* object, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(object) + at);
}

const NicParameters& checked(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs,
                             const PacketPool& pool) {
  check(parameters);
  for (const QueuePairParameters& qp : queue_pairs) check(qp, pool);
  return parameters;
}

}  // namespace

SoftNic::SoftNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool,
                 CompletionSink* completions, Driver* driver)
    : link_(checked(parameters, queue_pairs, pool).rate),
      driver_(driver),
      pool_(pool),
      streams_(static_cast<uint32_t>(queue_pairs.size())),
      notifications_(streams_ + parameters.verbs_queue_pairs, parameters.verbs_queue_pairs > 0),
      receive_buffer_(parameters.receive_buffer),
      parameters_(parameters),
      wheel_(driver == nullptr ? streams_ + parameters.verbs_queue_pairs : 0, kTick),
      timers_(driver == nullptr ? streams_ + parameters.verbs_queue_pairs : 0, kTimerTick),
      generations_(parameters.verbs_queue_pairs),
      memory_(parameters.memory_regions + 1, parameters.key_secret),
      stream_context_{memory_,
                      0,
                      kStreamDomain,
                      transport_counters_,
                      parameters.listener,
                      pool.has_payload(),
                      parameters.congestion_control == CongestionControl::dctcp ? &parameters_.dctcp : nullptr},
      completions_(completions),
      payload_(kMaxPayload) {
  scheduler_.configure(parameters_.scheduler);
  pfc_.configure(parameters_.rate);
  for (size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<uint8_t>(i);
  stream_context_.key = memory_.add(ReliableStream::region(payload_.data(), kStreamDomain));
  queue_pairs_.reserve(streams_ + parameters.verbs_queue_pairs);  // transports refer to their counters
  for (const QueuePairParameters& parameters_of : queue_pairs) {
    QueuePair& qp = queue_pairs_.emplace_back(parameters_of);
    qp.qpn = parameters_.first_qpn + index_of(qp);
    qp.connected = true;
    qp.transport = make_stream(qp);
    qp.reaction_point.configure(&parameters_.reaction_point, parameters_.rate);
    take_shape(qp);
    if (qp.parameters.path.source_mac != parameters_.mac) own_macs_.insert(qp.parameters.path.source_mac);
  }
  for (uint32_t i = 0; i < parameters_.verbs_queue_pairs; ++i) queue_pairs_.emplace_back(QueuePairParameters{});
  make_flows();
}

void SoftNic::take_shape(QueuePair& qp) {
  if (pool_.has_payload()) return;
  uint8_t frame[kMaxHeaders];
  DataHeader header;
  header.opcode = kOpcodeRcSendOnly;
  classify(frame, qp.headers.build_data(frame, header, nullptr, 0), qp.shape);
}

std::unique_ptr<Transport> SoftNic::make_stream(QueuePair& qp) {
  const QueuePairParameters& p = qp.parameters;
  if (!p.reliable) {
    const StreamTarget target{p.remote_qpn, p.remote_address, p.remote_key};
    return std::make_unique<StreamTransport>(p.stream, target, payload_.data(), transport_counters_, qp.counters,
                                             StreamEnd{parameters_.listener, qp.qpn, p.peer_start});
  }
  // The peer has its region in the same place.
  const ReliableStreamParameters parameters{.stream = p.stream,
                                            .sizes = p.sizes,
                                            .outstanding = p.outstanding,
                                            .target = {p.remote_qpn, 0, stream_context_.key},
                                            .recovery = p.transport.recovery,
                                            .timeout = p.transport.timeout,
                                            .retry_count = p.transport.retry_count,
                                            .window = p.transport.window};
  auto stream = std::make_unique<ReliableStream>(qp.qpn, parameters, stream_context_, qp.counters);
  qp.stream = stream.get();
  return stream;
}

void SoftNic::reconfigure(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs) {
  require(queue_pairs.size() == streams_, "NIC", "the number of queue pairs cannot change");
  const NicParameters before = parameters_;
  parameters_ = checked(parameters, queue_pairs, pool_);  // reaction points and the scheduler refer to it
  parameters_.rate = before.rate;
  parameters_.mac = before.mac;
  parameters_.first_qpn = before.first_qpn;
  parameters_.receive_buffer = before.receive_buffer;
  parameters_.verbs_queue_pairs = before.verbs_queue_pairs;
  parameters_.addresses = before.addresses;
  parameters_.listener = before.listener;
  for (uint32_t i = 0; i < streams_; ++i) {
    QueuePairParameters& own = queue_pairs_[i].parameters;
    own.rate_cap = queue_pairs[i].rate_cap;
    if (own.path.destination_mac != queue_pairs[i].path.destination_mac) redirect(i, queue_pairs[i].path.destination_mac);
  }
  if (!parameters_.same_flows(before)) make_flows();
  if (!dcqcn()) notifications_.clear();
  notifications_.shorten(now_ + parameters_.cnp_interval);
  for (uint32_t i = 0; i < queue_pairs_.size(); ++i) {
    count_limited(queue_pairs_[i]);
    repace(i);
  }
  if (!busy()) start_next();
}

Rate SoftNic::allowed_rate(const QueuePair& qp) const {
  if (!qp.started || qp.state == QueuePair::State::finished) return 0;
  Rate rate = parameters_.rate;
  if (dcqcn()) rate = std::min(rate, qp.reaction_point.rate());
  if (const uint32_t flow = flow_of(qp); flow != kNone) rate = std::min(rate, (*flows_)[flow].rate.rate());
  if (qp.parameters.rate_cap > 0) rate = std::min(rate, qp.parameters.rate_cap);
  return std::max<Rate>(rate, 1);
}

uint32_t SoftNic::find_qp(uint32_t qpn) const {
  const uint32_t stream = qpn - parameters_.first_qpn;
  if (stream < streams_) return stream;
  if (parameters_.verbs_queue_pairs == 0) return kNone;
  const uint32_t place = streams_ + qpn % parameters_.verbs_queue_pairs;
  return queue_pairs_[place].qpn == qpn && queue_pairs_[place].transport != nullptr ? place : kNone;
}

// ---- what transports want ----

// The transport has heard something, or has been given something: what does it want now?
void SoftNic::attend(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  if (!qp.converses()) return;
  schedule_timer(index, qp.transport->next_deadline());
  if (!qp.answers && qp.transport->control_waits()) {
    qp.answers = true;
    qp.next_answer = kNone;
    ReadyList& list = answers_[qp.parameters.priority];
    (list.head == kNone ? list.head : queue_pairs_[list.tail].next_answer) = index;
    list.tail = index;
    answering_ = static_cast<uint8_t>(answering_ | 1u << qp.parameters.priority);
  }
  if (qp.state != QueuePair::State::idle || !(qp.started || qp.verbs != nullptr)) return;
  if (qp.transport->data_bytes() > 0) return due(index);
  if (qp.stream != nullptr && qp.stream->ended()) finish(qp);
}

// A timer that ends earlier than it must is looked at again then: most are put off before they end.
void SoftNic::schedule_timer(uint32_t index, Time at) {
  if (driver_ == nullptr) {
    if (at == kNever) {
      timers_.cancel(index);
    } else if (!timers_.scheduled(index) || timers_.at(index) > at) {
      timers_.schedule(index, at);
    }
  } else if (Time& wakes = queue_pairs_[index].timer_wakes; wakes > at) {
    wakes = at;
    driver_->wake(kTimer | index, at);
  }
}

// Replaces the time for which the QP was scheduled before; kNever: not at all.
void SoftNic::schedule(uint32_t index, Time at) {
  if (driver_ == nullptr) return wheel_.schedule(index, at);
  Time& wakes = queue_pairs_[index].wakes;
  if (wakes == at) return;
  wakes = at;
  if (at != kNever) driver_->wake(index, at);
}

void SoftNic::wake(uint32_t what, Time at) {
  if ((what & kFlow) != 0) return wake_flow(what & ~kFlow, at);
  const uint32_t index = what & ~kTimer;
  QueuePair& qp = queue_pairs_[index];
  Time& wanted = (what & kTimer) != 0 ? qp.timer_wakes : qp.wakes;
  if (wanted != at) return;
  wanted = kNever;
  advance(at);
  if ((what & kTimer) != 0) {
    qp.transport->advance(now_);
    attend(index);
  } else {
    due(index);
  }
  if (!busy()) start_next();
}

void SoftNic::serve(uint32_t index) {
  attend(index);
  if (!busy()) start_next();
}

// ---- time ----

Time SoftNic::next_deadline() const {
  // A driver has the frame already; it need not come for nothing.
  return sending_ && driver_ == nullptr ? std::min(next_event(), busy_until_) : next_event();
}

// As next_deadline(), but the link that falls free is nothing when there is nothing to send.
Time SoftNic::next_event() const {
  Time next = std::min({pfc_.next_deadline(), retry_at_, receive_buffer_.next_deadline()});
  if (driver_ == nullptr) next = std::min({next, wheel_.next_deadline(), timers_.next_deadline()});
  next = std::min(next, notifications_.next_deadline());
  if (!waits()) return next;
  if (sending_) return std::min(next, busy_until_);
  const uint8_t waiting =
      static_cast<uint8_t>(backlogged_ | answering_ | (notifications_.owed() ? 1u << parameters_.cnp_priority : 0u));
  return std::min(next, pause_.next_resume(waiting));
}

void SoftNic::advance(Time now) {
  for (Time at = next_event(); at <= now; at = next_event()) {
    now_ = std::max(now_, at);
    step(at);
  }
  now_ = std::max(now_, now);
  // No step came to the end of the frame if there was nothing to send behind it.
  if (!waits() && !busy()) sending_ = false;
}

// Handles everything due at `at`. now_ is later than `at` only after skip_to(): then sending happens at now_.
void SoftNic::step(Time at) {
  if (!busy()) sending_ = false;
  retry_at_ = kNever;
  pause_.advance(now_);
  pfc_.advance(now_);
  check_receive_buffer();
  expire_windows(at);
  if (driver_ == nullptr) ring(at);
  if (!busy()) start_next();
}

// Timers that end at `at`, and QPs that are due by now_.
void SoftNic::ring(Time at) {
  // By `at`, not by now_: after skip_to() there may be answers still to come that arrived before the timer ends.
  for (uint32_t index = timers_.pop_due(at); index != TimingWheel::kNone; index = timers_.pop_due(at)) {
    queue_pairs_[index].transport->advance(now_);
    attend(index);
  }
  const auto pairs = static_cast<uint32_t>(queue_pairs_.size());  // flows are behind them
  for (uint32_t index = wheel_.pop_due(now_); index != TimingWheel::kNone; index = wheel_.pop_due(now_)) {
    if (index < pairs) {
      due(index);
    } else {
      serve_flow(index - pairs);
    }
  }
  if (pairs >= kMany) fetch_ahead();
}

// Hardly anything of a queue pair is in a cache when its time comes, where there are many of them.
void SoftNic::fetch_ahead() {
  const auto fetch_pair = [](const QueuePair& qp) WEIR_FETCHES {
    fetch(&qp, offsetof(QueuePair, counters) + sizeof qp.counters);
    fetch(&qp.parameters, 64);
    fetch(&qp.headers, sizeof qp.headers);
  };
  const size_t pairs = queue_pairs_.size();
  wheel_.look_ahead(fetched_, now_ + kFetchAhead, [this, pairs, fetch_pair](uint32_t index) WEIR_FETCHES {
    if (index < pairs) return fetch_pair(queue_pairs_[index]);
    fetch(&(*flows_)[static_cast<uint32_t>(index - pairs)], sizeof(ReactionPoint));
  });
  wheel_.look_ahead(fetched_transports_, now_ + kFetchAhead / 2, [this, pairs, fetch_pair](uint32_t index) WEIR_FETCHES {
    if (index < pairs) return fetch(queue_pairs_[index].transport.get(), sizeof(StreamTransport));
    const uint32_t first = (*flows_)[static_cast<uint32_t>(index - pairs)].first;
    if (first < pairs) fetch_pair(queue_pairs_[first]);
  });
}

void SoftNic::due(uint32_t index) {
  if (governed(index)) return take_turn(index);
  QueuePair& qp = queue_pairs_[index];
  if (!qp.started && !begin(qp)) return;
  if (qp.parameters.stop <= now_) return finish(qp);
  qp.reaction_point.advance(now_);
  count_limited(qp);
  const Rate rate = allowed_rate(qp);
  if (rate != qp.paced_rate) {
    qp.pacer.rate_changed(now_, rate);
    qp.paced_rate = rate;
  }
  if (qp.pacer.release() <= now_) {
    push_ready(index);
  } else {
    wait(index);
  }
}

void SoftNic::finish(QueuePair& qp) {
  qp.state = QueuePair::State::finished;
  --active_;
  if (flow_of(qp) != kNone) flows_->leave(index_of(qp));
  count_limited(qp);
  if (qp.stream != nullptr) qp.stream->close();
}

// To be called whenever a reaction point may have begun or ceased to limit: a look at all queue pairs takes too long.
void SoftNic::count_limited(QueuePair& qp) {
  const bool limited = dcqcn() && qp.started && qp.state != QueuePair::State::finished && qp.reaction_point.limited();
  if (limited == qp.limited) return;
  qp.limited = limited;
  counters_.rp_cur_flows += limited ? 1 : uint64_t{0} - 1;
}

// Back into the wheel until the next packet's release, or until the rate may rise or the QP must stop before then.
void SoftNic::wait(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  qp.state = QueuePair::State::waiting;
  const Time rises = dcqcn() ? qp.reaction_point.next_deadline() : kNever;
  schedule(index, std::min({qp.pacer.release(), rises, qp.parameters.stop}));
}

// The rate of a QP has changed while its next packet waits.
void SoftNic::repace(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  if (qp.state != QueuePair::State::waiting) return;
  if (governed(index)) return take_turn(index);
  const Rate rate = allowed_rate(qp);
  qp.pacer.rate_changed(now_, rate);
  qp.paced_rate = rate;
  wait(index);
}

void SoftNic::push_ready(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  qp.state = QueuePair::State::ready;
  qp.next_ready = kNone;
  ReadyList& list = ready_[qp.parameters.priority];
  if (list.head == kNone) {
    list.head = index;
  } else {
    queue_pairs_[list.tail].next_ready = index;
  }
  list.tail = index;
  backlogged_ = static_cast<uint8_t>(backlogged_ | 1u << qp.parameters.priority);
}

void SoftNic::settle_counters() {
  for (int p = 0; p < kPriorities; ++p) {
    NicPriorityCounters& counters = priorities_[static_cast<size_t>(p)];
    counters.rx_prio_pause_transition = pause_.ended(p);
    counters.rx_prio_pause_duration = static_cast<uint64_t>(pause_.paused_for(p, now_));
    counters.tx_prio_pause_duration = static_cast<uint64_t>(pfc_.stopped_for(p, now_));
  }
  if (flows_ != nullptr) settle_flows();
}

}  // namespace weir
