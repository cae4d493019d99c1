#include "endpoint/soft_nic.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/native_error.h"
#include "endpoint/stream_transport.h"

namespace weir {
namespace {

WEIR_FETCHES inline void fetch_pair(const QueuePair& qp) {
  const auto* behind = reinterpret_cast<const char*>(&qp.parameters.path);
  fetch_bytes(&qp, static_cast<size_t>(behind - reinterpret_cast<const char*>(&qp)));
  fetch_bytes(&qp.counters, 1);
}

const NicParameters& checked(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs,
                             const PacketPool& pool) {
  check(parameters);
  for (const QueuePairParameters& qp : queue_pairs) check(qp, pool, (hears(parameters.congestion) & kHearsTelemetry) != 0);
  return parameters;
}

}  // namespace

SoftNic::SoftNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool,
                 Driver& driver, CompletionSink* completions)
    : driver_(driver),
      pool_(pool),
      egress_(
          checked(parameters, queue_pairs, pool).rate, parameters_.scheduler,
          static_cast<uint32_t>(queue_pairs.size()) + parameters.verbs_queue_pairs + StackQueues::count(parameters.stack_queue)),
      parameters_(parameters),
      pairs_(parameters_, queue_pairs, pool, completions),
      stack_(parameters.stack_queue),
      notifications_(pairs_.size(), parameters.verbs_queue_pairs > 0, counters_.np_cnp_withheld),
      receive_buffer_(parameters.receive_buffer) {
  first_timer_ = 2 * (pairs_.size() + stack_.size());
  itself_ = first_timer_ + pairs_.size();
  make_flows();
  apply_parameters();
  if (parameters_.pause_storm.priorities != 0) storm_at_ = parameters_.pause_storm.start;
  want(next_event());
}

void SoftNic::reconfigure(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs) {
  require(queue_pairs.size() == streams(), "NIC", "the number of queue pairs cannot change");
  const bool same_flows = parameters_.same_flows(checked(parameters, queue_pairs, pool_));
  if (!same_flows) settle_flows();
  const NicParameters before = parameters_;
  parameters_ = parameters;  // flows and the scheduler refer to it
  parameters_.rate = before.rate;
  parameters_.mac = before.mac;
  parameters_.first_qpn = before.first_qpn;
  parameters_.receive_buffer = before.receive_buffer;
  parameters_.stack_queue = before.stack_queue;
  parameters_.verbs_queue_pairs = before.verbs_queue_pairs;
  parameters_.addresses = before.addresses;
  parameters_.vlan = before.vlan;
  parameters_.listener = before.listener;
  if (same_flows) {
    flows_->take_parameters();
  } else {
    make_flows();
  }
  apply_parameters();
  storm();
  for (uint32_t i = 0; i < streams(); ++i) {
    QueuePairParameters& own = pairs_[i].parameters;
    own.rate_cap = queue_pairs[i].rate_cap;
    flows_->set_cap(i, own.rate_cap);
    if (own.path.destination_mac != queue_pairs[i].path.destination_mac) redirect(i, queue_pairs[i].path.destination_mac);
  }
  if (!hears(kHearsCnps)) notifications_.clear();
  notifications_.shorten(now_ + parameters_.cnp_interval);
  for (uint32_t i = 0; i < pairs_.size(); ++i) repace(i);
  go_on();
}

void SoftNic::apply_parameters() {
  notifications_.limit(now_, parameters_.cnp_nic_interval);
  const PauseStorm& storm = parameters_.pause_storm;
  egress_.pfc.configure(parameters_.rate, parameters_.link_pause, storm.priorities != 0 ? storm.quanta : kMaxPauseQuanta);
}

Rate SoftNic::allowed_rate(const QueuePair& qp) const {
  if (!qp.started || qp.state == QueuePair::State::finished) return 0;
  return limit_of(static_cast<uint32_t>(&qp - &pairs_[0]));
}

Rate SoftNic::limit_of(uint32_t index) const {
  Rate rate = parameters_.rate;
  for (const uint32_t flow : {index, flows_->group_of(index)}) {
    if (flow != kNone && (*flows_)[flow].rate > 0) rate = std::min(rate, (*flows_)[flow].rate);
  }
  return rate;
}

// ---- time ----

Time SoftNic::next_event() const {
  const bool turn = notifications_.next_cnp() <= now_;
  const auto cnps = static_cast<uint8_t>(notifications_.owed() && turn ? 1u << parameters_.cnp_priority : 0u);
  const Time next_cnp = notifications_.owed() && !turn ? notifications_.next_cnp() : kNever;
  return earliest(egress_.next_deadline(cnps), retry_at_, receive_buffer_.next_deadline(), notifications_.next_deadline(),
                  next_cnp, storm_at_);
}

// Goes through the events of its own up to now; the first of them is known since the last event. Returns the time of the next.
Time SoftNic::go_through(Time now) {
  Time at = wakes_;
  for (; at <= now; at = next_event()) {
    now_ = std::max(now_, at);
    step(at);
  }
  return at;
}

// Handles everything due at `at`. now_ is later than `at` only after skip_to(): then sending happens at now_.
void SoftNic::step(Time at) {
  egress_.look(now_);
  retry_at_ = kNever;
  egress_.pause.advance(now_);
  egress_.pfc.advance(now_);
  receive_buffer_.advance(now_);
  if (storm_at_ <= now_) storm();
  resume_link();
  expire_windows(at);
  start_next();
}

// Resumes the priorities that nothing holds stopped any more.
void SoftNic::resume_link() {
  const uint8_t stays = parameters_.pause_storm.at(now_) | awaited_;
  for (uint8_t left = egress_.pfc.stopped_mask() & ~stays; left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    const int priority = __builtin_ctz(left);
    if (receive_buffer_.below_xon(priority)) egress_.pfc.resume(priority, now_);
  }
}

void SoftNic::programs_have_room() {
  awaited_ = 0;
  resume_link();
  go_on();
}

// One begins, or ends: then what it has stopped goes on, unless the host's buffer is full.
void SoftNic::storm() {
  const PauseStorm& storm = parameters_.pause_storm;
  for (uint8_t left = storm.at(now_); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
    egress_.pfc.stop(__builtin_ctz(left), now_);
  }
  storm_at_ = storm.next(now_);
}

// Ends the handling of every event.
void SoftNic::go_on() {
  start_next();
  want(next_event());
}

void SoftNic::want(Time next) {
  if (next == wakes_) return;
  wakes_ = next;
  driver_.wake(itself(), next);
}

void SoftNic::advance(Time now) {
  const bool something = wakes_ <= now;
  catch_up(now);
  if (something) go_on();
}

void SoftNic::wake(uint32_t what, Time at) {
  const uint32_t pairs = pairs_.size();
  if (what == itself()) {
    if (wakes_ != at) return;
    const Time next = go_through(at);
    wakes_ = kNever;
    return want(next);
  }
  const bool of_flow = what < timer(0);
  if (of_flow && what >= pairs && what >= flows_->size()) return;  // a group of before a reload
  const uint32_t index = of_flow ? what : what - timer(0);
  Time& wanted = of_flow ? (*flows_)[index].wakes : pairs_[index].timer_wakes;
  if (wanted != at) return;
  catch_up(at);
  wanted = kNever;
  if (what < pairs) {
    line_up(index);
  } else if (of_flow) {
    serve(index);
  } else if (pairs_[index].transport != nullptr) {
    pairs_[index].transport->advance(now_);
    hear(index, now_);
    attend(index);
  }
  go_on();
}

// A timer that ends earlier than it must is looked at again then: most are put off before they end.
void SoftNic::schedule_timer(uint32_t index, Time at) {
  Time& wakes = pairs_[index].timer_wakes;
  if (wakes <= at) return;
  wakes = at;
  driver_.wake(timer(index), at);
}

// Replaces the time for which the flow was scheduled before; kNever: not at all.
void SoftNic::schedule(uint32_t flow, Time at) {
  Time& wakes = (*flows_)[flow].wakes;
  if (wakes == at) return;
  wakes = at;
  driver_.wake(flow, at);
}

void SoftNic::hold(bool held) {
  egress_.hold(held);
  go_on();
}

// Hardly anything of a queue pair is in a cache when its time comes, where there are many of them.
void SoftNic::fetch(uint32_t what) const {
  if (what >= flows_->size()) return;
  fetch_bytes(&(*flows_)[what], sizeof(Flow));
  if (what < pairs_.size()) fetch_pair(pairs_[what]);
}

void SoftNic::fetch_transport(uint32_t what) const {
  if (what < pairs_.size()) return fetch_bytes(pairs_[what].transport.get(), sizeof(StreamTransport));
  if (what >= flows_->size()) return;
  if (const uint32_t first = (*flows_)[what].first; first != kNone) fetch_pair(pairs_[first]);
}

// ---- applications ----

uint32_t SoftNic::create_queue_pair(const VerbsQueuePairParameters& parameters) {
  const uint32_t index = pairs_.create(parameters);
  if (index == kNone) return 0;
  flows_->reset(index, pairs_[index], now_);
  return pairs_[index].qpn;
}

const QueuePair* SoftNic::find_queue_pair(uint32_t qpn) const {
  const uint32_t index = pairs_.find_verbs(qpn);
  return index == kNone ? nullptr : &pairs_[index];
}

bool SoftNic::destroy_queue_pair(uint32_t qpn) {
  const uint32_t index = pairs_.find_verbs(qpn);
  if (index == kNone) return false;
  forget(index);
  groups_.forget(qpn);
  pairs_[index].transport.reset();
  go_on();  // it may have been another's turn since
  return true;
}

void SoftNic::attach_group(uint32_t qpn, const IpAddress& group) {
  const uint32_t index = pairs_.find_verbs(qpn);
  if (index == kNone || !pairs_[index].datagram()) {
    throw NativeError("INVALID_QPN", 0, "", "there is no queue pair of datagrams " + std::to_string(qpn),
                      "it may have been destroyed");
  }
  if (!groups_.attach(group, qpn)) {
    throw NativeError("NO_RESOURCES", 0, "", "no room for one more member of a multicast group",
                      "4096 groups, and 256 queue pairs in each, are as many as can be: leave some of them");
  }
}

bool SoftNic::abandon_queue_pair(uint32_t qpn) {
  const uint32_t index = pairs_.find_verbs(qpn);
  if (index == kNone || !pairs_.abandon(index)) return false;
  attend(index);
  go_on();
  return true;
}

void SoftNic::modify_queue_pair(uint32_t qpn, QueuePairState to, const QueueAttributes& attributes, const RocePath& path,
                                uint8_t priority, Rate rate_cap) {
  const uint32_t index = pairs_.find_verbs(qpn);
  if (index == kNone) {
    throw NativeError("INVALID_QPN", 0, "", "there is no queue pair " + std::to_string(qpn), "it may have been destroyed");
  }
  QueuePair& qp = pairs_[index];
  QueuePairParameters parameters = qp.parameters;
  parameters.remote_qpn = attributes.remote_qpn;
  parameters.path = path;
  parameters.priority = priority;
  parameters.rate_cap = rate_cap;
  parameters.transport = attributes;
  if (hears(kHearsAcknowledgements)) parameters.transport.informs = true;
  if (hears(kHearsTelemetry)) parameters.transport.telemetry = true;
  check(parameters);
  if (to == QueuePairState::init || to == QueuePairState::rtr) require_room(pool_, attributes.path_mtu, hears(kHearsTelemetry));
  qp.verbs()->modify(to, parameters.transport);
  if (to == QueuePairState::reset) forget(index);
  if (to == QueuePairState::rtr) {
    qp.parameters = parameters;
    qp.connected = !qp.datagram();
    flows_->reset(index, qp, now_);
    bind(index);
  }
  if (to == QueuePairState::rts) {
    qp.parameters.rate_cap = rate_cap;
    flows_->set_cap(index, rate_cap);
    repace(index);
  }
  attend(index);
  go_on();
}

void SoftNic::post_send(uint32_t qpn, const SendWork& work, uint32_t times) {
  const uint32_t index = pairs_.find_verbs(qpn);
  if (index == kNone) return;
  pairs_[index].verbs()->post_send(work, times);
  attend(index);
  go_on();
}

void SoftNic::attend_queue_pair(uint32_t qpn) {
  const uint32_t index = pairs_.find_verbs(qpn);
  if (index == kNone) return;
  attend(index);
  go_on();
}

void SoftNic::post_receive(uint32_t qpn, const ReceiveWork& work, uint32_t times) {
  const uint32_t index = pairs_.find_verbs(qpn);
  if (index != kNone) pairs_[index].verbs()->post_receive(work, times);
}

}  // namespace weir
