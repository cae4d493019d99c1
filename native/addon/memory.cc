#include "addon/memory.h"

#include <cmath>
#include <new>

namespace weir {

Napi::Function Memory::define(Napi::Env env) {
  return DefineClass(env, "Memory", {method<&Memory::buffer, "buffer()">(), method<&Memory::address, "address()">()});
}

Memory::Memory(const Napi::CallbackInfo& info) : Wrap(info) {
  const double bytes = info[0].ToNumber().DoubleValue();
  if (!(bytes >= 1) || bytes != std::floor(bytes)) {
    throw Napi::RangeError::New(info.Env(), "Memory(bytes): bytes must be a whole number, 1 at least");
  }
  if (!fits<size_t>(bytes)) throw Napi::RangeError::New(info.Env(), "Memory(bytes): no host has that many");
  try {
    block_ = std::make_shared<LazyMemory>(static_cast<size_t>(bytes), false);
  } catch (const std::bad_alloc&) {
    throw Napi::Error::New(info.Env(), "Memory(bytes): the host has no such amount of memory");
  }
}

MemoryRegion Memory::region(uint8_t access, uint32_t domain) const {
  MemoryRegion region;
  region.data = block_->data();
  region.address = reinterpret_cast<uintptr_t>(block_->data());
  region.length = block_->all().size();
  region.access = access;
  region.domain = domain;
  region.owner = block_;
  return region;
}

// A new ArrayBuffer over the same bytes at each call. Node.js, which has a limit of its own for lengths, calls the finalizer also
// where it refuses to make the buffer; Napi::ArrayBuffer::New would free what the finalizer frees once more.
Napi::Value Memory::buffer() {
  const auto release = [](napi_env, void*, void* held) { delete static_cast<std::shared_ptr<LazyMemory>*>(held); };
  auto* held = new std::shared_ptr<LazyMemory>(block_);
  napi_value buffer = nullptr;
  const napi_status status =
      napi_create_external_arraybuffer(Env(), block_->data(), block_->all().size(), release, held, &buffer);
  if (status == napi_no_external_buffers_allowed) delete held;
  if (status != napi_ok) throw Napi::Error::New(Env());
  return {Env(), buffer};
}

}  // namespace weir
