// The JavaScript handle of a Worker: see src/native/types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "addon/capture_handle.h"
#include "addon/histograms.h"
#include "addon/inspect.h"
#include "addon/memory.h"
#include "addon/wrap.h"
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

// What an application's queue pair is given with a change of state.
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
  void close();
  std::optional<std::vector<CounterEntry>> manifest();
  Time read_counters(std::span<double> target);
  uint32_t drain_records(std::span<double> target);
  std::vector<PuntedCopy> drain_punted();
  bool inject(uint16_t device, uint16_t port, std::span<const uint8_t> bytes);
  void reconfigure(const WorkerConfig& config, std::optional<std::vector<WorkerHandle*>> others);
  std::vector<ForwardingEntry> forwarding_table(double device);
  size_t forwarding_entries(double device);
  SwitchCopy switch_state(double device);
  std::vector<QueuePairCopy> queue_pairs(double device);
  uint32_t register_memory(double nic, Memory& memory, uint8_t access, uint32_t domain);
  bool deregister_memory(double nic, uint32_t key);
  ProgramOpening open_program(double nic);
  bool close_program(double nic, uint32_t number);
  uint32_t create_queue_pair(double nic, VerbsQueuePairParameters parameters);
  bool destroy_queue_pair(double nic, uint32_t qpn);
  void modify_queue_pair(double nic, uint32_t qpn, const QueuePairChange& change);
  uint32_t create_address_handle(double nic, const RocePath& path);
  bool destroy_address_handle(double nic, uint32_t handle);
  size_t post(uint32_t nic, std::span<uint64_t> words, uint32_t count);
  size_t drain_completions(double nic, std::span<uint64_t> words);
  void attach(CaptureHandle& capture, const std::vector<Worker::PortPlace>& places);
  void detach(CaptureHandle& capture);
  std::vector<NamedHistogram> histograms();
  Outcome outcome();

  SwitchDevice& switch_at(double index) const;
  NicDevice& nic_at(double index) const;
  // With places for applications.
  NicDevice& verbs_at(double index) const;
  // What `action` returns, run between two turns.
  auto between_turns(const auto& action) const {
    decltype(action()) out{};
    native().between_turns([&] { out = action(); });
    return out;
  }
  // The same, with all counters published before.
  auto look(const auto& action) const {
    decltype(action()) out{};
    native().look([&] { out = action(); });
    return out;
  }
  void release();
  static void on_exit(void* handle) { static_cast<WorkerHandle*>(handle)->release(); }

  napi_env env_ = nullptr;
  std::unique_ptr<Worker> worker_;
  Napi::ThreadSafeFunction doorbell_;
  bool rings_ = false;
};

}  // namespace weir
