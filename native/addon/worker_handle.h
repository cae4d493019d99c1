// The JavaScript handle of a Worker: see src/native/types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/unwrap.h"
#include "engine/worker.h"

namespace weir {

class WorkerHandle : public Napi::ObjectWrap<WorkerHandle> {
 public:
  static constexpr const char* kName = "Worker";
  static constexpr napi_type_tag kTag{0x71c5e0b94d2f4a38, 0x9f06d2a7c1e85b43};

  static Napi::Function define(Napi::Env env);
  explicit WorkerHandle(const Napi::CallbackInfo& info);
  ~WorkerHandle() override;

 private:
  Napi::Value open(const Napi::CallbackInfo& info);
  Napi::Value begin(const Napi::CallbackInfo& info);
  Napi::Value stop_traffic(const Napi::CallbackInfo& info);
  Napi::Value stop(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);
  Napi::Value manifest(const Napi::CallbackInfo& info);
  Napi::Value read_counters(const Napi::CallbackInfo& info);
  Napi::Value drain_records(const Napi::CallbackInfo& info);
  Napi::Value drain_punted(const Napi::CallbackInfo& info);
  Napi::Value inject(const Napi::CallbackInfo& info);
  Napi::Value reconfigure(const Napi::CallbackInfo& info);
  Napi::Value forwarding_table(const Napi::CallbackInfo& info);
  Napi::Value forwarding_entries(const Napi::CallbackInfo& info);
  Napi::Value switch_state(const Napi::CallbackInfo& info);
  Napi::Value queue_pairs(const Napi::CallbackInfo& info);
  Napi::Value register_memory(const Napi::CallbackInfo& info);
  Napi::Value deregister_memory(const Napi::CallbackInfo& info);
  Napi::Value create_queue_pair(const Napi::CallbackInfo& info);
  Napi::Value destroy_queue_pair(const Napi::CallbackInfo& info);
  Napi::Value modify_queue_pair(const Napi::CallbackInfo& info);
  Napi::Value create_address_handle(const Napi::CallbackInfo& info);
  Napi::Value destroy_address_handle(const Napi::CallbackInfo& info);
  Napi::Value post(const Napi::CallbackInfo& info);
  Napi::Value drain_completions(const Napi::CallbackInfo& info);
  Napi::Value attach(const Napi::CallbackInfo& info);
  Napi::Value detach(const Napi::CallbackInfo& info);
  Napi::Value histograms(const Napi::CallbackInfo& info);
  Napi::Value worst_gap(const Napi::CallbackInfo& info);
  Napi::Value recent_gap(const Napi::CallbackInfo& info);
  Napi::Value outcome(const Napi::CallbackInfo& info);

  Worker& worker(const Napi::CallbackInfo& info) const;
  void release();
  static void on_exit(void* handle) { static_cast<WorkerHandle*>(handle)->release(); }

  napi_env env_ = nullptr;
  std::unique_ptr<Worker> worker_;
  Napi::ThreadSafeFunction doorbell_;
  bool rings_ = false;
};

}  // namespace weir
