// The devices of a worker, switches first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/config.h"
#include "engine/device.h"
#include "engine/nic_device.h"
#include "engine/switch_device.h"

namespace weir {

class WorkerDevices {
 public:
  void add(std::unique_ptr<SwitchDevice> device);
  void add(std::unique_ptr<NicDevice> device);
  std::vector<std::unique_ptr<SwitchDevice>>& switches() { return switches_; }
  std::vector<std::unique_ptr<NicDevice>>& nics() { return nics_; }
  std::span<Device* const> all() const { return all_; }
  // The NICs carry a message graph out, which begins at `begin`. Once, when all are there.
  void carry_out(PlacedGraph&& graph, Time begin);
  // Null: there is none.
  const GraphTraffic* graph() const { return graph_.get(); }

  uint64_t frames_seen() const;
  uint64_t super_frames_seen() const;
  void settle_counters();
  // Whether applications or programs have given a NIC something that it has not taken yet, and whether there is a program.
  bool work_waits() const;
  bool have_programs() const;
  // Whether completions wait for applications.
  bool have_completions() const;
  // The devices stay, with changed parameters.
  void reconfigure(const WorkerConfig& config);

 private:
  // NICs as the graph sees them: each asks for its next wake by itself.
  struct Nics final : GraphNics {
    explicit Nics(WorkerDevices& devices) : devices_(devices) {}
    void post(Time now, uint32_t nic, uint32_t queue_pair, uint32_t word, uint64_t bytes) override {
      devices_.nics_[nic]->soft_nic().post(now, queue_pair, word, bytes);
    }
    void wake_host(uint32_t, Time) override {}
    WorkerDevices& devices_;
  };

  std::vector<std::unique_ptr<SwitchDevice>> switches_;
  std::vector<std::unique_ptr<NicDevice>> nics_;
  std::vector<Device*> all_;
  Nics graph_nics_{*this};
  std::unique_ptr<GraphTraffic> graph_;
};

}  // namespace weir
