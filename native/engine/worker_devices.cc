#include "engine/worker_devices.h"

#include <algorithm>
#include <utility>

#include "base/native_error.h"

namespace weir {

void WorkerDevices::add(std::unique_ptr<SwitchDevice> device) {
  all_.push_back(device.get());
  switches_.push_back(std::move(device));
}

void WorkerDevices::add(std::unique_ptr<NicDevice> device) {
  all_.push_back(device.get());
  nics_.push_back(std::move(device));
}

void WorkerDevices::carry_out(PlacedGraph&& graph, Time begin) {
  const Column<uint32_t> nic_of_rank = graph.nic_of_rank;
  graph_ = std::make_unique<GraphTraffic>(std::move(graph), nics_.size());
  graph_->begin(
      graph_nics_,
      [&](const GraphConnection& connection) {
        const GraphTraffic::Sender sender{nic_of_rank[connection.from], connection.stream};
        const std::vector<QueuePair>& pairs = nics_[sender.nic]->soft_nic().queue_pairs();
        require(sender.index < pairs.size() && pairs[sender.index].parameters.on_demand, "graph.connections",
                "they are queue pairs on demand");
        return sender;
      },
      begin);
  for (uint32_t i = 0; i < nics_.size(); ++i) nics_[i]->carry_out(*graph_, i);
}

uint64_t WorkerDevices::frames_seen() const {
  uint64_t frames = 0;
  for (const Device* device : all_) frames += device->frames_seen();
  return frames;
}

uint64_t WorkerDevices::super_frames_seen() const {
  uint64_t frames = 0;
  for (Device* device : all_) {
    for (const WirePort& port : device->ports()) frames += port.super_frames();
  }
  return frames;
}

void WorkerDevices::settle_counters() {
  for (Device* device : all_) device->settle_counters();
}

bool WorkerDevices::work_waits() const {
  return std::ranges::any_of(nics_, [](const auto& nic) {
    return nic->applications() != nullptr && (!nic->verbs()->commands.empty() || nic->programs()->waiting());
  });
}

bool WorkerDevices::have_programs() const {
  return std::ranges::any_of(nics_, [](const auto& nic) { return nic->programs() != nullptr && !nic->programs()->empty(); });
}

bool WorkerDevices::have_completions() const {
  return std::ranges::any_of(nics_,
                             [](const auto& nic) { return nic->verbs() != nullptr && !nic->verbs()->completions.empty(); });
}

void WorkerDevices::reconfigure(const WorkerConfig& config) {
  for (size_t i = 0; i < switches_.size(); ++i) switches_[i]->reconfigure(config.switches[i]);
  for (size_t i = 0; i < nics_.size(); ++i) nics_[i]->reconfigure(config.nics[i]);
}

}  // namespace weir
