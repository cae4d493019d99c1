#include "simulation/fabric.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "base/huge_pages.h"
#include "base/native_error.h"
#include "endpoint/reliable_stream.h"
#include "link/serializer.h"
#include "wire/classify.h"

namespace weir {
namespace {

// Most networks never fill so many; there are more when these run out.
constexpr uint32_t kDescriptors = 1u << 18;
// Rounds in a row for which it is decided whether threads go through them together; sooner at the beginning of all.
constexpr uint64_t kLookedAt = 16;
// Rounds after which, and after twice as many each, what a run has made is looked at.
constexpr uint64_t kSettled = 256;

// Time that it takes to tell a device anything but by a frame: as a frame would take on the longest link.
Time longest_link(const SimulationConfig& config) {
  Time longest = 0;
  for (const SimulatedLink& link : config.links) longest = std::max(longest, lookahead_of(config, link));
  return longest;
}

// Addresses of hosts are in a row.
void install_routes(Forwarding& forwarding, const SimulatedRoutes& routes, uint64_t first_mac) {
  forwarding.add_static_range(first_mac, routes.group_of_host, routes.groups);
  for (const SimulatedRoutes::Pin& pin : routes.pins) forwarding.pin(first_mac + pin.from, first_mac + pin.to, pin.port);
}

// Bytes of a frame with payload, of the longest that queue pairs send.
constexpr uint32_t kPayloadStride = 4'352;
static_assert(kPayloadStride >= kMaxHeaders + 4'096);
// So many of those take a hundred megabytes.
constexpr uint32_t kPayloadDescriptors = 1u << 15;

// Bytes of a descriptor.
uint32_t stride_of(const SimulationConfig& config) {
  if (has_programs(config)) return kPayloadStride;
  const auto telemetry = [](const SimulatedNic& nic) { return (hears(nic.parameters.congestion) & kHearsTelemetry) != 0; };
  const auto datagrams = [](const SimulatedSwitch& device) { return device.parameters.cnms_by_ip; };
  const bool longer = std::ranges::any_of(config.nics, telemetry) || std::ranges::any_of(config.switches, datagrams);
  return longer ? kTelemetryStride : kHeaderStride;
}

// Links of a simulation flip no bits that their ends do not know of: the ICRC is for who reads a trace.
PacketShape shape_of(const SimulationConfig& config) {
  return {.count = has_programs(config) ? kPayloadDescriptors : kDescriptors,
          .stride = stride_of(config),
          .icrc = !config.taps.empty()};
}

uint32_t count_of(const std::vector<uint32_t>& division) {
  return division.empty() ? 1 : *std::ranges::max_element(division) + 1;
}

}  // namespace

Fabric::Fabric(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs,
               const Sharing& sharing, HostWork* hosts)
    : memory_(std::make_unique<PacketMemory>(shape_of(config))),
      window_(longest_window(config)),
      round_(windows_of_round(config, sharing.division)),
      first_mac_(config.nics.empty() ? 0 : config.nics.front().parameters.mac),
      worthwhile_(sharing.worthwhile),
      loads_(count_of(sharing.division)),
      counted_(count_of(sharing.division)) {
  place(config, sharing.division, hosts);
  add_devices(config, queue_pairs);
  connect(config);
  put_into_huge_pages();
  const uint32_t threads = std::min(config.threads, count_of(sharing.division));
  if (threads == 1) return;
  const auto work = [this](uint32_t i) { partitions_[i]->run(end_, turn_, partitions_); };
  crew_ = std::make_unique<Crew>(threads, count_of(sharing.division), work);
}

Fabric::~Fabric() = default;

void Fabric::place(const SimulationConfig& config, const std::vector<uint32_t>& division, HostWork* hosts) {
  std::vector<uint32_t> counts(count_of(division));
  const size_t switches = config.switches.size();
  for (size_t i = 0; i < switches; ++i) places_.push_back({division[i], counts[division[i]]++});
  const std::vector<uint32_t> machines = machines_of(config);
  std::vector<uint32_t> nics(machines.size());
  for (size_t i = 0; i < machines.size(); ++i) {
    const uint32_t partition = division[switches + i], number = nics[machines[i]]++;
    if (number == 0) {
      places_.push_back({partition, counts[partition]++});
    } else {
      const DevicePlace& first = places_[switches + machines[i]];
      require(first.partition == partition, "sharing.division", "NICs of one machine are in one partition");
      places_.push_back({partition, first.device, number});
    }
  }
  uint32_t port = 0;
  for (const SimulatedSwitch& s : config.switches) {
    first_port_.push_back(port);
    port += static_cast<uint32_t>(s.parameters.ports.size());
  }
  for (size_t i = 0; i < config.nics.size(); ++i) first_port_.push_back(port++);
  directions_.resize(port);
  const auto partitions = static_cast<uint32_t>(counts.size());
  const Partition::Surroundings surroundings{
      .partitions = partitions,
      .lookahead = window_,
      .word = longest_link(config),
      .overtaking = !config.faults.empty() ||
                    std::ranges::any_of(config.links, [](const SimulatedLink& link) { return link.impairment.has_value(); }),
      .directions = directions_,
      .hosts = hosts,
  };
  for (uint32_t i = 0; i < partitions; ++i) {
    partitions_.push_back(std::make_unique<Partition>(i, counts[i], surroundings, *memory_));
  }
}

void Fabric::add_devices(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs) {
  for (const SimulatedSwitch& s : config.switches) {
    const size_t number = switches_.size();
    switches_.push_back(&partitions_[places_[number].partition]->add_switch(s.parameters, first_port_[number]));
    install_routes(switches_.back()->forwarding(), s, first_mac_);
  }
  const std::vector<uint32_t> machines = machines_of(config);
  std::vector<uint32_t> order(machines.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t nic) { return machines[nic]; });
  nics_.resize(machines.size());
  for (const uint32_t i : order) {
    const size_t number = switches_.size() + i;
    Partition& partition = *partitions_[places_[number].partition];
    nics_[i] = &partition.add_nic(config.nics[i].parameters, queue_pairs[i], places_[number], first_port_[number], i);
  }
}

// Devices are gone through one after another in each window: those of a large network are all over the memory. Connections, which
// are made during a run, join them later.
void Fabric::put_into_huge_pages() {
  HugePages pages;
  for (SoftSwitch* const device : switches_) {
    for (uint16_t port = 0; port < device->port_count(); ++port) pages.add(&device->counters(port), SoftSwitch::port_bytes());
  }
  for (SoftNic* const nic : nics_) {
    pages.add(nic, sizeof *nic);
    for (const QueuePair& qp : nic->queue_pairs()) {
      pages.add(&qp, sizeof qp);
      if (qp.kind != QueuePair::Kind::reliable_stream) continue;
      const auto& stream = static_cast<const ReliableStream&>(*qp.transport);
      pages.add(&stream, sizeof stream);
      stream.each_connection([&](const StreamConnection& connection) { pages.add(&connection, sizeof connection); });
    }
  }
  pages.collapse();
}

void Fabric::connect(const SimulationConfig& config) {
  for (size_t i = 0; i < config.links.size(); ++i) {
    const SimulatedLink& link = config.links[i];
    for (size_t side = 0; side < 2; ++side) {
      const LinkEnd& to = link.ends[1 - side];
      const uint32_t port = port_number(link.ends[side]);
      link_ports_.push_back(port);
      Direction& direction = directions_[port];
      direction.receiver = places_[to.device];
      direction.port = to.device < switches_.size() ? to.port : static_cast<uint16_t>(places_[to.device].nic);
      direction.delay = link.delay;
      if (link.impairment) {
        direction.impairment = std::make_unique<Impairment>(*link.impairment, config.seed, 2 * i + side, 2);
      }
    }
  }
  for (size_t i = 0; i < config.faults.size(); ++i) {
    const SimulatedFault& fault = config.faults[i];
    Direction& direction = directions_[link_ports_[2 * size_t{fault.link} + (1 - fault.end)]];
    if (direction.impairment == nullptr) direction.impairment = std::make_unique<Impairment>(ImpairmentParameters{}, 0, 0, 0);
    if (direction.faults == nullptr) direction.faults = std::make_unique<Faults>();
    direction.faults->add(static_cast<uint32_t>(i), fault.fault, 0);
  }
  for (size_t i = 0; i < link_ports_.size(); ++i) {
    if (directions_[link_ports_[i]].faults == nullptr) continue;
    const DevicePlace& sender = places_[config.links[i / 2].ends[i % 2].device];
    partitions_[sender.partition]->begin_pauses(sender.device, link_ports_[i]);
  }
  for (size_t tap = 0; tap < config.taps.size(); ++tap) {
    directions_[port_number(config.taps[tap])].tap = static_cast<uint32_t>(tap);
  }
}

bool Fabric::run(Time until, uint64_t limit) {
  until_ = until;
  limit_ = limit;
  end_ = 0;
  for (const auto& partition : partitions_) partition->begin();
  bool more = next_round();
  const auto next = [&] {
    more = next_round();
    return more && together_;
  };
  while (more) {
    if (together_) {
      crew_->run(next);
    } else {
      for (uint32_t i = 0; i < partitions_.size(); ++i) partitions_[i]->run(end_, turn_, partitions_);
      next();
    }
  }
  if (crew_ != nullptr) balance();
  return reached_;
}

// When the next round is; false: the run is over.
bool Fabric::next_round() {
  bool stalled = false;
  uint64_t next = Schedule::kNoWindow;
  for (const auto& partition : partitions_) {
    if (partition->paused()) [[unlikely]]
      return pause_at(partition->now());
    supply(*partition);
    stalled |= partition->stalled();
    next = std::min(next, partition->next_window());
  }
  if (!stalled) {
    if (end_ > until_ || next == Schedule::kNoWindow || static_cast<Time>(next) * window_ > until_) return finish(true);
    if (end_ > 0 && events() >= limit_) return finish(false);
    end_ = std::min(static_cast<Time>(next + round_) * window_, until_ + 1);
    ++rounds_;
    if (rounds_ >= kSettled && std::has_single_bit(rounds_)) put_into_huge_pages();
    if (crew_ != nullptr && (rounds_ % kLookedAt == 0 || (rounds_ < kLookedAt && std::has_single_bit(rounds_)))) {
      const uint64_t happened = events();
      together_ = happened - looked_at_.events >= (rounds_ - looked_at_.round) * worthwhile_;
      looked_at_ = {happened, rounds_};
    }
    all_together_ += together_ ? 1 : 0;
  }
  turn_ ^= 1;
  return true;
}

bool Fabric::pause_at(Time now) {
  reached_ = false;
  now_ = std::max(now_, now);
  return false;
}

bool Fabric::finish(bool reached) {
  reached_ = reached;
  now_ = std::max(now_, reached ? until_ : end_ - 1);
  return false;
}

void Fabric::balance() {
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const uint64_t events = partitions_[i]->events();
    loads_[i] += events - std::exchange(counted_[i], events);
  }
  crew_->balance(loads_);
}

uint64_t Fabric::events() const {
  uint64_t sum = 0;
  for (const auto& partition : partitions_) sum += partition->events();
  return sum;
}

uint64_t Fabric::hops() const {
  uint64_t sum = 0;
  for (const auto& partition : partitions_) sum += partition->hops();
  return sum;
}

Fabric::Work Fabric::work() const {
  Work work;
  work.partitions = static_cast<uint32_t>(partitions_.size());
  work.round = static_cast<Time>(round_) * window_;
  work.rounds = rounds_;
  work.together = all_together_;
  for (const auto& partition : partitions_) work.crossed += partition->crossed();
  if (crew_ == nullptr) return work;
  work.threads = crew_->threads();
  work.times = crew_->times();
  return work;
}

void Fabric::require_reached(const char* what) const {
  if (!reached_)
    throw NativeError("INVALID_STATE", 0, "", std::string(what) + " in the middle of a run", "run up to a time first");
}

void Fabric::set_link(size_t link, bool up) {
  require_reached("a link fails, or is there again,");
  for (const auto& partition : partitions_) partition->collect(partitions_);
  for (size_t side = 0; side < 2; ++side) {
    Direction& direction = directions_[link_ports_[2 * link + side]];
    if (direction.down == !up) return;
    direction.down = !up;
    if (up) continue;
    Partition& partition = *partitions_[direction.receiver.partition];
    partition.lose(direction);
    partition.end_pauses(direction.receiver, direction.port, now_);
  }
}

void Fabric::reroute(size_t index, const SimulatedRoutes& routes) {
  require_reached("a switch gets other routes");
  check(routes, switches_[index]->port_count(), nics_.size());
  Forwarding& forwarding = switches_[index]->forwarding();
  forwarding.clear_static();
  install_routes(forwarding, routes, first_mac_);
}

void Fabric::reconfigure_switch(size_t index, const SwitchParameters& parameters) {
  require_reached("a switch is reconfigured");
  check_reconfiguration(index, parameters);
  SoftSwitch& device = *switches_[index];
  device.advance(now_);
  device.reconfigure(parameters);
}

// Links, memory and all that the schedule relies on stay.
void Fabric::check_reconfiguration(size_t index, const SwitchParameters& next) const {
  const SwitchParameters& present = switches_[index]->parameters();
  const auto refuse = [&](const std::string& what) {
    throw NativeError("INVALID_CONFIG", 0, "", "switch " + std::to_string(index) + ": " + what + " cannot change in a simulation",
                      "start another simulation");
  };
  if (next.ports.size() != present.ports.size()) refuse("the number of ports");
  if (next.buffer.total != present.buffer.total) refuse("the size of the buffer");
  if (next.learning != present.learning) refuse("learning");
  for (size_t port = 0; port < next.ports.size(); ++port) {
    const std::string name = " of port " + std::to_string(port);
    if (next.ports[port].mac != present.ports[port].mac) refuse("the address" + name);
    if (next.ports[port].mtu != present.ports[port].mtu) refuse("the MTU" + name);
    const Time shortest = Serializer(next.ports[port].rate).finish(0, wire_bytes(kMinimumFrame));
    if (directions_[first_port_[index] + port].delay + shortest < window_) refuse("to so much the rate" + name);
  }
}

void Fabric::wake_host(uint32_t nic, Time at) {
  const DevicePlace& place = places_[switches_.size() + nic];
  partitions_[place.partition]->wake_host(place, nic, at);
}

void Fabric::send_for_stack(uint32_t nic, Time now, std::span<const uint8_t> frame) {
  PacketPool& pool = partitions_[partition_of_nic(nic)]->pool();
  const PacketId id = frame.size() <= pool.room() ? pool.allocate() : kNoPacket;
  if (id == kNoPacket) return;
  Packet& packet = pool[id];
  packet = {};
  packet.length = static_cast<uint16_t>(frame.size());
  std::ranges::copy(frame, pool.data(id));
  if (classify(pool.data(id), packet.length, packet.meta) != Refusal::none) return pool.free(id);
  nics_[nic]->send_for_stack(now, id);
}

void Fabric::close_stream(uint32_t from, uint32_t nic, uint32_t index) {
  partitions_[partition_of_nic(from)]->wake_later(places_[switches_.size() + nic], Partition::kClose | index);
}

void Fabric::supply(Partition& partition) {
  const uint32_t least = 2 * Partition::kSpare;
  while (partition.pool().available() < least) {
    if (made_ == room()) grow();
    // If there are several partitions, each has its packets close together: a page, once touched, is theirs as a whole.
    const uint32_t count = partitions_.size() == 1 ? room() - made_ : std::min(room() - made_, least);
    partition.pool().supply(made_, count);
    made_ += count;
  }
}

// Must be called between events, when nobody holds a reference to a packet.
void Fabric::grow() {
  const uint64_t count = uint64_t{2} * room();
  PacketShape shape = memory_->shape();
  const auto refuse = [&] {
    const uint64_t megabytes = count * (sizeof(Packet) + shape.stride) >> 20;
    throw NativeError("ENOMEM", ENOMEM, "mmap",
                      std::to_string(packets()) + " frames are under way at once, and there is no memory for more: " +
                          std::to_string(megabytes) + " MiB could not be had",
                      "raise the limit of addresses (ulimit -v, RLIMIT_AS), or let the network hold less: fewer hosts, shorter "
                      "delays of links, smaller buffers");
  };
  if (count > kMostPackets) refuse();
  try {
    shape.count = static_cast<uint32_t>(count);
    auto larger = std::make_unique<PacketMemory>(shape);
    larger->take_over(*memory_, made_);
    for (const auto& partition : partitions_) partition->pool().move_to(*larger);
    memory_ = std::move(larger);
  } catch (const std::bad_alloc&) {
    refuse();
  }
}

uint32_t Fabric::packets() const {
  uint32_t count = made_;
  for (const auto& partition : partitions_) count -= partition->pool().available() + partition->returned();
  return count;
}

std::vector<FaultState> Fabric::faults() const {
  std::vector<FaultState> out;
  for (const Direction& direction : directions_) {
    if (direction.faults == nullptr) continue;
    const auto states = direction.faults->states();
    out.insert(out.end(), states.begin(), states.end());
  }
  std::ranges::sort(out, {}, &FaultState::number);
  return out;
}

std::vector<bool> Fabric::packets_in_use() const {
  std::vector<bool> marks(made_, true);
  for (const auto& partition : partitions_) {
    partition->pool().unmark_free(marks);
    partition->unmark_returned(marks);
  }
  return marks;
}

// Devices live through a window of time one after another: frames that they sent in it are not in the order of time. Each tap has
// the frames of one device, in their order.
std::vector<uint8_t> Fabric::take_trace() {
  struct Traced {
    CapturedFrame frame;
    const uint8_t* record;
  };
  std::vector<Traced> traced;
  for (const auto& partition : partitions_) {
    const std::vector<uint8_t>& records = partition->traced();
    for (size_t at = 0; at < records.size(); at += traced.back().frame.length()) {
      Traced& one = traced.emplace_back();
      one.record = records.data() + at;
      std::memcpy(&one.frame, one.record, sizeof one.frame);
    }
  }
  std::ranges::stable_sort(traced, {}, [](const Traced& one) { return std::tie(one.frame.stamp, one.frame.tap); });
  std::vector<uint8_t> trace;
  for (const Traced& one : traced) trace.insert(trace.end(), one.record, one.record + one.frame.length());
  for (const auto& partition : partitions_) partition->traced().clear();
  return trace;
}

}  // namespace weir
