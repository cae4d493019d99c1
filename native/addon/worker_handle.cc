#include "addon/worker_handle.h"

#include <algorithm>

#include "addon/rows.h"
#include "addon/shared_switch_handle.h"
#include "engine/open_port.h"

namespace weir {
namespace {

constexpr size_t kPunted = 64;  // most frames of one call

// The device must live, or this throws; `index` may be anything.
template <class Devices>
auto& device_at(Napi::Env env, const Worker& worker, const Devices& devices, double index) {
  if (!worker.ready() || !fits<uint32_t>(index) || static_cast<uint32_t>(index) >= devices.size()) {
    throw Napi::RangeError::New(env, "no such device, or not running yet");
  }
  return *devices[static_cast<uint32_t>(index)];
}

// A switch's knowledge of its ports' interfaces follows from these.
WorkerConfig settled(WorkerConfig config) {
  for (SwitchDeviceConfig& device : config.switches) {
    for (size_t i = 0; i < std::min(device.ports.size(), device.parameters.ports.size()); ++i) {
      const PortConfig& port = device.ports[i];
      device.parameters.ports[i].offloads = passes_offloads(port);
    }
  }
  return config;
}

}  // namespace

Napi::Function WorkerHandle::define(Napi::Env env) {
  return DefineClass(
      env, "Worker",
      {method<&Worker::open, "open()">(),
       method<&Worker::begin, "begin(at)">(),
       method<&Worker::stop_traffic, "stopTraffic()">(),
       method<&Worker::stop, "stop()">(),
       method<&WorkerHandle::release, "close()">(),
       method<&WorkerHandle::manifest, "manifest()">(),
       method<&WorkerHandle::read_counters, "readCounters(target)">(),
       method<&WorkerHandle::drain_records, "drainRecords(target)">(),
       method<&WorkerHandle::drain_punted, "drainPunted()">(),
       method<&Worker::inject, "inject(device, port, bytes)">(),
       method<&WorkerHandle::reconfigure, "reconfigure(config, others)">(),
       method<&WorkerHandle::look_at_switch<copy_forwarding>, "forwardingTable(index)">(),
       method<&WorkerHandle::on_switch<count_forwarding>, "forwardingEntries(index)">(),
       method<&WorkerHandle::look_at_switch<copy_neighbours>, "neighbors(index)">(),
       method<&WorkerHandle::look_at_switch<copy_switch>, "switchState(index)">(),
       method<&WorkerHandle::look_at_nic<copy_queue_pairs>, "queuePairs(index)">(),
       method<&WorkerHandle::look_at_nic<copy_programs>, "programs(index)">(),
       method<&WorkerHandle::resolve, "resolve(nic, own, address)">(),
       method<&WorkerHandle::attach, "attach(capture, places)">(),
       method<&WorkerHandle::detach, "detach(capture)">(),
       method<&WorkerHandle::add_fault, "addFault(place, fault)">(),
       method<&WorkerHandle::end_fault, "endFault(number)">(),
       method<&WorkerHandle::faults, "faults()">(),
       method<&WorkerHandle::histograms, "histograms()">(),
       method<&WorkerHandle::register_memory, "registerMemory(nic, memory, access, domain)">(),
       method<&WorkerHandle::on_applications<&NicApplications::deregister_memory, uint32_t>, "deregisterMemory(nic, key)">(),
       method<&WorkerHandle::on_applications<&NicApplications::open_program>, "openProgram(nic)">(),
       method<&WorkerHandle::on_applications<&NicApplications::close_program, uint32_t>, "closeProgram(nic, number)">(),
       method<&WorkerHandle::lend_path, "lendPath(nic, number)">(),
       method<&WorkerHandle::on_applications<&NicApplications::tell_programs, bool, uint32_t>,
              "tellPrograms(nic, gids, pathMtu)">(),
       method<&WorkerHandle::on_applications<&NicApplications::create_queue_pair, VerbsQueuePairParameters>,
              "createQueuePair(nic, options)">(),
       method<&WorkerHandle::on_applications<&NicApplications::destroy_queue_pair, uint32_t>, "destroyQueuePair(nic, qpn)">(),
       method<&WorkerHandle::modify_queue_pair, "modifyQueuePair(nic, qpn, attributes)">(),
       method<&WorkerHandle::on_applications<&NicApplications::create_address_handle, RocePath>,
              "createAddressHandle(nic, path)">(),
       method<&WorkerHandle::on_applications<&NicApplications::destroy_address_handle, uint32_t>,
              "destroyAddressHandle(nic, handle)">(),
       method<&WorkerHandle::on_applications<&NicApplications::attach_group, uint32_t, IpAddress>,
              "attachGroup(nic, qpn, group)">(),
       method<&WorkerHandle::on_applications<&NicApplications::detach_group, uint32_t, IpAddress>,
              "detachGroup(nic, qpn, group)">(),
       method<&WorkerHandle::post, "post(nic, words, count)">(),
       method<&WorkerHandle::drain_completions, "drainCompletions(nic, words)">(),
       method<&WorkerHandle::progress, "progress(nic, words)">(),
       method<&Worker::rest, "rest()">(),
       method<&WorkerHandle::worst_gap, "worstGap()">(),
       method<&WorkerHandle::recent_gap, "recentGap()">(),
       method<&WorkerHandle::operations_ended, "operationsEnded()">(),
       method<&WorkerHandle::operations, "operations()">(),
       method<&WorkerHandle::outcome, "outcome()">()});
}

WorkerHandle::WorkerHandle(const Napi::CallbackInfo& info) : Wrap(info) {
  const Napi::Env env = info.Env();
  env_ = env;
  translated(env, [&] {
    WorkerConfig config;
    from_js(info[0], config, {.name = "worker"});
    worker_ = std::make_unique<Worker>(settled(std::move(config)), open_packet_port);
    faults_ = std::make_unique<PortFaults>(*worker_);
  });
  if (info[1].IsFunction()) {
    doorbell_ = Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(), "weir doorbell", 1, 1);
    settle_ = Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(), "weir neighbours", 0, 1);
    rings_ = true;
    worker_->doorbell().set([this] { doorbell_.NonBlockingCall(); });
  }
  napi_add_env_cleanup_hook(env, on_exit, this);
}

WorkerHandle::~WorkerHandle() { release(); }

void WorkerHandle::release() {
  if (worker_ != nullptr) napi_remove_env_cleanup_hook(env_, on_exit, this);
  faults_.reset();
  worker_.reset();
  if (rings_) {
    doorbell_.Release();
    settle_.Release();
  }
  rings_ = false;
}

Worker& WorkerHandle::native() const {
  if (worker_ == nullptr) throw Napi::Error::New(env_, "the worker is closed");
  return *worker_;
}

SwitchDevice& WorkerHandle::switch_at(double index) const { return device_at(env_, native(), native().switches(), index); }

NicDevice& WorkerHandle::nic_at(double index) const { return device_at(env_, native(), native().nics(), index); }

std::optional<std::vector<CounterEntry>> WorkerHandle::manifest() {
  if (!native().ready()) return std::nullopt;
  std::vector<CounterEntry> out;
  for (const CounterGroup& group : native().counters().manifest()) {
    for (const CounterDescription& counter : group.descriptions) out.push_back({counter, group.labels});
  }
  return out;
}

Time WorkerHandle::read_counters(std::span<double> target) {
  if (!native().ready()) return 0;
  const CounterBlock& counters = native().counters();
  const auto put = [&](size_t i, uint64_t word) { target[i] = static_cast<double>(word); };
  return counters.read(monotonic_now(), put, std::min(target.size(), counters.size()));
}

uint32_t WorkerHandle::drain_records(std::span<double> target) {
  RowWriter rows(target);
  Record record;
  while (rows.has_room(record) && native().records().pop(record)) rows.write(record);
  return rows.count();
}

std::vector<PuntedCopy> WorkerHandle::drain_punted() {
  native().doorbell().rearm();
  std::vector<PuntedCopy> out;
  const auto frame = std::make_unique<PuntedFrame>();
  while (out.size() < kPunted && native().punted().pop(*frame)) {
    out.push_back({frame->device, frame->port, frame->at, Napi::Buffer<uint8_t>::Copy(env_, frame->bytes, frame->length)});
  }
  return out;
}

void WorkerHandle::reconfigure(const WorkerConfig& config, std::optional<std::vector<WorkerHandle*>> others) {
  std::vector<Worker*> workers;
  if (others) std::ranges::transform(*others, std::back_inserter(workers), [](auto* other) { return &other->native(); });
  native().reconfigure(settled(config), workers);
}

Napi::Value WorkerHandle::resolve(double nic, uint32_t own, const IpAddress& address) {
  NicNeighbours* const neighbours = nic_at(nic).neighbours();
  if (neighbours == nullptr || !rings_) throw Napi::RangeError::New(env_, "the NIC looks for nobody");
  const auto promise = Napi::Promise::Deferred::New(env_);
  const auto found = [settle = settle_, promise](NicNeighbours::Found mac) {
    settle.NonBlockingCall([promise, mac](Napi::Env env, Napi::Function) { promise.Resolve(to_js(env, mac)); });
  };
  native().between_turns([&] { neighbours->resolve(monotonic_now(), own, address, found); });
  return promise.Promise();
}

void WorkerHandle::attach(CaptureHandle& capture, const std::vector<Worker::PortPlace>& places) {
  Worker& worker = native();
  worker.attach(capture.give(), places);
}

void WorkerHandle::detach(CaptureHandle& capture) { native().detach(*capture.capture()); }

uint32_t WorkerHandle::add_fault(const Worker::PortPlace& place, const FaultParameters& fault) {
  native();
  return faults_->add(place, fault);
}

bool WorkerHandle::end_fault(uint32_t number) {
  native();
  return faults_->end(number);
}

std::vector<FaultState> WorkerHandle::faults() {
  native();
  return faults_->states();
}

std::vector<NamedHistogram> WorkerHandle::histograms() {
  return native().ready() ? copy_histograms(native()) : std::vector<NamedHistogram>{};
}

OperationTimes WorkerHandle::operations() {
  OperationTimes times;
  native().look([&] {
    if (const GraphTraffic* graph = native().graph(); graph != nullptr) times = times_of(graph->state());
  });
  return times;
}

Outcome WorkerHandle::outcome() {
  native().stop();
  return outcome_of(native());
}

}  // namespace weir
