// The JavaScript handle of a Worker: see src/native/types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "addon/capture_handle.h"
#include "addon/histograms.h"
#include "addon/inspect.h"
#include "addon/memory.h"
#include "addon/operation_times.h"
#include "addon/wrap.h"
#include "engine/port_faults.h"
#include "engine/worker.h"

namespace weir {

struct PuntedCopy {
  uint16_t device = 0;
  uint16_t port = 0;
  Time at = 0;
  Napi::Value bytes;
};
void describe(auto& v, Of<PuntedCopy> auto& frame) {
  v.type("PuntedFrame", "A frame that is for TypeScript.");
  v("device", frame.device, field::any("Where it came in."));
  v("port", frame.port, field::any("Where it came in."));
  v("at", frame.at, field::any("When.", "ns"));
  v("bytes", frame.bytes, field::any("Without FCS."));
}

// Change of state of an application's queue pair, with its attributes.
struct QueuePairChange {
  QueuePairState state{};
  QueueAttributes attributes;
  RocePath path;
  uint8_t priority = 0;
  Rate rate_cap = 0;
};
void describe(auto& v, Of<QueuePairChange> auto& change) {
  v.type("NativeQueueAttributes", "What an application's queue pair is given with a change of state.");
  v("state", change.state, field::any("To come."));
  v.base(change.attributes);
  v("path", change.path, field::any("To the peer."));
  v("priority", change.priority, field::any("Of what is sent."));
  v("rate_cap", change.rate_cap, field::bps("0: line rate."));
}

class WorkerHandle : public Wrap<WorkerHandle> {
 public:
  static constexpr const char* kName = "Worker";
  static constexpr napi_type_tag kTag{0x71c5e0b94d2f4a38, 0x9f06d2a7c1e85b43};

  static Napi::Function define(Napi::Env env);
  explicit WorkerHandle(const Napi::CallbackInfo& info);
  ~WorkerHandle() override;
  Worker& native() const;

 private:
  std::optional<std::vector<CounterEntry>> manifest();
  Time read_counters(std::span<double> target);
  uint32_t drain_records(std::span<double> target);
  std::vector<PuntedCopy> drain_punted();
  void reconfigure(const WorkerConfig& config, std::optional<std::vector<WorkerHandle*>> others);
  uint32_t register_memory(double nic, Memory& memory, uint8_t access, uint32_t domain);
  void modify_queue_pair(double nic, uint32_t qpn, const QueuePairChange& change);
  LentDescriptors lend_path(double nic, uint32_t number);
  size_t post(uint32_t nic, std::span<uint64_t> words, uint32_t count);
  size_t drain_completions(double nic, std::span<uint64_t> words);
  double progress(double nic, std::span<uint64_t> words);
  Napi::Value resolve(double nic, uint32_t own, const IpAddress& address);
  void attach(CaptureHandle& capture, const std::vector<Worker::PortPlace>& places);
  void detach(CaptureHandle& capture);
  uint32_t add_fault(const Worker::PortPlace& place, const FaultParameters& fault);
  bool end_fault(uint32_t number);
  std::vector<FaultState> faults();
  std::vector<NamedHistogram> histograms();
  uint64_t worst_gap() const { return native().gaps().worst(); }
  uint64_t recent_gap() const { return native().gaps().recent(); }
  Outcome outcome();
  double operations_ended() const { return native().graph() == nullptr ? 0 : static_cast<double>(native().graph()->ended()); }
  OperationTimes operations();

  SwitchDevice& switch_at(double index) const;
  NicDevice& nic_at(double index) const;
  // The NIC must have places for applications.
  NicDevice& verbs_at(double index) const;
  // Returns the result of an action on one of the worker's devices, by its number; it runs between two turns.
  template <auto kAction>
  auto on_switch(double device) const {
    return result_of(&Worker::between_turns, [&at = switch_at(device)] { return kAction(at); });
  }
  // Does the same with the queue pairs that applications have of a NIC.
  template <auto kAction, class... Arguments>
  auto on_applications(double nic, Arguments... arguments) const {
    return result_of(&Worker::between_turns,
                     [&, &at = *verbs_at(nic).applications()] { return std::invoke(kAction, at, arguments...); });
  }
  // Returns a view of it, with all counters published before.
  template <auto kLook>
  auto look_at_switch(double device) const {
    return result_of(&Worker::look, [&at = switch_at(device)] { return kLook(at); });
  }
  template <auto kLook>
  auto look_at_nic(double device) const {
    return result_of(&Worker::look, [&at = nic_at(device)] { return kLook(at); });
  }
  auto result_of(void (Worker::*when)(const std::function<void()>&), const auto& action) const {
    decltype(action()) out{};
    (native().*when)([&] { out = action(); });
    return out;
  }
  void release();
  static void on_exit(void* handle) { static_cast<WorkerHandle*>(handle)->release(); }

  napi_env env_ = nullptr;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<PortFaults> faults_;
  Napi::ThreadSafeFunction doorbell_;
  Napi::ThreadSafeFunction settle_;  // by which promises are kept
  bool rings_ = false;
};

}  // namespace weir
