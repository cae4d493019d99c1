#include "addon/simulation_handle.h"

#include <algorithm>

#include "addon/rows.h"
#include "simulation/counters.h"

namespace weir {
namespace {

template <class Counters>
std::vector<CounterEntry> columns() {
  std::vector<CounterEntry> out;
  for (const CounterDescription& counter : Counters::kDescriptions) out.push_back({counter, {}});
  return out;
}

// Moves what fits from the front of `list` to `target`; returns how many.
template <class T>
uint32_t drain(std::vector<T>& list, std::span<double> target) {
  RowWriter rows(target);
  while (rows.count() < list.size() && rows.has_room(list[rows.count()])) rows.write(list[rows.count()]);
  list.erase(list.begin(), list.begin() + rows.count());
  return rows.count();
}

}  // namespace

Napi::Function SimulationHandle::define(Napi::Env env) {
  return DefineClass(env, "Simulation",
                     {method<&Simulation::run, "run(until, events)">(),
                      method<&SimulationHandle::progress, "progress()">(),
                      method<&SimulationHandle::counters, "counters()">(),
                      method<&SimulationHandle::drain_records, "drainRecords(target)">(),
                      method<&SimulationHandle::drain_finished, "drainFinished(target)">(),
                      method<&SimulationHandle::drain_trace, "drainTrace()">(),
                      method<&SimulationHandle::under_way, "underWay()">(),
                      method<&SimulationHandle::queue_distributions, "queueDistributions()">(),
                      method<&SimulationHandle::sender_state, "senderState(flow)">(),
                      method<&SimulationHandle::reconfigure_switch, "reconfigureSwitch(index, config)">(),
                      method<&SimulationHandle::reroute, "reroute(index, routes)">(),
                      method<&SimulationHandle::set_link, "setLink(link, up)">(),
                      method<&SimulationHandle::faults, "faults()">(),
                      method<&SimulationHandle::operations, "operations()">(),
                      method<&SimulationHandle::fast_forward, "fastForward()">(),
                      method<&SimulationHandle::learned, "learned()">(),
                      method<&SimulationHandle::programs, "programs()">(),
                      method<&SimulationHandle::take_news, "takeNews()">(),
                      method<&SimulationHandle::tell_program, "tellProgram(nic, session, bytes)">(),
                      method<&SimulationHandle::end_session, "endSession(nic, session)">(),
                      method<&SimulationHandle::program_listens, "programListens(program)">(),
                      method<&SimulationHandle::send_frame, "sendFrame(nic, bytes)">(),
                      method<&SimulationHandle::close, "close()">()});
}

SimulationHandle::SimulationHandle(const Napi::CallbackInfo& info) : Wrap(info) {
  translated(info.Env(), [&] {
    SimulationConfig config;
    from_js(info[0], config, {.name = "simulation"});
    check(config);
    if (info.Length() > 1 && info[1].IsObject()) {
      ProgramPlan plan;
      from_js(info[1], plan, {.name = "programs"});
      hosts_ = std::make_unique<ProgramHosts>(config, std::move(plan));
    }
    simulation_ = std::make_unique<Simulation>(std::move(config), Sharing{}, hosts_.get());
    if (hosts_ != nullptr) hosts_->begin(simulation_->fabric());
  });
}

Simulation& SimulationHandle::native() const {
  if (simulation_ == nullptr) throw Napi::Error::New(Env(), "the simulation is closed");
  return *simulation_;
}

SimulationProgress SimulationHandle::progress() {
  const Simulation& s = native();
  const Fabric& fabric = native().fabric();
  const Fabric::Work work = fabric.work();
  return {.now = s.now(),
          .events = fabric.events(),
          .hops = fabric.hops(),
          .flows_started = s.flows_started(),
          .flows_ended = s.flows_ended(),
          .flows_failed = s.flows_failed(),
          .operations_ended = s.graph() == nullptr ? 0 : s.graph()->ended(),
          .moves = s.graph() == nullptr || s.graph()->moves(),
          .packets = fabric.packets(),
          .threads = work.threads,
          .partitions = work.partitions,
          .rounds = work.rounds,
          .together = work.together,
          .crossed = work.crossed,
          .round = work.round,
          .taken = work.times.taken,
          .waited = work.times.waited};
}

SimulationCounters SimulationHandle::counters() {
  const CounterTables all = native().all_counters();
  const auto rows = [](const CounterTable& table) { return SimulationCounters::Table(table.words.begin(), table.words.end()); };
  return {.switch_ports = rows(all.switch_ports),
          .switch_priorities = rows(all.switch_priorities),
          .nics = rows(all.nics),
          .nic_priorities = rows(all.nic_priorities),
          .transports = rows(all.transports),
          .senders = rows(all.senders),
          .receivers = rows(all.receivers),
          .links = rows(all.links)};
}

std::optional<LearnedReport> SimulationHandle::learned() {
  const LearnedPhases* learned = native().learned();
  return learned == nullptr ? std::nullopt : std::optional(learned->report());
}

std::optional<FastForwardReport> SimulationHandle::fast_forward() {
  const FastForward* forward = native().forward();
  return forward == nullptr ? std::nullopt : std::optional(forward->report());
}

uint32_t SimulationHandle::drain_records(std::span<double> target) { return drain(native().records(), target); }

uint32_t SimulationHandle::drain_finished(std::span<double> target) { return drain(native().finished(), target); }

OperationTimes SimulationHandle::operations() {
  const GraphTraffic* graph = native().graph();
  return graph == nullptr ? OperationTimes{} : times_of(graph->state());
}

Column<uint8_t> SimulationHandle::drain_trace() {
  const std::vector<uint8_t> trace = native().fabric().take_trace();
  return {trace.begin(), trace.end()};
}

Column<uint32_t> SimulationHandle::under_way() {
  const std::vector<uint32_t> packets = native().under_way();
  return {packets.begin(), packets.end()};
}

std::vector<NumberedQueue> SimulationHandle::queue_distributions() {
  std::vector<NumberedQueue> out;
  for (const auto& [queue, lengths] : native().queue_lengths()) {
    out.emplace_back(lengths, queue.device, queue.port, queue.priority);
  }
  return out;
}

QueuePairCopy SimulationHandle::sender_state(uint32_t flow) {
  Simulation& s = native();
  if (flow >= s.config().flows.size()) throw Napi::RangeError::New(Env(), "there is no such flow");
  const Simulation::Place place = s.sender(flow);
  return copy_queue_pair(s.fabric().nic_at(place.nic), place.index, "");
}

void SimulationHandle::reconfigure_switch(uint32_t index, const SimulatedSwitch& device) {
  Fabric& fabric = native().fabric();
  if (index >= fabric.switch_count()) throw Napi::RangeError::New(Env(), "there is no such switch");
  fabric.reconfigure_switch(index, device.parameters);
}

void SimulationHandle::reroute(uint32_t index, const SimulatedRoutes& routes) {
  Fabric& fabric = native().fabric();
  if (index >= fabric.switch_count()) throw Napi::RangeError::New(Env(), "there is no such switch");
  fabric.reroute(index, routes);
}

void SimulationHandle::set_link(uint32_t link, bool up) {
  Fabric& fabric = native().fabric();
  if (link >= fabric.link_count()) throw Napi::RangeError::New(Env(), "there is no such link");
  fabric.set_link(link, up);
}

std::vector<FaultState> SimulationHandle::faults() { return native().fabric().faults(); }

std::vector<ProgramFate> SimulationHandle::programs() {
  return hosts_ == nullptr ? std::vector<ProgramFate>{} : hosts_->states();
}

std::vector<HostNews> SimulationHandle::take_news() { return hosts_ == nullptr ? std::vector<HostNews>{} : hosts_->take_news(); }

void SimulationHandle::tell_program(uint32_t nic, uint32_t session, std::span<const uint8_t> bytes) {
  if (hosts_ != nullptr) hosts_->tell(nic, session, bytes);
}

void SimulationHandle::end_session(uint32_t nic, uint32_t session) {
  if (hosts_ != nullptr) hosts_->end_session(nic, session);
}

bool SimulationHandle::program_listens(uint32_t program) { return hosts_ != nullptr && hosts_->note_listener(program); }

void SimulationHandle::send_frame(uint32_t nic, std::span<const uint8_t> frame) {
  if (hosts_ != nullptr) hosts_->send(nic, frame);
}

void SimulationHandle::close() {
  // Programs end before their NICs.
  if (hosts_ != nullptr) hosts_->end();
  simulation_.reset();
  hosts_.reset();
}

double simulation_footprint(const NetworkSize& size) { return footprint(size); }

SimulationManifest simulation_manifest() {
  return {.switch_port = columns<SwitchPortCounters>(),
          .switch_priority = columns<SwitchPriorityCounters>(),
          .nic = columns<NicCounters>(),
          .nic_priority = columns<NicPriorityCounters>(),
          .transport = columns<TransportCounters>(),
          .queue_pair = columns<QpCounters>(),
          .link = columns<LinkCounters>()};
}

}  // namespace weir
