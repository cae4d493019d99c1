// The part of the soft NIC that is QCN's: flows wait for their reaction points, queue pairs for their turns, and CNMs are heard.
#include <algorithm>

#include "endpoint/soft_nic.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"

namespace weir {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint32_t kCaughtUpAtOnce = 256;  // flows, when counters are settled: the poll loop waits meanwhile
constexpr Time kCentisecond = 10 * kMillisecond;

}  // namespace

// ---- which flow ----

// Schedules all queue pairs, from nothing, or anew after a reload: then all rates of flows are forgotten.
void SoftNic::make_flows() {
  const bool before = flows_ != nullptr;
  const bool wanted = parameters_.congestion_control == CongestionControl::qcn;
  const auto pairs = static_cast<uint32_t>(queue_pairs_.size());
  if (before) settle_flows();
  flows_ = wanted ? std::make_unique<ReactionPoints>(parameters_, pairs) : nullptr;
  if (driver_ == nullptr && (before || wanted)) {
    wheel_ = TimingWheel(pairs + (wanted ? ReactionPoints::places(parameters_, pairs) : 0), kTick);
    fetched_ = fetched_transports_ = 0;
  }
  counters_.rp_cur_flows = 0;
  for (uint32_t index = 0; index < pairs; ++index) {
    QueuePair& qp = queue_pairs_[index];
    if (qp.transport == nullptr) continue;
    if (before || wanted) bind(index);
    qp.limited = false;
    count_limited(qp);
    qp.wakes = kNever;
    if (!qp.started) schedule(index, qp.parameters.start);
    if (qp.state == QueuePair::State::waiting) schedule(index, now_);
  }
}

// A queue pair that sends no data has no flow: acknowledgements go ahead of everything.
void SoftNic::bind(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  RocePath path = qp.parameters.path;
  const bool sends = qp.verbs != nullptr || qp.parameters.start != kNever;
  if (flows_ != nullptr && sends) {
    flows_->bind(index, qp, qp.datagram, now_);
    counters_.rp_cur_flows = flows_->limited();
  }
  if (governed(index) && parameters_.cn_tag) path.cn_flow = ReactionPoints::flow_id(flows_->of(index));
  qp.headers = RoceTemplate(path);
  take_shape(qp);
  if (governed(index) && qp.started) start_flow(flows_->of(index), parameters_.rate);
}

void SoftNic::unbind(uint32_t index) {
  if (!governed(index)) return;
  const uint32_t flow = flows_->of(index);
  QueuePair& qp = queue_pairs_[index];
  if (qp.state == QueuePair::State::waiting) qp.state = QueuePair::State::idle;
  flows_->unbind(index);
  schedule(index, kNever);
  serve_flow(flow);
}

// For frames whose headers are not those of the queue pair.
void SoftNic::tag(PacketId id, const QueuePair& qp) {
  const uint32_t flow = flow_of(qp);
  if (flow == kNone || !parameters_.cn_tag) return;
  pool_[id].meta.tagged = load_be16(pool_.data(id) + 12) == kEthertypeVlan;
  insert_cn_tag(pool_, id, ReactionPoints::flow_id(flow));
  pool_[id].meta = {};
}

// ---- turns ----

void SoftNic::start_flow(uint32_t flow, Rate rate) {
  ReactionPoint& point = (*flows_)[flow];
  if (point.started) return;
  point.started = true;
  point.rate.start(now_, rate);
  point.limiter.reset(now_);
  count_flow(flow);
  point.paced_rate = paced_rate(point);
}

// 0: no limit but the link's.
Rate SoftNic::paced_rate(const ReactionPoint& point) { return point.rate.limited() ? std::max<Rate>(point.rate.rate(), 1) : 0; }

// The queue pair has data to send, or its end has come, or that of its own cap's gap.
void SoftNic::take_turn(uint32_t index) {
  if (queue_pairs_[index].state == QueuePair::State::ready) return;
  if (line_up(index)) serve_flow(flows_->of(index));
}

// Puts it where it has to wait; true if that is its flow's list, of which it is the first.
bool SoftNic::line_up(uint32_t index) {
  QueuePair& qp = queue_pairs_[index];
  const QueuePairParameters& p = qp.parameters;
  if (!qp.started && !begin(qp)) return false;
  if (p.stop <= now_) return finish(qp), false;
  if (flows_->waits(index)) return false;
  qp.state = QueuePair::State::waiting;
  if (p.rate_cap > 0) {
    if (qp.paced_rate != p.rate_cap) qp.pacer.rate_changed(now_, p.rate_cap);
    qp.paced_rate = p.rate_cap;
    if (qp.pacer.release() > now_) return schedule(index, std::min(qp.pacer.release(), p.stop)), false;
  }
  flows_->join(index);
  if (p.stop != kNever) schedule(index, p.stop);
  return (*flows_)[flows_->of(index)].first == index;
}

void SoftNic::turn_taken(uint32_t index, uint32_t wire_bytes) {
  QueuePair& qp = queue_pairs_[index];
  const uint32_t flow = flows_->of(index);
  ReactionPoint& point = (*flows_)[flow];
  point.rate.on_sent(now_, wire_bytes);
  count_flow(flow);
  point.paced_rate = paced_rate(point);
  point.limiter.sent(now_, wire_bytes, point.paced_rate);
  point.sent_last = index;
  if (point.let_go == index) point.let_go = kNone;
  if (qp.parameters.rate_cap > 0) qp.pacer.sent(now_, wire_bytes, qp.parameters.rate_cap);
}

// Its turn has come, and it has nothing to send.
void SoftNic::pass_turn(uint32_t index) {
  if (!governed(index)) return;
  const uint32_t flow = flows_->of(index);
  ReactionPoint& point = (*flows_)[flow];
  if (point.let_go != index) return;
  point.let_go = kNone;
  serve_flow(flow);
}

// Lets the first in the list go as soon as the reaction point's rate allows.
void SoftNic::serve_flow(uint32_t flow) {
  ReactionPoint& point = (*flows_)[flow];
  if (point.let_go != kNone || point.first == kNone) return;
  point.rate.advance(now_);
  count_flow(flow);
  const Rate rate = paced_rate(point);
  if (rate != point.paced_rate) {
    point.limiter.rate_changed(now_, rate);
    point.paced_rate = rate;
  }
  const Time release = point.limiter.release();
  if (release > now_) return schedule_flow(flow, std::min(release, point.rate.next_deadline()));
  point.let_go = flows_->take(flow);
  push_ready(point.let_go);
}

void SoftNic::schedule_flow(uint32_t flow, Time at) {
  if (driver_ == nullptr) return wheel_.schedule(static_cast<uint32_t>(queue_pairs_.size()) + flow, at);
  Time& wakes = (*flows_)[flow].wakes;
  if (wakes == at) return;
  wakes = at;
  driver_->wake(kFlow | flow, at);
}

void SoftNic::wake_flow(uint32_t flow, Time at) {
  if (flows_ == nullptr || flow >= flows_->size() || (*flows_)[flow].wakes != at) return;
  (*flows_)[flow].wakes = kNever;
  advance(at);
  serve_flow(flow);
  if (!busy()) start_next();
}

// ---- notifications ----

void SoftNic::receive_cnm(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal) {
  if (!ours(meta.destination_mac)) {
    ++counters_.rp_cnm_not_for_us;
    return;
  }
  CongestionNotification cnm;
  if (flows_ == nullptr) {
    ++counters_.rp_cnm_ignored;
  } else if (refusal == Refusal::truncated_cnm) {
    ++counters_.rp_cnm_truncated;
  } else if (refusal == Refusal::bad_cnm_version) {
    ++counters_.rp_cnm_bad_version;
  } else if (refusal != Refusal::none || !parse_cnm(frame, length, cnm)) {
    ++counters_.rp_cnm_malformed;
  } else {
    uint32_t flow = kNone;
    switch (flows_->find(meta, cnm, flow)) {
      case ReactionPoints::Verdict::handled:
        return on_cnm(flow, cnm);
      case ReactionPoints::Verdict::not_cnpv:
        ++counters_.rp_cnm_not_cnpv;
        break;
      case ReactionPoints::Verdict::no_feedback:
        ++counters_.rp_cnm_no_feedback;
        break;
      case ReactionPoints::Verdict::unknown_flow:
        ++counters_.rp_cnm_unknown_flow;
        break;
      case ReactionPoints::Verdict::wrong_flow:
        ++counters_.rp_cnm_wrong_flow;
        break;
      case ReactionPoints::Verdict::ambiguous:
        ++counters_.rp_cnm_ambiguous;
        break;
    }
  }
}

void SoftNic::on_cnm(uint32_t flow, const CongestionNotification& cnm) {
  ReactionPoint& point = (*flows_)[flow];
  ++counters_.rp_cnm_handled;
  // A flow of several has no queue pair that is more at fault than the others.
  const uint32_t index = point.sent_last != kNone ? point.sent_last : point.first;
  if (index != kNone) {
    QpCounters& counters = queue_pairs_[index].counters;
    ++counters.cnp_handled;
    if (cnm.quantized_feedback == 1) ++counters.cnm_lowest;
  }
  point.rate.advance(now_);
  count_flow(flow);
  const bool limited = point.limited;
  point.rate.on_cnm(now_, cnm.quantized_feedback);
  count_flow(flow);
  if (point.limited && !limited) ++priorities_[point.priority].rp_port_pri_created_rps;
  serve_flow(flow);
  if (!busy()) start_next();
}

// ---- accounts ----

void SoftNic::count_flow(uint32_t flow) {
  flows_->count(flow, now_);
  counters_.rp_cur_flows = flows_->limited();
}

const ReactionPoint* SoftNic::flow_at(uint32_t index, Time at) {
  if (!governed(index)) return nullptr;
  const uint32_t flow = flows_->of(index);
  (*flows_)[flow].rate.advance(at);
  count_flow(flow);
  return &(*flows_)[flow];
}

// Flows that send nothing are looked at here, some each time; of a simulation, all.
void SoftNic::settle_flows() {
  const uint32_t size = flows_->size();
  const uint32_t some = driver_ == nullptr ? std::min(size, kCaughtUpAtOnce) : size;
  for (uint32_t i = 0; i < some; ++i) {
    if (next_caught_up_ >= size) next_caught_up_ = 0;
    (*flows_)[next_caught_up_].rate.advance(now_);
    count_flow(next_caught_up_++);
  }
  for (int p = 0; p < kPriorities; ++p) {
    Time& time = limited_times_[static_cast<size_t>(p)];
    time += flows_->take_limited_time(p, now_);
    priorities_[static_cast<size_t>(p)].rp_port_pri_centiseconds += static_cast<uint64_t>(time / kCentisecond);
    time %= kCentisecond;
  }
}

}  // namespace weir
