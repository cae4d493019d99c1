// The part of the soft NIC between transports and the link: which flow a queue pair passes through, and when it is let go.
#include <algorithm>

#include "endpoint/soft_nic.h"

namespace weir {
namespace {

constexpr uint32_t kCaughtUpAtOnce = 256;  // groups, when counters are settled: the poll loop waits meanwhile
constexpr Time kCentisecond = 10 * kMillisecond;

}  // namespace

// ---- which flow ----

// Schedules all queue pairs, from nothing, or anew after a reload.
void SoftNic::make_flows() {
  flows_ = std::make_unique<FlowTable>(parameters_, pairs_.size(), stack_.size(), counters_);
  for (uint32_t index = 0; index < pairs_.size(); ++index) {
    QueuePair& qp = pairs_[index];
    if (qp.transport == nullptr) continue;
    flows_->reset(index, qp, now_);
    bind(index);
    if (!qp.started) schedule(index, qp.parameters.start);
    if (qp.state == QueuePair::State::waiting) schedule(index, now_);
  }
  line_up_stacks();
}

// A queue pair that sends no data has no group: acknowledgements go ahead of everything.
void SoftNic::bind(uint32_t index) {
  QueuePair& qp = pairs_[index];
  RocePath path = qp.parameters.path;
  if (qp.verbs() != nullptr || qp.parameters.start != kNever || qp.parameters.serves()) flows_->bind(index, qp, now_);
  const uint32_t group = flows_->group_of(index);
  if (group != kNone && parameters_.grouping.cn_tag) path.cn_flow = flows_->flow_id(group);
  pairs_.take_path(index, path);
  if (qp.started && qp.state != QueuePair::State::finished) {
    Heard before;  // is nothing for an algorithm that begins now
    qp.transport->take_heard(before);
    start_flow(index, parameters_.rate);
    if (group != kNone) start_flow(group, parameters_.rate);
  }
}

void SoftNic::unbind(uint32_t index) {
  const uint32_t group = flows_->group_of(index);
  if (group == kNone) return;
  QueuePair& qp = pairs_[index];
  if (qp.state == QueuePair::State::waiting) qp.state = QueuePair::State::idle;
  flows_->unbind(index);
  schedule(index, kNever);
  serve(group);
}

// The MAC address that a stream leads to has been found, or is another now.
void SoftNic::redirect(uint32_t index, uint64_t mac) {
  QueuePair& qp = pairs_[index];
  qp.parameters.path.destination_mac = mac;
  unbind(index);
  bind(index);
  if (!qp.started) schedule(index, std::max(qp.parameters.start, now_));
  attend(index);
}

// Forgets all that pacing and congestion control know of a queue pair. One in the list of those that are ready stays there.
void SoftNic::forget(uint32_t index) {
  QueuePair& qp = pairs_[index];
  if (qp.started) --active_;
  unbind(index);
  schedule(index, kNever);
  if (qp.state == QueuePair::State::waiting) qp.state = QueuePair::State::idle;
  if (qp.verbs() != nullptr) qp.verbs()->hold_requests(false);
  qp.started = false;
  qp.connected = false;
  flows_->reset(index, qp, now_);
  notifications_.forget(index);
}

// False: there is nowhere to send to yet.
bool SoftNic::begin(uint32_t index) {
  QueuePair& qp = pairs_[index];
  if (qp.unresolved()) return false;
  const bool alone = active_++ == 0;
  qp.started = true;
  qp.state = QueuePair::State::waiting;
  const Rate later = parameters_.initial_rate > 0 ? parameters_.initial_rate : parameters_.rate;
  const Rate first = parameters_.line_rate_start && alone ? parameters_.rate : later;
  qp.transport->begin(now_);
  start_flow(index, first);
  if (const uint32_t group = flows_->group_of(index); group != kNone) start_flow(group, first);
  return true;
}

void SoftNic::start_flow(uint32_t number, Rate rate) {
  Flow& flow = (*flows_)[number];
  if (flow.started) return;
  flow.start(now_, rate);
  count(number);
  if (number < pairs_.size() && hears(kHearsAcknowledgements)) {
    limit(number, flow.controller.visit([](const auto& c) { return c.window(); }), 0);
  }
}

// Hands the transport the limit that congestion control puts on packets in flight. `round_trip`: the newest, 0: none is known.
void SoftNic::limit(uint32_t index, uint32_t window, Time round_trip) {
  uint32_t reads = window;
  // With a rate alone the limit is the packets in flight, and as many again for it to grow by.
  if (window == CongestionControl::kNoWindow && pulls()) {
    const QueuePair& qp = pairs_[index];
    const uint32_t packet = wire_bytes(qp.headers.bth_offset() + kBthHeader + qp.path_mtu() + kIcrc);
    const double in_flight = static_cast<double>((*flows_)[index].rate) * static_cast<double>(round_trip) / (packet * 8e9);
    reads = std::max(1u, static_cast<uint32_t>(std::min(2 * in_flight, static_cast<double>(kMaxWindow))));
  }
  pairs_[index].transport->limit(window, reads == CongestionControl::kNoWindow ? 0 : reads);
}

// READ responses are not held by what holds the queue pair's own requests, unless it is a cap on all that it sends.
bool SoftNic::responds_freely(const QueuePair& qp, const Flow& flow) const {
  return pulls() && qp.kind == QueuePair::Kind::connection && flow.ceiling >= parameters_.rate;
}

void SoftNic::finish(uint32_t index) {
  QueuePair& qp = pairs_[index];
  qp.state = QueuePair::State::finished;
  active_ -= qp.started ? 1 : 0;
  flows_->leave(index);
  (*flows_)[index].running = false;
  count(index);
  qp.transport->close();
}

void SoftNic::stop_sending(uint32_t index) {
  pairs_[index].stopped = true;
  finish(index);
}

void SoftNic::close(Time now, uint32_t index) {
  pairs_[index].transport->close();
  if (!pairs_[index].parameters.serves()) return;
  catch_up(now);
  attend(index);
  go_on();
}

// ---- turns ----

// The transport has heard something, or has been given something: what does it want now?
void SoftNic::attend(uint32_t index) {
  QueuePair& qp = pairs_[index];
  if (!qp.converses()) return;
  schedule_timer(index, qp.transport->next_deadline());
  if (!qp.answers && !qp.unresolved() && qp.transport->control_waits()) {
    qp.answers = true;
    const uint8_t own = parameters_.ack_priority;
    egress_.push_answers(index, own == kPriorityOfData ? qp.parameters.priority : own);
  }
  const bool waits = qp.state == QueuePair::State::waiting;
  if (waits && responds_freely(qp, (*flows_)[index]) && qp.transport->data_bytes() > 0) return line_up(index);
  if (qp.state != QueuePair::State::idle || !(qp.started || qp.verbs() != nullptr || qp.parameters.serves())) return;
  if (qp.transport->data_bytes() > 0) return line_up(index);
  if (qp.transport->ended()) finish(index);
}

// The queue pair has data to send, or its time to begin or to end has come, or that of its flow: puts it where it has to wait.
void SoftNic::line_up(uint32_t index) {
  QueuePair& qp = pairs_[index];
  if (qp.state == QueuePair::State::ready) return;
  if (!qp.started && !begin(index)) return;
  const Time stop = qp.parameters.stop;
  if (stop <= now_) return stop_sending(index);
  if (flows_->waits(index)) return;
  qp.state = QueuePair::State::waiting;
  Flow& flow = (*flows_)[index];
  const Time release = flow.release(now_);
  count(index);
  const bool answers = responds_freely(qp, flow);
  if (answers) qp.verbs()->hold_requests(release > now_);
  if (release > now_ && !(answers && qp.transport->data_bytes() > 0)) {
    return schedule(index, std::min(flow.next_deadline(), stop));
  }
  const uint32_t group = flows_->group_of(index);
  if (group == kNone) {
    qp.state = QueuePair::State::ready;
    return egress_.push_ready(index, qp.parameters.priority);
  }
  flows_->join(index);
  if (stop != kNever) schedule(index, stop);
  serve(group);
}

// It has been in front of its flow, and is behind it again, or the flow's rate has changed.
void SoftNic::wait(uint32_t index) {
  if (flows_->group_of(index) != kNone || responds_freely(pairs_[index], (*flows_)[index])) return line_up(index);
  schedule(index, std::min((*flows_)[index].next_deadline(), pairs_[index].parameters.stop));
}

// Lets the first that waits for the group go as soon as its flow's rate allows.
void SoftNic::serve(uint32_t group) {
  Flow& flow = (*flows_)[group];
  if (flow.let_go != kNone || flow.first == kNone) return;
  const Time release = flow.release(now_);
  count(group);
  if (release > now_) return schedule(group, flow.next_deadline());
  flow.let_go = flows_->take(group);
  let_go(flow.let_go);
}

// Puts it into the list of its priority.
void SoftNic::let_go(uint32_t index) {
  if (index < pairs_.size()) {
    QueuePair& qp = pairs_[index];
    qp.state = QueuePair::State::ready;
    return egress_.push_ready(index, qp.parameters.priority);
  }
  const uint32_t queue = index - pairs_.size();
  stack_.state(queue) = StackQueues::State::ready;
  egress_.push_ready(index, StackQueues::priority_of(queue));
}

// Its turn has come, and it has nothing to send.
void SoftNic::pass_turn(uint32_t index) {
  const uint32_t group = flows_->group_of(index);
  if (group == kNone || (*flows_)[group].let_go != index) return;
  (*flows_)[group].let_go = kNone;
  serve(group);
}

// A READ REQUEST of the queue pair, for so many bytes, is on the link.
void SoftNic::ask(uint32_t index, uint32_t bytes) {
  const QueuePair& qp = pairs_[index];
  const uint32_t mtu = qp.path_mtu();
  bytes = std::min(bytes, kMaxMessage);
  const uint32_t packets = packets_of(bytes, mtu);
  const uint32_t around = qp.headers.bth_offset() + kBthHeader + kIcrc + (hears(kHearsTelemetry) ? kTelemetryHeader : 0);
  const uint32_t full = wire_bytes(around + mtu);
  const uint32_t last = wire_bytes(around + (bytes - (packets - 1) * mtu));
  const uint32_t extensions = kAethHeader * std::min(packets, 2u);
  (*flows_)[index].asked(now_, packets > 1 ? full : last, (packets - 1) * full + last + extensions);
  count(index);
}

// A packet of the queue pair is on the link.
void SoftNic::sent(uint32_t index, uint32_t wire_bytes) {
  (*flows_)[index].sent(now_, wire_bytes);
  count(index);
  if (const uint32_t group = flows_->group_of(index); group != kNone) sent_of_group(group, index, wire_bytes);
}

void SoftNic::sent_of_group(uint32_t group, uint32_t index, uint32_t wire_bytes) {
  Flow& flow = (*flows_)[group];
  flow.sent(now_, wire_bytes);
  count(group);
  flow.sent_last = index;
  if (flow.let_go == index) flow.let_go = kNone;
}

// The rate of a queue pair's own flow may have changed while its next packet waits.
void SoftNic::repace(uint32_t index) {
  count(index);
  if (pairs_[index].state != QueuePair::State::waiting) return;
  (*flows_)[index].repace(now_);
  wait(index);
}

// ---- accounts ----

const Flow& SoftNic::flow_at(uint32_t index, Time at) {
  const uint32_t group = flows_->group_of(index);
  const uint32_t number = group != kNone ? group : index;
  Flow& flow = (*flows_)[number];
  flow.tell([=](auto& c) { c.advance(at); });
  count(number);
  return flow;
}

SoftNic::SenderSample SoftNic::sender_sample(uint32_t index, Time at) {
  const Flow& flow = flow_at(index, at);
  const QueuePair& qp = pairs_[index];
  // A queue pair that stops at this very time has sent until now.
  const auto rate = static_cast<double>(qp.stopped && at <= qp.parameters.stop ? limit_of(index) : allowed_rate(qp));
  return flow.controller.visit([&](const auto& c) -> SenderSample {
    const ControllerState state = c.state();
    if (rate > 0 && state.window > 0) return {rate, rate, state.alpha, state.window};
    const bool has_alpha = state.alpha_runs && (rate > 0 || flow.held);
    return {rate, flow.held ? static_cast<double>(state.target_rate) : rate, has_alpha ? state.alpha : 0, 0};
  });
}

void SoftNic::settle_counters() {
  for (int p = 0; p < kPriorities; ++p) {
    NicPriorityCounters& of = counters(p);
    of.rx_prio_pause_transition = egress_.pause.ended(p);
    of.rx_prio_pause_duration = static_cast<uint64_t>(egress_.pause.paused_for(p, now_));
    of.tx_prio_pause_duration = static_cast<uint64_t>(egress_.pfc.stopped_for(p, now_));
  }
  settle_flows();
}

// Groups that send nothing are looked at here, some each time; of a simulation, all.
void SoftNic::settle_flows() {
  const uint32_t senders = flows_->senders();
  const uint32_t groups = flows_->size() - senders;
  if (groups == 0) return;
  for (uint32_t left = pool_.has_payload() ? std::min(groups, kCaughtUpAtOnce) : groups; left > 0; --left) {
    if (next_caught_up_ >= groups) next_caught_up_ = 0;
    const uint32_t group = senders + next_caught_up_++;
    (*flows_)[group].tell([this](auto& c) { c.advance(now_); });
    count(group);
  }
  for (int p = 0; p < kPriorities; ++p) {
    Time& time = held_times_[static_cast<size_t>(p)];
    time += flows_->take_held_time(p, now_);
    counters(p).rp_port_pri_centiseconds += static_cast<uint64_t>(time / kCentisecond);
    time %= kCentisecond;
  }
}

}  // namespace weir
