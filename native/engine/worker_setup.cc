// The beginning of a worker's thread: its ports, its priority, its devices.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/native_error.h"
#include "engine/worker.h"

namespace weir {
namespace {

// The kernel's struct sched_attr, which glibc 2.36 does not have (sched_setattr(2)).
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};

// An ordinary thread (SCHED_OTHER) with a nice value and a short slice: since Linux 6.12 a thread that wakes up with a
// shorter slice than the running one's takes over at once, where it used to wait for milliseconds. Older kernels ignore it.
bool schedule_soon(int nice) {
  constexpr uint64_t kSlice = 100'000;  // ns, the least that the kernel accepts
  SchedulingAttributes attributes{sizeof(SchedulingAttributes), SCHED_OTHER, 0, nice, 0, kSlice, 0, 0};
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

// The kernel keeps a twentieth of each CPU for ordinary threads, and takes it from such a thread unless its naps leave that much.
bool schedule_real_time() {
  const sched_param parameters{.sched_priority = 1};
  return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) == 0;
}

}  // namespace

void check(const WorkerConfig& config) {
  constexpr const char* kWhose = "worker";
  FieldCheck fields({.name = kWhose});
  describe(fields, config);
  if (config.shared == nullptr) return;
  require(config.share < config.shared->workers(), kWhose, "it is one of those that share the switch");
  require(config.switches.size() == 1 && config.nics.empty() && config.switches[0].ports.size() == config.shared->ports(), kWhose,
          "the one device is the switch that is shared");
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

void Worker::tune() {
  pthread_setname_np(pthread_self(), ("weir-" + config_.name).substr(0, 15).c_str());
  if (config_.cpu >= 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(config_.cpu, &cpus);
    if (pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus) != 0) {
      fidelity_.tuning.push_back("not pinned to CPU " + std::to_string(config_.cpu));
    }
  }
  fidelity_.real_time = config_.real_time && schedule_real_time();
  if (config_.real_time && !fidelity_.real_time) {
    fidelity_.tuning.emplace_back("real-time priority refused (needs CAP_SYS_NICE or RLIMIT_RTPRIO)");
  }
  if (!fidelity_.real_time && !schedule_soon(-20)) {
    fidelity_.tuning.emplace_back("nice -20 refused (needs CAP_SYS_NICE or RLIMIT_NICE)");
    schedule_soon(getpriority(PRIO_PROCESS, 0));
  }
  // Pages are locked when they are touched: a pool with room for super-frames is mostly untouched.
  bool locked = true;
  for (const std::span<uint8_t> bytes : {memory_.bytes(), memory_.long_bytes()}) {
    locked = locked && (bytes.empty() || mlock2(bytes.data(), bytes.size(), MLOCK_ONFAULT) == 0);
  }
  if (!locked) fidelity_.tuning.emplace_back("packet memory not locked (needs CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK)");
  prctl(PR_SET_TIMERSLACK, 1);
}

std::unique_ptr<WirePort> Worker::open_port(const std::string& device, PortConfig config) {
  config.owner = device;
  if (config.receive_by != Backend::tap) link_news_.listen(config);
  std::unique_ptr<PacketPort> port = factory_(config, clock_, lent_packets_);
  if (config.impairment) {
    auto impairment = std::make_unique<ImpairmentPort>(
        std::move(port), config.impairment->parameters,
        ImpairmentOptions{.seed = config_.seed, .component = config.impairment->component, .slot_bytes = config.slot_bytes},
        clock_);
    impairments_.emplace_back(CounterLabels{{"device", device}, {"port", config.name}}, impairment.get());
    port = std::move(impairment);
  }
  return std::make_unique<WirePort>(std::move(port), config.rate, config.delay, std::max(config.receive_slots, config.ring));
}

void Worker::open_ports() {
  refresh_clock();
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
    switches_.push_back(
        std::make_unique<SwitchDevice>(device, index++, std::move(ports), pool_, punted_, config_.shared.get(), config_.share));
    devices_.push_back(switches_.back().get());
  }
  for (const NicDeviceConfig& device : config_.nics) {
    WirePort link = std::move(*opened_[next++]);
    std::unique_ptr<WirePort> stack = device.stack_port ? std::move(opened_[next++]) : nullptr;
    nics_.push_back(
        std::make_unique<NicDevice>(device, index++, std::move(link), pool_, punted_, records_, begin, std::move(stack)));
    devices_.push_back(nics_.back().get());
  }
  for (Device* device : devices_) device->register_counters(counters_);
  for (const auto& [labels, port] : impairments_) counters_.add(port->counters(), labels);
  counters_.freeze();
  const std::lock_guard lock(mutex_);
  ready_.store(true, std::memory_order_release);
  changed_.notify_all();
}

}  // namespace weir
