#include "endpoint/reaction_points.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/random.h"
#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace weir {
namespace {

// Of the random streams of reaction points; each has one of its own.
constexpr uint64_t kPurpose = uint64_t{1} << 32;

// The finalizer of MurmurHash3.
constexpr uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccd;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53;
  return z ^ (z >> 33);
}

uint64_t hash_path(const RocePath& path) {
  uint64_t hash = mix(uint64_t{path.udp_source_port} << 16 | kRocePort);
  for (const uint8_t* ip : {path.source_ip, path.destination_ip}) hash = mix(mix(hash ^ load_be64(ip)) ^ load_be64(ip + 8));
  return hash;
}

constexpr uint64_t with_priority(uint64_t value, uint8_t priority) { return value << 3 >> 3 | uint64_t{priority} << 61; }

}  // namespace

ReactionPoints::ReactionPoints(const NicParameters& parameters, uint32_t queue_pairs)
    : parameters_(parameters), places_(places(parameters, queue_pairs)), members_(queue_pairs), traces_of_(queue_pairs) {
  points_.reserve(places_);
}

// A flow has a queue pair, so there need not be more of them.
uint32_t ReactionPoints::places(const NicParameters& parameters, uint32_t queue_pairs) {
  return std::min(static_cast<uint32_t>(std::popcount(parameters.cn_priorities)) * most_of_group(parameters), queue_pairs);
}

// No CNPV can take all of them: each has one at least.
uint32_t ReactionPoints::most_of_group(const NicParameters& parameters) {
  const auto groups = static_cast<uint32_t>(std::popcount(parameters.cn_priorities));
  return std::clamp(parameters.reaction_points, 1u, kMost / std::max(groups, 1u));
}

size_t ReactionPoints::TraceHash::operator()(const Trace& trace) const {
  return mix(mix(mix(trace.source) ^ trace.destination) ^ trace.headers);
}

// ---- flows ----

uint64_t ReactionPoints::key_of(const QueuePair& qp, bool datagram) const {
  const QueuePairParameters& p = qp.parameters;
  switch (parameters_.flows) {
    case FlowSelection::application:
      return p.application;
    case FlowSelection::destination_mac:
      if (!datagram) return p.path.destination_mac;
      break;
    case FlowSelection::five_tuple:
      if (!datagram) return hash_path(p.path);
      break;
    case FlowSelection::queue_pair:
      break;
  }
  // Numbers of queue pairs differ from all that were there before; bit 60 keeps them apart from addresses.
  return qp.qpn | uint64_t{1} << 60;
}

// One that has no members, for a flow of `priority`; `only`: and is of that already.
uint32_t ReactionPoints::take_reusable(uint8_t priority, bool only) {
  for (size_t left = reusable_.size(); left > 0; --left) {
    const uint32_t number = reusable_.front();
    reusable_.pop_front();
    ReactionPoint& point = points_[number];
    if (point.members > 0) {
      point.reusable = false;
    } else if (only && point.priority != priority) {
      reusable_.push_back(number);
    } else {
      return number;
    }
  }
  return kNone;
}

uint32_t ReactionPoints::make(uint64_t key, uint8_t priority, Time now) {
  Group& group = groups_[priority];
  const bool full = group.points.size() >= most_of_group(parameters_);
  uint32_t number = kNone;
  if (!full && points_.size() < places_) {
    number = size();
    points_.emplace_back(parameters_.limiter, &parameters_.token_bucket);
  } else {
    number = take_reusable(priority, full);
    if (number == kNone) return kNone;
    ReactionPoint& old = points_[number];
    Group& before = groups_[old.priority];
    settle(before, now);
    if (old.limited) --before.limited, --limited_;
    std::erase(before.points, number);
    flows_.erase(old.key);
    old = ReactionPoint(parameters_.limiter, &parameters_.token_bucket);
  }
  ReactionPoint& point = points_[number];
  point.key = key;
  point.priority = priority;
  point.rate.configure(&parameters_.qcn, parameters_.rate, Random(parameters_.seed, parameters_.component, kPurpose + made_++));
  group.points.push_back(number);
  flows_[key] = number;
  return number;
}

uint32_t ReactionPoints::point_for(uint64_t key, uint8_t priority, Time now) {
  const auto found = flows_.find(key);
  if (found != flows_.end()) return found->second;
  const uint32_t made = make(key, priority, now);
  if (made != kNone) return made;
  const std::vector<uint32_t>& shared = groups_[priority].points;
  return shared[mix(key) % shared.size()];
}

void ReactionPoints::bind(uint32_t index, const QueuePair& qp, bool datagram, Time now) {
  const uint8_t priority = qp.parameters.priority;
  if ((parameters_.cn_priorities >> priority & 1) == 0) return;
  const RocePath& path = qp.parameters.path;
  const uint32_t number = point_for(with_priority(key_of(qp, datagram), priority), priority, now);
  ReactionPoint& point = points_[number];
  const uint64_t destination = datagram ? 0 : path.destination_mac;
  const bool alone = point.members++ == 0;
  point.source_mac = alone || point.source_mac == path.source_mac ? path.source_mac : 0;
  point.destination_mac = alone || point.destination_mac == destination ? destination : 0;
  members_[index].point = number;
  if (datagram) return;
  const uint64_t headers = uint64_t{qp.parameters.remote_qpn} << 16 | path.udp_source_port;
  Trace trace{with_priority(path.source_mac, priority), path.destination_mac, headers};
  traces_of_[index] = trace;
  add_trace(trace, number);
  trace.headers = kAnyHeaders;
  add_trace(trace, number);
}

void ReactionPoints::unbind(uint32_t index) {
  Member& member = members_[index];
  if (member.point == kNone) return;
  leave(index);
  ReactionPoint& point = points_[member.point];
  if (point.let_go == index) point.let_go = kNone;
  if (point.sent_last == index) point.sent_last = kNone;
  if (--point.members == 0 && !point.reusable) {
    point.reusable = true;
    reusable_.push_back(member.point);
  }
  member.point = kNone;
  Trace& trace = traces_of_[index];
  if (trace.source == 0) return;
  remove_trace(trace);
  trace.headers = kAnyHeaders;
  remove_trace(trace);
  trace.source = 0;
}

void ReactionPoints::add_trace(const Trace& trace, uint32_t point) {
  const auto [entry, fresh] = traces_.try_emplace(trace, Traced{point, 0});
  ++entry->second.queue_pairs;
  if (entry->second.point != point) entry->second.point = kSeveral;
}

void ReactionPoints::remove_trace(const Trace& trace) {
  const auto entry = traces_.find(trace);
  if (--entry->second.queue_pairs == 0) traces_.erase(entry);
}

// ---- turns ----

void ReactionPoints::join(uint32_t index) {
  Member& member = members_[index];
  ReactionPoint& point = points_[member.point];
  member.waits = true;
  member.next = kNone;
  member.previous = point.last;
  (point.last == kNone ? point.first : members_[point.last].next) = index;
  point.last = index;
}

void ReactionPoints::leave(uint32_t index) {
  Member& member = members_[index];
  if (!member.waits) return;
  ReactionPoint& point = points_[member.point];
  (member.previous == kNone ? point.first : members_[member.previous].next) = member.next;
  (member.next == kNone ? point.last : members_[member.next].previous) = member.previous;
  member.waits = false;
}

uint32_t ReactionPoints::take(uint32_t number) {
  const uint32_t index = points_[number].first;
  leave(index);
  return index;
}

// ---- notifications ----

// Destination queue pair and UDP source port of a RoCEv2 frame that starts with its ethertype; kAnyHeaders where they are not.
uint64_t ReactionPoints::headers_in(std::span<const uint8_t> msdu) {
  if (msdu.size() < 2 + kIpv4Header) return kAnyHeaders;
  const uint8_t* ip = msdu.data() + 2;
  const uint16_t ethertype = load_be16(msdu.data());
  const bool ipv4 = ethertype == kEthertypeIpv4;
  if (!ipv4 && ethertype != kEthertypeIpv6) return kAnyHeaders;
  const uint32_t header = ipv4 ? ip_header_length(ip) : kIpv6Header;
  if (header < kIpv4Header || msdu.size() < 2 + header + kUdpHeader + kBthHeader) return kAnyHeaders;
  const uint8_t* udp = ip + header;
  if ((ipv4 ? ip[9] : ip[6]) != kProtocolUdp || load_be16(udp + 2) != kRocePort) return kAnyHeaders;
  return uint64_t{load_bth(udp + kUdpHeader).destination_qp} << 16 | load_be16(udp);
}

ReactionPoints::Verdict ReactionPoints::find(const PacketMeta& meta, const CongestionNotification& cnm, uint32_t& number) const {
  if ((parameters_.cn_priorities >> cnm.priority & 1) == 0) return Verdict::not_cnpv;
  if (cnm.quantized_feedback == 0) return Verdict::no_feedback;
  if (meta.cn_tagged) {
    const uint32_t named = meta.cn_flow - 1u;
    if (named >= points_.size()) return Verdict::unknown_flow;
    const ReactionPoint& point = points_[named];
    const bool to = point.destination_mac == 0 || point.destination_mac == cnm.destination_mac;
    const bool from = point.source_mac == 0 || point.source_mac == meta.destination_mac;
    if (point.members == 0) return Verdict::unknown_flow;
    if (point.priority != cnm.priority || !to || !from) return Verdict::wrong_flow;
    number = named;
    return Verdict::handled;
  }
  const Trace trace{with_priority(meta.destination_mac, cnm.priority), cnm.destination_mac, headers_in(cnm.msdu)};
  const auto found = traces_.find(trace);
  if (found == traces_.end()) return Verdict::unknown_flow;
  if (found->second.point == kSeveral) return Verdict::ambiguous;
  number = found->second.point;
  return Verdict::handled;
}

// ---- accounts ----

void ReactionPoints::settle(Group& group, Time now) {
  group.limited_time += group.limited * (now - group.since);
  group.since = now;
}

bool ReactionPoints::count(uint32_t number, Time now) {
  ReactionPoint& point = points_[number];
  const bool limits = point.rate.limited();
  if (limits == point.limited) return false;
  point.limited = limits;
  Group& group = groups_[point.priority];
  settle(group, now);
  group.limited += limits ? 1 : uint32_t{0} - 1;
  limited_ += limits ? 1 : uint32_t{0} - 1;
  return limits;
}

Time ReactionPoints::take_limited_time(int priority, Time now) {
  Group& group = groups_[static_cast<size_t>(priority)];
  settle(group, now);
  return std::exchange(group.limited_time, 0);
}

}  // namespace weir
