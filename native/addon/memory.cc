#include "addon/memory.h"

#include <new>

#include "addon/fields.h"
#include "addon/unwrap.h"

namespace weir {

Napi::Function Memory::define(Napi::Env env) {
  return DefineClass(env, "Memory", {InstanceMethod("buffer", &Memory::buffer), InstanceMethod("address", &Memory::address)});
}

Memory::Memory(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Memory>(info) {
  const double bytes = info[0].ToNumber().DoubleValue();
  if (!(bytes >= 1)) throw Napi::RangeError::New(info.Env(), "Memory(bytes): bytes must be at least 1");
  if (!fits<size_t>(bytes)) throw Napi::RangeError::New(info.Env(), "Memory(bytes): no host has that many");
  try {
    block_ = std::make_shared<LazyMemory>(static_cast<size_t>(bytes), false);
  } catch (const std::bad_alloc&) {
    throw Napi::Error::New(info.Env(), "Memory(bytes): the host has no such amount of memory");
  }
  tag<Memory>(info);
}

// A new ArrayBuffer over the same bytes at each call.
Napi::Value Memory::buffer(const Napi::CallbackInfo& info) {
  auto* held = new std::shared_ptr<LazyMemory>(block_);
  return Napi::ArrayBuffer::New(
      info.Env(), block_->data(), block_->all().size(),
      [](Napi::Env, void*, std::shared_ptr<LazyMemory>* block) { delete block; }, held);
}

Napi::Value Memory::address(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(reinterpret_cast<uintptr_t>(block_->data())));
}

}  // namespace weir
