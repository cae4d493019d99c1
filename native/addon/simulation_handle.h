// The JavaScript handle of a Simulation: see src/native/simulation_types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <memory>
#include <optional>
#include <vector>

#include "addon/inspect.h"
#include "addon/operation_times.h"
#include "addon/wrap.h"
#include "hosts/program_hosts.h"
#include "simulation/footprint.h"
#include "simulation/simulation.h"

namespace weir {

struct SimulationProgress {
  Time now = 0;
  uint64_t events = 0, hops = 0, flows_started = 0, flows_ended = 0;
  uint64_t flows_failed = 0, operations_ended = 0;
  bool moves = true;
  uint32_t packets = 0;
  uint32_t threads = 1, partitions = 1;
  uint64_t rounds = 0, together = 0, crossed = 0;
  Time round = 0, taken = 0, waited = 0;
};
void describe(auto& v, Of<SimulationProgress> auto& p) {
  v.type("SimulationProgress", "How far a simulation is.");
  v("now", p.now, field::any("Virtual time.", "ns"));
  v("events", p.events, field::any("So far."));
  v("hops", p.hops, field::any("Frames put on a link, PFC frames, CNPs and acknowledgements included."));
  v("flows_started", p.flows_started, field::any("That have begun."));
  v("flows_ended", p.flows_ended, field::any("That have delivered everything."));
  v("flows_failed", p.flows_failed, field::any("Whose connections have."));
  v("operations_ended", p.operations_ended, field::any("Of a graph."));
  v("moves", p.moves, field::any("Whether anything of a graph will still happen."));
  v("packets", p.packets, field::any("Packet descriptors in use."));
  v("threads", p.threads, field::any("That carry it out."));
  v("partitions", p.partitions, field::any("Of devices, which threads take turns with."));
  v("round", p.round, field::any("How long partitions live by themselves, in virtual time.", "ns"));
  v("rounds", p.rounds, field::any("Of these, those in which anything happened."));
  v("together", p.together, field::any("Of those, gone through by all threads at once."));
  v("crossed", p.crossed, field::any("Hops that led to another partition."));
  v("taken", p.taken, field::any("Wall time of those, of all threads.", "ns"));
  v("waited", p.waited, field::any("How much of it they waited for each other.", "ns"));
}

struct SimulationManifest {
  using Columns = std::vector<CounterEntry>;
  Columns switch_port, switch_priority, nic, nic_priority, transport, queue_pair, link;
};
void describe(auto& v, Of<SimulationManifest> auto& m) {
  v.type("SimulationManifest", "Names of the columns of the counter tables, in order.");
  v("switch_port", m.switch_port, field::any(""));
  v("switch_priority", m.switch_priority, field::any(""));
  v("nic", m.nic, field::any(""));
  v("nic_priority", m.nic_priority, field::any(""));
  v("transport", m.transport, field::any(""));
  v("queue_pair", m.queue_pair, field::any(""));
  v("link", m.link, field::any(""));
}

// Rows of counters, one after another.
struct SimulationCounters {
  using Table = Column<double>;
  Table switch_ports, switch_priorities, nics, nic_priorities, transports, senders, receivers, links;
};
void describe(auto& v, Of<SimulationCounters> auto& c) {
  v.type("SimulationCounters", "Row-major tables with the columns of the manifest.");
  v("switch_ports", c.switch_ports, field::any("In the order of switches and ports."));
  v("switch_priorities", c.switch_priorities, field::any("8 of each."));
  v("nics", c.nics, field::any("In their order."));
  v("nic_priorities", c.nic_priorities, field::any("8 of each."));
  v("transports", c.transports, field::any("Of NICs."));
  v("senders", c.senders, field::any("Flows as their sender's queue pair sees them."));
  v("receivers", c.receivers, field::any("Flows as their receiver's does."));
  v("links", c.links, field::any("Two rows each: sent by `from`, sent by `to`."));
}

SimulationManifest simulation_manifest();
double simulation_footprint(const NetworkSize& size);

class SimulationHandle : public Wrap<SimulationHandle> {
 public:
  static constexpr const char* kName = "Simulation";
  static constexpr napi_type_tag kTag{0x3d94b1e87c2a4f06, 0x8a5be2f7160dc943};

  static Napi::Function define(Napi::Env env);
  explicit SimulationHandle(const Napi::CallbackInfo& info);
  Simulation& native() const;

 private:
  SimulationProgress progress();
  SimulationCounters counters();
  uint32_t drain_records(std::span<double> target);
  uint32_t drain_finished(std::span<double> target);
  Column<uint8_t> drain_trace();
  Column<uint32_t> under_way();
  std::vector<NumberedQueue> queue_distributions();
  QueuePairCopy sender_state(uint32_t flow);
  void reconfigure_switch(uint32_t index, const SimulatedSwitch& device);
  void reroute(uint32_t index, const SimulatedRoutes& routes);
  void set_link(uint32_t link, bool up);
  std::vector<FaultState> faults();
  OperationTimes operations();
  std::optional<FastForwardReport> fast_forward();
  std::optional<LearnedReport> learned();
  std::vector<ProgramFate> programs();
  std::vector<HostNews> take_news();
  void tell_program(uint32_t nic, uint32_t session, std::span<const uint8_t> bytes);
  void end_session(uint32_t nic, uint32_t session);
  bool program_listens(uint32_t program);
  void send_frame(uint32_t nic, std::span<const uint8_t> frame);
  void close();

  std::unique_ptr<ProgramHosts> hosts_;  // null: there are no programs
  std::unique_ptr<Simulation> simulation_;
};

}  // namespace weir
