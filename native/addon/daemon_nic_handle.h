// The JavaScript handle of a DaemonNic: see src/native/types.ts for the typed surface.
#pragma once

#include <napi.h>

#include <memory>
#include <span>

#include "addon/memory.h"
#include "addon/wrap.h"
#include "engine/daemon_nic.h"

namespace weir {

class DaemonNicHandle : public Wrap<DaemonNicHandle> {
 public:
  static constexpr const char* kName = "DaemonNic";
  static constexpr napi_type_tag kTag{0x2d5bb0c15f6e4d27, 0x8c0e6f31a94b7d52};

  static Napi::Function define(Napi::Env env);
  // DaemonNic(socket, onDoorbell)
  explicit DaemonNicHandle(const Napi::CallbackInfo& info);
  ~DaemonNicHandle() override;
  DaemonNic& native() const;

 private:
  ProgramAnswer hello() const { return native().hello(); }
  uint32_t register_memory(Memory& memory, uint8_t access, uint32_t domain);
  Napi::Value create_address_handle(const ProgramWay& way);
  size_t post(std::span<uint64_t> words, uint32_t count);
  size_t drain_completions(std::span<uint64_t> words);
  double progress(std::span<uint64_t> words);
  void release();
  static void on_exit(void* handle) { static_cast<DaemonNicHandle*>(handle)->release(); }

  napi_env env_ = nullptr;
  std::shared_ptr<DaemonNic> nic_;
  Napi::ThreadSafeFunction doorbell_;
};

}  // namespace weir
