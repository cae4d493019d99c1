#include "endpoint/flow_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/random.h"
#include "endpoint/stack_queues.h"
#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/classify.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace weir {
namespace {

// Purposes of the random streams of groups, each of which has one of its own, and of queue pairs.
constexpr uint64_t kGroupPurpose = uint64_t{1} << 32;
constexpr uint64_t kPairPurpose = uint64_t{2} << 32;

// Parameters of flows without any control.
const CongestionParameters kNoControl;

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

// Key of an address of 4 or 16 bytes.
uint64_t address_key(uint8_t version, const uint8_t* address) {
  if (version != 6) return uint64_t{4} << 32 | load_be32(address);
  return mix(mix(load_be64(address)) ^ load_be64(address + 8));
}

constexpr uint64_t with_priority(uint64_t value, uint8_t priority) { return value << 3 >> 3 | uint64_t{priority} << 61; }

}  // namespace

FlowTable::FlowTable(const NicParameters& parameters, uint32_t queue_pairs, uint32_t stack_queues, NicCounters& counters)
    : parameters_(parameters),
      rpgs_((hears(parameters.congestion) & kHearsCnms) != 0 ? kPriorities : 0),
      grouped_((hears(parameters.congestion) & kHearsCnms) != 0),
      queue_pairs_(queue_pairs),
      // A group has a sender, so there need not be more of them.
      places_(grouped_ ? std::min(static_cast<uint32_t>(std::popcount(parameters.grouping.priorities)) * most_of_priority(),
                                  queue_pairs + stack_queues)
                       : 0),
      counters_(counters),
      flows_(queue_pairs + stack_queues),
      members_(queue_pairs + stack_queues),
      traces_of_(queue_pairs) {
  counters.rp_cur_flows = 0;
  flows_.reserve(senders() + places_);
  groups_.reserve(places_);
  take_parameters();
}

// Each keeps its alternative, so that what refers to it stays good.
void FlowTable::take_parameters() {
  for (size_t priority = 0; priority < rpgs_.size(); ++priority) {
    const std::optional<QcnParameters>& own = parameters_.grouping.rpgs[priority];
    rpgs_[priority] = own ? CongestionParameters(*own) : parameters_.congestion;
  }
}

// No CNPV can take all of them: each has one at least.
uint32_t FlowTable::most_of_priority() const {
  const auto priorities = static_cast<uint32_t>(std::popcount(parameters_.grouping.priorities));
  return std::clamp(parameters_.grouping.most, 1u, kMost / std::max(priorities, 1u));
}

size_t FlowTable::TraceHash::operator()(const Trace& trace) const {
  return mix(mix(mix(trace.source) ^ trace.destination) ^ trace.headers);
}

// ---- flows ----

// Congestion control is its group's where there are groups; and where it hears nothing but acknowledgements, of those that have
// some: neither datagrams, nor a stream that only sends what its peer READs.
void FlowTable::reset(uint32_t index, const QueuePair& qp, Time now) {
  Flow& flow = flows_[index];
  const QueuePairParameters& p = qp.parameters;
  const bool unheard = controls_reads(parameters_.congestion) && (!qp.acknowledged() || p.serves());
  flow.started = flow.running = false;
  count(index, now);
  flow.controller.configure(grouped_ || unheard ? kNoControl : parameters_.congestion,
                            {.line_rate = parameters_.rate,
                             .window = packets_in_flight(p.transport),
                             .packet_bytes = wire_bytes(qp.headers.bth_offset() + kBthHeader + qp.path_mtu() + kIcrc),
                             .random = Random(parameters_.seed, parameters_.component, kPairPurpose + index),
                             .refused = &counters_.cc_refused_answers});
  set_cap(index, p.rate_cap);
}

void FlowTable::set_cap(uint32_t index, Rate cap) {
  Flow& flow = flows_[index];
  const bool alone = members_[index].group == kNone;
  flow.ceiling = alone && (cap == 0 || cap > parameters_.rate) ? parameters_.rate : cap;
  flow.tell([](auto&) {});
}

uint64_t FlowTable::key_of(const QueuePair& qp) const {
  const QueuePairParameters& p = qp.parameters;
  switch (parameters_.grouping.selection) {
    case FlowSelection::application:
      return p.application;
    case FlowSelection::destination_mac:
      if (!qp.datagram()) return p.path.destination_mac;
      break;
    case FlowSelection::five_tuple:
      if (!qp.datagram()) return hash_path(p.path);
      break;
    case FlowSelection::queue_pair:
      break;
  }
  // Numbers of queue pairs differ from all that were there before; bit 60 keeps them apart from addresses.
  return qp.qpn | uint64_t{1} << 60;
}

// One that has no members, for a group of `priority`; `only`: and is of that already.
uint32_t FlowTable::take_reusable(uint8_t priority, bool only) {
  for (size_t left = reusable_.size(); left > 0; --left) {
    const uint32_t number = reusable_.front();
    reusable_.pop_front();
    Group& candidate = group(number);
    if (candidate.members > 0) {
      candidate.reusable = false;
    } else if (only && candidate.priority != priority) {
      reusable_.push_back(number);
    } else {
      return number;
    }
  }
  return kNone;
}

uint32_t FlowTable::make(uint64_t key, uint8_t priority, Time now) {
  Priority& of = priorities_[priority];
  const bool full = of.groups.size() >= most_of_priority();
  uint32_t number = kNone;
  if (!full && groups_.size() < places_) {
    number = size();
    flows_.emplace_back();
    groups_.emplace_back();
  } else {
    number = take_reusable(priority, full);
    if (number == kNone) return kNone;
    Group& old = group(number);
    flows_[number].running = false;
    count(number, now);
    std::erase(priorities_[old.priority].groups, number);
    by_key_.erase(old.key);
    old = {};
  }
  Flow& flow = flows_[number] = {};
  if (parameters_.grouping.limiter == Limiter::token_bucket) flow.limiter = FlowLimiter(parameters_.grouping.token_bucket);
  flow.controller.configure(
      rpgs_[priority],
      {.line_rate = parameters_.rate, .random = Random(parameters_.seed, parameters_.component, kGroupPurpose + made_++)});
  flow.running = true;
  flow.tell([](auto&) {});
  Group& made = group(number);
  made.key = key;
  made.priority = priority;
  of.groups.push_back(number);
  by_key_[key] = number;
  return number;
}

uint32_t FlowTable::group_for(uint64_t key, uint8_t priority, Time now) {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second;
  const uint32_t made = make(key, priority, now);
  if (made != kNone) return made;
  const std::vector<uint32_t>& shared = priorities_[priority].groups;
  return shared[mix(key) % shared.size()];
}

// The sender becomes a part of the group of that key. Addresses: its own, 0: several.
uint32_t FlowTable::enter(uint32_t index, uint64_t key, uint8_t priority, uint64_t source_mac, uint64_t destination_mac,
                          Time now) {
  const uint32_t number = group_for(with_priority(key, priority), priority, now);
  Group& to = group(number);
  const bool alone = to.members++ == 0;
  to.source_mac = alone || to.source_mac == source_mac ? source_mac : 0;
  to.destination_mac = alone || to.destination_mac == destination_mac ? destination_mac : 0;
  members_[index].group = number;
  return number;
}

void FlowTable::bind(uint32_t index, const QueuePair& qp, Time now) {
  const uint8_t priority = qp.parameters.priority;
  if (!grouped_ || (parameters_.grouping.priorities >> priority & 1) == 0) return;
  const RocePath& path = qp.parameters.path;
  const uint64_t destination = qp.datagram() ? 0 : path.destination_mac;
  const uint32_t number = enter(index, key_of(qp), priority, path.source_mac, destination, now);
  set_cap(index, qp.parameters.rate_cap);
  if (qp.datagram()) return;
  const uint64_t headers = uint64_t{qp.parameters.remote_qpn} << 16 | path.udp_source_port;
  const bool by_ip = parameters_.grouping.cnms_by_ip;
  const uint64_t from = by_ip ? address_key(path.ip_version, path.source_ip) : path.source_mac;
  const uint64_t to = by_ip ? address_key(path.ip_version, path.destination_ip) : path.destination_mac;
  Trace trace{with_priority(from, priority), to, headers};
  traces_of_[index] = trace;
  add_trace(trace, number);
  trace.headers = kAnyHeaders;
  add_trace(trace, number);
}

// Bit 59 keeps its key apart from those of queue pairs and from addresses.
void FlowTable::bind_stack(uint32_t index, uint8_t priority, Time now) {
  if (!grouped_ || members_[index].group != kNone || (parameters_.grouping.priorities >> priority & 1) == 0) return;
  enter(index, index | uint64_t{1} << 59, priority, parameters_.mac, 0, now);
  stack_priorities_ = static_cast<uint8_t>(stack_priorities_ | 1u << priority);
}

void FlowTable::unbind(uint32_t index) {
  Member& member = members_[index];
  if (member.group == kNone) return;
  leave(index);
  Flow& flow = flows_[member.group];
  if (flow.in_turn == index) flow.in_turn = kNone;
  if (flow.sent_last == index) flow.sent_last = kNone;
  Group& of = group(member.group);
  if (--of.members == 0 && !of.reusable) {
    of.reusable = true;
    reusable_.push_back(member.group);
  }
  member.group = kNone;
  Trace& trace = traces_of_[index];
  if (trace.source == 0) return;
  remove_trace(trace);
  trace.headers = kAnyHeaders;
  remove_trace(trace);
  trace.source = 0;
}

void FlowTable::add_trace(const Trace& trace, uint32_t number) {
  const auto [entry, fresh] = traces_.try_emplace(trace, Traced{number, 0});
  ++entry->second.queue_pairs;
  if (entry->second.group != number) entry->second.group = kSeveral;
}

void FlowTable::remove_trace(const Trace& trace) {
  const auto entry = traces_.find(trace);
  if (--entry->second.queue_pairs == 0) traces_.erase(entry);
}

// ---- turns ----

void FlowTable::join(uint32_t index) {
  Member& member = members_[index];
  Flow& flow = flows_[member.group];
  member.waits = true;
  member.next = kNone;
  member.previous = flow.last;
  (flow.last == kNone ? flow.first : members_[flow.last].next) = index;
  flow.last = index;
}

void FlowTable::leave(uint32_t index) {
  Member& member = members_[index];
  if (!member.waits) return;
  Flow& flow = flows_[member.group];
  (member.previous == kNone ? flow.first : members_[member.previous].next) = member.next;
  (member.next == kNone ? flow.last : members_[member.next].previous) = member.previous;
  member.waits = false;
}

uint32_t FlowTable::take(uint32_t number) {
  const uint32_t index = flows_[number].first;
  leave(index);
  return index;
}

// ---- notifications ----

// Destination queue pair and UDP source port of a RoCEv2 frame that starts with its ethertype; kAnyHeaders where they are not.
uint64_t FlowTable::headers_in(std::span<const uint8_t> msdu) {
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

uint64_t NicCounters::*FlowTable::refuse(const CongestionNotification& cnm) const {
  if ((parameters_.grouping.priorities >> cnm.priority & 1) == 0) return &NicCounters::rp_cnm_not_cnpv;
  return cnm.quantized_feedback == 0 ? &NicCounters::rp_cnm_no_feedback : nullptr;
}

uint64_t NicCounters::*FlowTable::find(const PacketMeta& meta, const CongestionNotification& cnm, uint32_t& number) const {
  if (const auto refused = refuse(cnm); refused != nullptr) return refused;
  if (meta.cn_tagged) {
    const uint32_t named = meta.cn_flow - 1u;
    if (named >= groups_.size() || groups_[named].members == 0) return &NicCounters::rp_cnm_unknown_flow;
    const Group& of = groups_[named];
    const bool to = of.destination_mac == 0 || of.destination_mac == cnm.destination_mac;
    const bool from = of.source_mac == 0 || of.source_mac == meta.destination_mac;
    if (of.priority != cnm.priority || !to || !from) return &NicCounters::rp_cnm_wrong_flow;
    number = senders() + named;
    return nullptr;
  }
  const Trace trace{with_priority(meta.destination_mac, cnm.priority), cnm.destination_mac, headers_in(cnm.msdu)};
  return find_sampled(meta, trace, cnm, number);
}

uint64_t NicCounters::*FlowTable::find(const PacketMeta& meta, const IpAddress& own, const CongestionNotification& cnm,
                                       uint32_t& number) const {
  if (const auto refused = refuse(cnm); refused != nullptr) return refused;
  const std::optional<IpAddress> source = sampled_source(cnm.msdu);
  if (!source) return &NicCounters::rp_cnm_ambiguous;
  if (*source != own) return &NicCounters::rp_cnm_wrong_flow;
  const uint8_t version = own.version;
  const uint8_t* const destination = cnm.msdu.data() + 2 + ip_source_offset(version) + ip_address_length(version);
  const Trace trace{with_priority(address_key(version, own.bytes), cnm.priority), address_key(version, destination),
                    headers_in(cnm.msdu)};
  return find_sampled(meta, trace, cnm, number);
}

// Finds the group by the frame that the CNM encapsulates.
uint64_t NicCounters::*FlowTable::find_sampled(const PacketMeta& meta, const Trace& trace, const CongestionNotification& cnm,
                                               uint32_t& number) const {
  if ((stack_priorities_ >> cnm.priority & 1) != 0) {
    const SampledFlow sampled = sampled_flow(cnm.msdu, cnm.destination_mac, meta.destination_mac);
    if (sampled.kind == SampledFlow::Kind::unknown) return &NicCounters::rp_cnm_ambiguous;
    if (sampled.kind == SampledFlow::Kind::other) {
      number = members_[queue_pairs_ + StackQueues::queue_of(cnm.priority, sampled.hash)].group;
      return number == kNone ? &NicCounters::rp_cnm_unknown_flow : nullptr;
    }
  }
  const auto found = traces_.find(trace);
  if (found == traces_.end()) return &NicCounters::rp_cnm_unknown_flow;
  if (found->second.group == kSeveral) return &NicCounters::rp_cnm_ambiguous;
  number = found->second.group;
  return nullptr;
}

// ---- accounts ----

void FlowTable::account(Priority& priority, Time now) {
  priority.held_time += priority.held * (now - priority.since);
  priority.since = now;
}

bool FlowTable::recount(uint32_t number, Time now) {
  Flow& flow = flows_[number];
  flow.counted = !flow.counted;
  flow.counted ? ++counters_.rp_cur_flows : --counters_.rp_cur_flows;
  if (number >= senders()) {
    Priority& of = priorities_[group(number).priority];
    account(of, now);
    flow.counted ? ++of.held : --of.held;
  }
  return flow.counted;
}

Time FlowTable::take_held_time(int priority, Time now) {
  Priority& of = priorities_[static_cast<size_t>(priority)];
  account(of, now);
  return std::exchange(of.held_time, 0);
}

}  // namespace weir
