// The beginning of a worker's thread: its ports, its devices.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/native_error.h"
#include "engine/worker.h"

namespace weir {

void check(const WorkerConfig& config) {
  constexpr const char* kWhose = "worker";
  FieldCheck fields({.name = kWhose});
  describe(fields, config);
  if (config.shared == nullptr) return;
  require(config.share < config.shared->workers(), kWhose, "it is one of those that share the switch");
  require(config.switches.size() == 1 && config.nics.empty() && config.switches[0].ports.size() == config.shared->ports(), kWhose,
          "the one device is the switch that is shared");
}

WorkerConfig laid_out(WorkerConfig config) {
  if (!config.network) return config;
  const WorkerNetwork& network = *config.network;
  check(network, "worker.network");
  const FlowLayout layout(network, network.nics.size());
  for (NicDeviceConfig& nic : config.nics) {
    const uint64_t place = nic.parameters.mac - network.first_mac;
    require(place < network.nics.size() && nic.parameters.first_qpn == kFirstStreamQpn, "worker.network",
            "the worker's NICs are of it");
    const auto number = static_cast<uint32_t>(place);
    nic.queue_pairs = layout.queue_pairs(number, network.nics, network.first_mac);
    nic.queue_pair_settings.clear();
    for (const uint32_t flow : layout.flows_of(number)) nic.queue_pair_settings.push_back({network.names[flow]});
  }
  if (!config.graph) return config;
  for (GraphConnection& connection : config.graph->connections) {
    require(connection.stream < network.flows.size(), "worker.graph.connections", "they are flows that exist");
    connection.stream = layout.sender(connection.stream).index;
  }
  return config;
}

static bool any_port(const WorkerConfig& config, bool (*of_port)(const PortConfig&)) {
  const auto of_switch = [&](const SwitchDeviceConfig& device) { return std::ranges::any_of(device.ports, of_port); };
  const auto of_nic = [&](const NicDeviceConfig& device) {
    return of_port(device.port) || (device.stack_port && of_port(*device.stack_port));
  };
  return std::ranges::any_of(config.switches, of_switch) || std::ranges::any_of(config.nics, of_nic);
}

bool WorkerConfig::lends_packets() const { return any_port(*this, weir::lends_packets); }
bool WorkerConfig::sends_live() const { return any_port(*this, weir::sends_live); }

PacketShape WorkerConfig::shape() const {
  PacketShape shape{.count = packets, .stride = (packet_bytes + 63) / 64 * 64};
  if (lends_packets()) shape = lent_shape(packets, packet_bytes);
  shape.long_count = super_frames;
  return shape;
}

std::unique_ptr<PacketMemory> WorkerConfig::memory() const {
  return std::make_unique<PacketMemory>(shape(), sends_live() ? map_packet_bytes(shape()) : nullptr);
}

void Worker::open_ports() {
  clock_.refresh();
  const auto open_port = [&](const std::string& device, PortConfig config) {
    config.owner = device;
    if (config.receive_by != Backend::tap) link_news_.listen(config);
    std::unique_ptr<PacketPort> port = factory_(config, clock_.of_ports(), lent_packets_);
    if (config.impairment) {
      auto impairment = std::make_unique<ImpairmentPort>(
          std::move(port), config.impairment->parameters,
          ImpairmentOptions{.seed = config_.seed, .component = config.impairment->component, .slot_bytes = config.slot_bytes},
          clock_.of_ports());
      impairments_.emplace_back(CounterLabels{{"device", device}, {"port", config.name}}, impairment.get());
      port = std::move(impairment);
    }
    return std::make_unique<WirePort>(std::move(port), config.rate, config.delay, std::max(config.receive_slots, config.ring));
  };
  for (const SwitchDeviceConfig& device : config_.switches) {
    const auto open = [&](const PortConfig& port, size_t of) {
      const bool ours = !config_.shared || config_.shared->owns(config_.share, of);
      opened_.push_back(ours ? open_port(device.name, port)
                             : std::make_unique<WirePort>(std::make_unique<PacketPort>(), 0, 0, 1));
    };
    for (size_t i = 0; i < device.ports.size(); ++i) open(device.ports[i], i);
    // A twin goes with its port.
    size_t twin = 0;
    for (const auto& interface : device.parameters.router.interfaces) {
      if (interface.kernel) open(device.twins[twin++], interface.port);
    }
  }
  for (const NicDeviceConfig& device : config_.nics) {
    opened_.push_back(open_port(device.name, device.port));
    if (device.stack_port) opened_.push_back(open_port(device.name, *device.stack_port));
  }
}

void Worker::build_devices(Time begin) {
  size_t next = 0;
  uint16_t index = 0;
  for (const SwitchDeviceConfig& device : config_.switches) {
    std::vector<WirePort> ports;
    for (size_t i = 0; i < device.ports.size() + device.twins.size(); ++i) ports.push_back(std::move(*opened_[next++]));
    devices_.add(
        std::make_unique<SwitchDevice>(device, index++, std::move(ports), pool_, punted_, config_.shared.get(), config_.share));
  }
  for (const NicDeviceConfig& device : config_.nics) {
    WirePort link = std::move(*opened_[next++]);
    std::unique_ptr<WirePort> stack = device.stack_port ? std::move(opened_[next++]) : nullptr;
    devices_.add(
        std::make_unique<NicDevice>(device, index++, std::move(link), pool_, punted_, records_, begin, std::move(stack)));
  }
  if (config_.graph) devices_.carry_out(std::move(*config_.graph), begin);
  for (Device* device : devices_.all()) device->register_counters(counters_);
  for (const auto& [labels, port] : impairments_) counters_.add(port->counters(), labels);
  counters_.freeze();
  const std::lock_guard lock(mutex_);
  ready_.store(true, std::memory_order_release);
  changed_.notify_all();
}

}  // namespace weir
