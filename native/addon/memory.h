// Memory that applications and the poll thread share: seen from JavaScript as an ArrayBuffer, never copied, never moved.
#pragma once

#include <napi.h>

#include <memory>

#include "addon/wrap.h"
#include "base/lazy_memory.h"
#include "transport/memory_table.h"

namespace weir {

class Memory : public Wrap<Memory> {
 public:
  static constexpr const char* kName = "Memory";
  static constexpr napi_type_tag kTag{0x8e41f7b05c9d42a3, 0xb06d1f9857e3c42b};

  static Napi::Function define(Napi::Env env);
  // Memory(bytes): zeroed, page-aligned.
  explicit Memory(const Napi::CallbackInfo& info);

  // Region for a registration: it lives as long as the JavaScript object, its buffer, or a registration.
  MemoryRegion region(uint8_t access, uint32_t domain) const;

 private:
  Napi::Value buffer();
  uintptr_t address() const { return reinterpret_cast<uintptr_t>(block_->data()); }

  std::shared_ptr<LazyMemory> block_;
};

}  // namespace weir
