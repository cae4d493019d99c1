#include "addon/inspect.h"

#include <arpa/inet.h>

#include <algorithm>

namespace weir {
namespace {

// A switch shows these entries of the forwarding table.
bool is_shown(const Forwarding::Entry& entry, Time now) { return entry.expires > now && !Forwarding::is_pin(entry); }

std::string text_of(const NeighbourTable::Entry& entry) {
  uint8_t bytes[16];
  entry.address.store(entry.version, bytes);
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(entry.version == 6 ? AF_INET6 : AF_INET, bytes, text, sizeof text);
}

}  // namespace

size_t count_forwarding(SwitchDevice& device) {
  const SoftSwitch& s = device.soft_switch();
  return static_cast<size_t>(
      std::ranges::count_if(s.forwarding().entries(), [&](const Forwarding::Entry& entry) { return is_shown(entry, s.now()); }));
}

std::vector<ForwardingEntry> copy_forwarding(SwitchDevice& device) {
  const SoftSwitch& s = device.soft_switch();
  const Forwarding& table = s.forwarding();
  std::vector<ForwardingEntry> copy;
  for (const Forwarding::Entry& entry : table.entries()) {
    if (!is_shown(entry, s.now())) continue;
    ForwardingEntry& out = copy.emplace_back();
    out.mac = Forwarding::entry_mac(entry);
    out.vlan = Forwarding::entry_vlan(entry);
    out.learned = Forwarding::is_learned(entry);
    if (out.learned) {
      out.ports.push_back(static_cast<uint16_t>(entry.first_port));
      out.expires_in = entry.expires - s.now();
    } else {
      const std::span<const uint16_t> group = table.entry_ports(entry);
      out.ports.assign(group.begin(), group.end());
    }
  }
  return copy;
}

std::vector<NeighbourCopy> copy_neighbours(SwitchDevice& device) {
  std::vector<NeighbourCopy> copy;
  const Router* const router = device.soft_switch().routed().router();
  if (router == nullptr) return copy;
  for (const NeighbourTable::Entry& entry : router->neighbours.entries()) {
    if (entry.state == NeighbourState::unused) continue;
    NeighbourCopy& out = copy.emplace_back();
    out.address = text_of(entry);
    out.interface = entry.interface;
    out.port = entry.port;
    out.mac = entry.mac;
    out.state = entry.state;
    out.waits = entry.waits;
  }
  return copy;
}

SwitchCopy copy_switch(SwitchDevice& device) {
  SoftSwitch& s = device.soft_switch();
  const SharedBuffer& buffer = s.buffer();
  SwitchCopy copy;
  copy.buffer = {.total = device.config().parameters.buffer.total,
                 .shared = buffer.shared_size(),
                 .occupied = buffer.occupied(),
                 .watermark = buffer.watermark(),
                 .pfc_threshold = buffer.pfc_threshold()};
  for (uint16_t i = 0; i < s.port_count(); ++i) {
    SwitchCopy::Port& port = copy.ports.emplace_back();
    port.up = device.ports()[i].up();
    port.paused = s.pauses().paused_mask(i);
    port.pausing = s.pauses().pausing_mask(i);
    port.pfc_storms = s.pauses().storm_mask(i);
    for (int p = 0; p < kPriorities; ++p) {
      port.queue[static_cast<size_t>(p)] = buffer.egress_bytes(i, p);
      port.ingress[static_cast<size_t>(p)] = buffer.ingress_bytes(i, p);
      port.headroom[static_cast<size_t>(p)] = buffer.headroom_bytes(i, p);
    }
  }
  return copy;
}

namespace {

std::string text(const RocePath& path) {
  char out[INET6_ADDRSTRLEN];
  return ::inet_ntop(path.ip_version == 6 ? AF_INET6 : AF_INET, path.destination_ip, out, sizeof out);
}

}  // namespace

QueuePairCopy copy_queue_pair(SoftNic& nic, uint32_t index, std::string name) {
  QueuePair& qp = nic.queue_pairs()[index];
  const Flow& flow = nic.observation().flow_at(index, nic.now());
  const ControllerState state = flow.controller.visit([](const auto& c) { return c.state(); });
  const Rate rate = nic.allowed_rate(qp);
  // A flow without a target has one rate.
  const Rate held = state.target_rate > 0 ? state.target_rate : rate;
  return {.name = std::move(name),
          .qpn = qp.qpn,
          .remote_qpn = qp.parameters.remote_qpn,
          .state = qp.state,
          .connecting = qp.kind == QueuePair::Kind::reliable_stream && static_cast<ReliableStream&>(*qp.transport).connecting(),
          .limited = flow.held,
          .rate = rate,
          .target_rate = flow.held ? held : nic.line_rate(),
          .alpha = state.alpha,
          .window = state.window,
          .stage = state.stage,
          .kind = qp.kind,
          .priority = qp.parameters.priority,
          .qp_state = qp.verbs() != nullptr ? std::optional(qp.verbs()->state()) : std::nullopt,
          .peer = qp.verbs() != nullptr && qp.connected ? std::optional(text(qp.parameters.path)) : std::nullopt,
          .counters = qp.verbs() != nullptr ? std::optional(qp.counters) : std::nullopt};
}

// What a program's own NIC says of its queue pair.
static void take_news(QueuePairCopy& copy, const LentPairNews& told) {
  const auto word = [](const auto& number, auto most) {
    return std::min<uint32_t>(number.load(std::memory_order_relaxed), most);
  };
  copy.direct = true;
  copy.state = static_cast<QueuePair::State>(word(told.state, words_of(QueuePair::State{}).size() - 1));
  copy.stage = static_cast<IncreaseStage>(word(told.stage, words_of(IncreaseStage{}).size() - 1));
  copy.limited = word(told.limited, 1u) != 0;
  copy.rate = static_cast<Rate>(told.rate.load(std::memory_order_relaxed));
  copy.target_rate = static_cast<Rate>(told.target_rate.load(std::memory_order_relaxed));
  copy.alpha = told.alpha.load(std::memory_order_relaxed);
  copy.window = told.window.load(std::memory_order_relaxed);
}

std::vector<QueuePairCopy> copy_queue_pairs(NicDevice& device) {
  SoftNic& nic = device.soft_nic();
  std::vector<QueuePairCopy> copy;
  for (uint32_t i = 0; i < nic.queue_pairs().size(); ++i) {
    const QueuePair& qp = nic.queue_pairs()[i];
    if (qp.transport == nullptr || qp.kind == QueuePair::Kind::abandoned) continue;
    copy.push_back(copy_queue_pair(nic, i, i < nic.streams() ? device.queue_pair_name(i) : ""));
    if (device.applications() == nullptr) continue;
    copy.back().program = device.applications()->owner(copy.back().qpn);
    if (const LentPairNews* told = device.applications()->news(copy.back().qpn); told != nullptr) take_news(copy.back(), *told);
  }
  return copy;
}

std::vector<ProgramCopy> copy_programs(NicDevice& device) {
  std::vector<ProgramCopy> copy;
  if (device.programs() == nullptr) return copy;
  NicPrograms& programs = *device.programs();
  for (const uint32_t number : programs.numbers()) {
    const std::set<uint32_t>& pairs = programs.queue_pairs(number);
    const ProgramLink& link = *programs.find(number);
    ProgramCopy& program = copy.emplace_back(ProgramCopy{number, static_cast<uint32_t>(pairs.size()), link.busy_drops(),
                                                         link.refused_packets(), programs.past(number)});
    for (const uint32_t qpn : pairs) program.counters.add(device.soft_nic().applications().find(qpn)->counters);
  }
  return copy;
}

Outcome outcome_of(Worker& worker) {
  Outcome out{worker.fidelity(), {}, {}};
  if (worker.failed()) out.failure = worker.failure();
  for (const auto& device : worker.switches()) {
    SoftSwitch& s = device->soft_switch();
    const SwitchDeviceConfig& config = device->config();
    for (uint16_t port = 0; port < s.port_count(); ++port) {
      for (int p = 0; p < kPriorities; ++p) {
        if (s.counters(port, p).queue_packets == 0) continue;
        out.queues.emplace_back(s.statistics().distribution(port, p), config.name, config.ports[port].name, p);
      }
    }
  }
  return out;
}

}  // namespace weir
