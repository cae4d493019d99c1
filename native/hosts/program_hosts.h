// Hosts of a simulation on which programs run, unmodified, in virtual time: started in their order, each with a NIC of the
// fabric, whose queue pairs run in the programs themselves (engine/program_transports.h). To the schedule they are one machine,
// whose NICs see what happens in the order of time. Time stands still while a program runs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hosts/nic_broker.h"
#include "hosts/one_processor.h"
#include "hosts/program_plan.h"
#include "hosts/program_process.h"
#include "hosts/turns.h"
#include "simulation/fabric.h"

namespace weir {

class ProgramHosts final : public HostWork {
 public:
  // Throws NativeError for what the system refuses, and INVALID_CONFIG.
  ProgramHosts(const SimulationConfig& config, ProgramPlan plan);
  ~ProgramHosts();
  ProgramHosts(const ProgramHosts&) = delete;
  ProgramHosts& operator=(const ProgramHosts&) = delete;

  // Must be called once, before time passes.
  void begin(Fabric& fabric);
  void wake(uint32_t nic, Time now) override;
  void heard(uint32_t nic, Time now) override;
  void punted(uint32_t nic, Time now, std::span<const uint8_t> frame) override;

  // Connection management hears of all of this before time passes: run() of the fabric stops for it. What it does is seen at the
  // time of that stop.
  std::vector<HostNews> take_news() { return std::exchange(news_, {}); }
  // Bytes for a program of librdmacm, and the end of its session. Numbers that are nobody's are ignored.
  void tell(uint32_t nic, uint32_t session, std::span<const uint8_t> bytes);
  void end_session(uint32_t nic, uint32_t session);
  // Something listens at the port of the program's NIC that others wait for. False if the program has not started: it is
  // another's.
  bool note_listener(uint32_t program);
  // The NIC sends a frame, without FCS.
  void send(uint32_t nic, std::span<const uint8_t> frame);

  // Ends all that run, and lets go of their NICs: must be called before the fabric is gone. Idempotent.
  void end();
  const std::vector<ProgramFate>& states() const { return states_; }

 private:
  enum class Readiness : uint8_t { not_yet, ready, never };

  std::optional<NicBroker::Way> find_way(uint32_t nic, const ProgramRequest& request, uint32_t number) const;
  bool serve();
  Readiness readiness(uint32_t program) const;
  bool start_ready(Time now);
  void start(uint32_t program, Time now);
  bool publish();
  void note_end(uint32_t program, int status);
  void ask_for(Time at);
  NicBroker* broker(uint32_t nic) const { return nic < brokers_.size() ? brokers_[nic].get() : nullptr; }

  struct Frame {
    uint32_t nic;
    std::vector<uint8_t> bytes;
  };

  std::vector<SimulatedNic> nics_;
  ProgramPlan plan_;
  std::vector<ProgramFate> states_;
  std::vector<bool> has_listener_;  // of connection management, by program
  Turns turns_;
  ProgramNamespaces namespaces_;
  Fabric* fabric_ = nullptr;
  std::vector<std::unique_ptr<NicBroker>> brokers_;  // by NIC; null: it has no programs
  uint32_t first_ = 0;                               // NIC
  Time asked_ = kNever;                              // the next wake
  Time woken_ = 0;                                   // the last one
  Time looked_ = 0;                                  // real time of the last pause
  bool any_ended_ = false;                           // of the programs, since the last wake
  bool any_told_ = false;
  std::vector<HostNews> news_;
  std::vector<Frame> unsent_;  // what connection management sends at the next wake
  std::optional<OneProcessor> processor_;
};

}  // namespace weir
