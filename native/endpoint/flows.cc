#include "endpoint/flows.h"

#include <algorithm>
#include <memory>

namespace weir {
namespace {

constexpr uint32_t kCaughtUpAtOnce = 256;  // groups, when counters are settled: the poll loop waits meanwhile
constexpr Time kCentisecond = 10 * kMillisecond;

}  // namespace

// ---- which flow ----

void Flows::make() {
  nic_.flow_table = std::make_unique<FlowTable>(nic_.parameters, nic_.pairs.size(), nic_.stack.size(), nic_.counters);
  for (uint32_t index = 0; index < nic_.pairs.size(); ++index) {
    QueuePair& qp = nic_.pairs[index];
    if (qp.transport == nullptr) continue;
    nic_.flow_table->reset(index, qp, nic_.now);
    bind_to_group(index);
    if (!qp.started && !qp.parameters.on_demand) nic_.schedule_flow(index, qp.parameters.start);
    if (qp.state == QueuePair::State::waiting) nic_.schedule_flow(index, nic_.now);
  }
  line_up_stacks();
}

void Flows::bind_to_group(uint32_t index) {
  QueuePair& qp = nic_.pairs[index];
  RocePath path = qp.parameters.path;
  if (qp.verbs() != nullptr || qp.parameters.start != kNever || qp.parameters.serves())
    nic_.flow_table->bind(index, qp, nic_.now);
  const uint32_t group = nic_.flow_table->group_of(index);
  if (group != kNone && nic_.parameters.grouping.cn_tag) path.cn_flow = nic_.flow_table->flow_id(group);
  nic_.pairs.take_path(index, path);
  if (qp.started && qp.state != QueuePair::State::finished) {
    Heard before;  // is nothing for an algorithm that begins now
    qp.transport->take_heard(before);
    start_flow(index, nic_.parameters.rate);
    if (group != kNone) start_flow(group, nic_.parameters.rate);
  }
}

void Flows::unbind_from_group(uint32_t index) {
  const uint32_t group = nic_.flow_table->group_of(index);
  if (group == kNone) return;
  QueuePair& qp = nic_.pairs[index];
  if (qp.state == QueuePair::State::waiting) qp.state = QueuePair::State::idle;
  nic_.flow_table->unbind(index);
  nic_.schedule_flow(index, kNever);
  serve_group(group);
}

void Flows::redirect_stream(uint32_t index, uint64_t mac) {
  QueuePair& qp = nic_.pairs[index];
  qp.parameters.path.destination_mac = mac;
  unbind_from_group(index);
  bind_to_group(index);
  if (!qp.started) nic_.schedule_flow(index, std::max(qp.parameters.start, nic_.now));
  attend_to_pair(index);
}

void Flows::forget_pair(uint32_t index) {
  QueuePair& qp = nic_.pairs[index];
  if (qp.started) --nic_.active;
  unbind_from_group(index);
  nic_.schedule_flow(index, kNever);
  if (qp.state == QueuePair::State::waiting) qp.state = QueuePair::State::idle;
  if (qp.verbs() != nullptr) qp.verbs()->hold_requests(false);
  qp.started = false;
  qp.connected = false;
  nic_.flow_table->reset(index, qp, nic_.now);
  nic_.notifications.forget(index);
}

// False: there is nowhere to send to yet.
bool Flows::begin_sending(uint32_t index) {
  QueuePair& qp = nic_.pairs[index];
  if (qp.unresolved()) return false;
  const bool alone = nic_.active++ == 0;
  qp.started = true;
  qp.state = QueuePair::State::waiting;
  const Rate later = nic_.parameters.initial_rate > 0 ? nic_.parameters.initial_rate : nic_.parameters.rate;
  const Rate first = nic_.parameters.line_rate_start && alone ? nic_.parameters.rate : later;
  qp.transport->begin(nic_.now);
  start_flow(index, first);
  if (const uint32_t group = nic_.flow_table->group_of(index); group != kNone) start_flow(group, first);
  return true;
}

void Flows::start_flow(uint32_t number, Rate rate) {
  Flow& flow = nic_.flow(number);
  if (flow.started) return;
  flow.start(nic_.now, rate);
  nic_.count_held(number);
  if (number < nic_.pairs.size() && nic_.hears(kHearsAcknowledgements)) {
    limit_in_flight(number, flow.controller.visit([](const auto& c) { return c.window(); }), 0);
  }
}

void Flows::limit_in_flight(uint32_t index, uint32_t window, Time round_trip) {
  uint32_t reads = window;
  // With a rate alone the limit is the packets in flight, and as many again for it to grow by.
  if (window == CongestionControl::kNoWindow && nic_.pulls()) {
    const QueuePair& qp = nic_.pairs[index];
    const uint32_t packet = wire_bytes(qp.headers.bth_offset() + kBthHeader + qp.path_mtu() + kIcrc);
    const double in_flight = static_cast<double>(nic_.flow(index).rate) * static_cast<double>(round_trip) / (packet * 8e9);
    reads = std::max(1u, static_cast<uint32_t>(std::min(2 * in_flight, static_cast<double>(kMaxWindow))));
  }
  nic_.pairs[index].transport->limit(window, reads == CongestionControl::kNoWindow ? 0 : reads);
}

bool Flows::responds_freely(const QueuePair& qp, const Flow& flow) const {
  return nic_.pulls() && qp.kind == QueuePair::Kind::connection && flow.ceiling >= nic_.parameters.rate;
}

void Flows::finish_sending(uint32_t index) {
  QueuePair& qp = nic_.pairs[index];
  qp.state = QueuePair::State::finished;
  nic_.active -= qp.started ? 1 : 0;
  nic_.flow_table->leave(index);
  nic_.flow(index).running = false;
  nic_.count_held(index);
  qp.transport->close();
}

void Flows::stop_sending(uint32_t index) {
  nic_.pairs[index].stopped = true;
  finish_sending(index);
}

Rate Flows::allowed_rate(const QueuePair& qp) const {
  if (!qp.started || qp.state == QueuePair::State::finished) return 0;
  return rate_limit_of(static_cast<uint32_t>(&qp - &nic_.pairs[0]));
}

Rate Flows::rate_limit_of(uint32_t index) const {
  Rate rate = nic_.parameters.rate;
  for (const uint32_t flow : {index, nic_.flow_table->group_of(index)}) {
    if (flow != kNone && nic_.flow(flow).rate > 0) rate = std::min(rate, nic_.flow(flow).rate);
  }
  return rate;
}

// ---- turns ----

void Flows::attend_to_pair(uint32_t index) {
  QueuePair& qp = nic_.pairs[index];
  if (!qp.converses()) return;
  nic_.schedule_timer(index, qp.transport->next_deadline());
  if (!qp.answers && !qp.unresolved() && qp.transport->control_waits()) {
    qp.answers = true;
    const uint8_t own = nic_.parameters.ack_priority;
    nic_.egress.push_answers(index, own == kPriorityOfData ? qp.parameters.priority : own);
  }
  const bool waits = qp.state == QueuePair::State::waiting;
  if (waits && responds_freely(qp, nic_.flow(index)) && qp.transport->data_bytes() > 0) return line_up_pair(index);
  if (qp.state != QueuePair::State::idle || !(qp.started || qp.verbs() != nullptr || qp.parameters.serves())) return;
  if (qp.transport->data_bytes() > 0) return line_up_pair(index);
  if (qp.transport->ended()) finish_sending(index);
}

void Flows::line_up_pair(uint32_t index) {
  QueuePair& qp = nic_.pairs[index];
  if (qp.state == QueuePair::State::ready) return;
  if (!qp.started && !begin_sending(index)) return;
  const Time stop = qp.parameters.stop;
  if (stop <= nic_.now) return stop_sending(index);
  if (nic_.flow_table->waits(index)) return;
  qp.state = QueuePair::State::waiting;
  Flow& flow = nic_.flow(index);
  const Time release = flow.release(nic_.now);
  nic_.count_held(index);
  const bool answers = responds_freely(qp, flow);
  if (answers) qp.verbs()->hold_requests(release > nic_.now);
  if (release > nic_.now && !(answers && qp.transport->data_bytes() > 0)) {
    return nic_.schedule_flow(index, std::min(flow.next_deadline(), stop));
  }
  const uint32_t group = nic_.flow_table->group_of(index);
  if (group == kNone) {
    qp.state = QueuePair::State::ready;
    return nic_.egress.push_ready(index, qp.parameters.priority);
  }
  nic_.flow_table->join(index);
  if (stop != kNever) nic_.schedule_flow(index, stop);
  serve_group(group);
}

void Flows::wait_for_flow(uint32_t index) {
  if (nic_.flow_table->group_of(index) != kNone || responds_freely(nic_.pairs[index], nic_.flow(index)))
    return line_up_pair(index);
  const Flow& flow = nic_.flow(index);
  const Time release = flow.limiter.release();
  const Time other = std::min(flow.changes, nic_.pairs[index].parameters.stop);
  if (nic_.now <= release && release < std::min(other, nic_.egress.busy_until()))
    return nic_.schedule_behind_frame(index, release);
  nic_.schedule_flow(index, std::min(release, other));
}

void Flows::line_up_due(NicState::Due before) {
  while (!nic_.due.empty() && nic_.due.front() < before) {
    const NicState::Due own = nic_.due.front();
    nic_.due.erase(nic_.due.begin());
    Time& wakes = nic_.flow(own.index).wakes;
    if (wakes != own.at) continue;
    wakes = kNever;
    nic_.now = std::max(nic_.now, own.at);
    line_up_pair(own.index);
  }
}

void Flows::serve_group(uint32_t group) {
  Flow& flow = nic_.flow(group);
  if (flow.in_turn != kNone || flow.first == kNone) return;
  const Time release = flow.release(nic_.now);
  nic_.count_held(group);
  if (release > nic_.now) return nic_.schedule_flow(group, flow.next_deadline());
  flow.in_turn = nic_.flow_table->take(group);
  make_ready(flow.in_turn);
}

// Puts it into the list of its priority.
void Flows::make_ready(uint32_t index) {
  if (index < nic_.pairs.size()) {
    QueuePair& qp = nic_.pairs[index];
    qp.state = QueuePair::State::ready;
    return nic_.egress.push_ready(index, qp.parameters.priority);
  }
  const uint32_t queue = index - nic_.pairs.size();
  nic_.stack.state(queue) = StackQueues::State::ready;
  nic_.egress.push_ready(index, StackQueues::priority_of(queue));
}

void Flows::pass_turn(uint32_t index) {
  const uint32_t group = nic_.flow_table->group_of(index);
  if (group == kNone || nic_.flow(group).in_turn != index) return;
  nic_.flow(group).in_turn = kNone;
  serve_group(group);
}

void Flows::line_up_stack(uint32_t queue) {
  if (nic_.stack.state(queue) != StackQueues::State::idle) return;
  const uint32_t index = nic_.pairs.size() + queue;
  nic_.flow_table->bind_stack(index, StackQueues::priority_of(queue), nic_.now);
  const uint32_t group = nic_.flow_table->group_of(index);
  if (group == kNone) return make_ready(index);
  start_flow(group, nic_.parameters.rate);
  nic_.stack.state(queue) = StackQueues::State::waiting;
  nic_.flow_table->join(index);
  serve_group(group);
}

// There are other flows. A queue that is in its priority's list stays there.
void Flows::line_up_stacks() {
  for (uint32_t queue = 0; queue < nic_.stack.size(); ++queue) {
    if (nic_.stack.state(queue) != StackQueues::State::waiting) continue;
    nic_.stack.state(queue) = StackQueues::State::idle;
    line_up_stack(queue);
  }
}

// ---- accounts ----

void Flows::count_read_request(uint32_t index, uint32_t bytes) {
  const QueuePair& qp = nic_.pairs[index];
  const uint32_t mtu = qp.path_mtu();
  bytes = std::min(bytes, kMaxMessage);
  const uint32_t packets = packets_of(bytes, mtu);
  const uint32_t around = qp.headers.bth_offset() + kBthHeader + kIcrc + (nic_.hears(kHearsTelemetry) ? kTelemetryHeader : 0);
  const uint32_t full = wire_bytes(around + mtu);
  const uint32_t last = wire_bytes(around + (bytes - (packets - 1) * mtu));
  const uint32_t extensions = kAethHeader * std::min(packets, 2u);
  nic_.flow(index).asked(nic_.now, packets > 1 ? full : last, (packets - 1) * full + last + extensions);
  nic_.count_held(index);
}

void Flows::count_packet(uint32_t index, uint32_t wire_bytes) {
  nic_.flow(index).sent(nic_.now, wire_bytes);
  nic_.count_held(index);
  if (const uint32_t group = nic_.flow_table->group_of(index); group != kNone) count_packet_of_group(group, index, wire_bytes);
}

void Flows::count_packet_of_group(uint32_t group, uint32_t index, uint32_t wire_bytes) {
  Flow& flow = nic_.flow(group);
  flow.sent(nic_.now, wire_bytes);
  nic_.count_held(group);
  flow.sent_last = index;
  if (flow.in_turn == index) flow.in_turn = kNone;
}

void Flows::repace_pair(uint32_t index) {
  nic_.count_held(index);
  if (nic_.pairs[index].state != QueuePair::State::waiting) return;
  nic_.flow(index).repace(nic_.now);
  wait_for_flow(index);
}

void Flows::settle() {
  const uint32_t senders = nic_.flow_table->senders();
  const uint32_t groups = nic_.flow_table->size() - senders;
  if (groups == 0) return;
  for (uint32_t left = nic_.pool.has_payload() ? std::min(groups, kCaughtUpAtOnce) : groups; left > 0; --left) {
    if (nic_.next_caught_up >= groups) nic_.next_caught_up = 0;
    const uint32_t group = senders + nic_.next_caught_up++;
    nic_.flow(group).tell([this](auto& c) { c.advance(nic_.now); });
    nic_.count_held(group);
  }
  for (int p = 0; p < kPriorities; ++p) {
    Time& time = nic_.held_times[static_cast<size_t>(p)];
    time += nic_.flow_table->take_held_time(p, nic_.now);
    nic_.by_priority(p).rp_port_pri_centiseconds += static_cast<uint64_t>(time / kCentisecond);
    time %= kCentisecond;
  }
}

}  // namespace weir
