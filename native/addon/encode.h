// Converts values of C++ to values of JavaScript, by the types of the former; structs by their descriptions (base/describe.h).
#pragma once

#include <napi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "addon/decode.h"
#include "base/counters.h"
#include "engine/counter_block.h"

namespace weir {

template <class T>
Napi::Value to_js(Napi::Env env, const T& value);

class Encoder : public Visitor {
 public:
  explicit Encoder(Napi::Env env) : object_(Napi::Object::New(env)) {}
  void base(const auto& part) { describe(*this, part); }
  // Undefined values are left out.
  template <class T>
  void operator()(const char* name, const T& value, const About& /*about*/) {
    const Napi::Value encoded = to_js(object_.Env(), value);
    if (!encoded.IsUndefined()) object_.Set(name, encoded);
  }
  const Napi::Object& object() const { return object_; }

 private:
  Napi::Object object_;
};

// Values of counters by their names.
template <class T>
concept Counted = requires { T::kDescriptions; };

template <class T>
Napi::Value to_js(Napi::Env env, const T& value) {
  if constexpr (std::derived_from<T, Napi::Value>) {
    return value;
  } else if constexpr (Described<T>) {
    Encoder encoder(env);
    describe(encoder, value);
    return encoder.object();
  } else if constexpr (std::is_same_v<T, bool>) {
    return Napi::Boolean::New(env, value);
  } else if constexpr (Worded<T>) {
    return Napi::String::New(env, words_of(value)[static_cast<size_t>(value)]);
  } else if constexpr (Number<T>) {
    return Napi::Number::New(env, static_cast<double>(value));
  } else if constexpr (std::convertible_to<T, std::string>) {
    return Napi::String::New(env, value);
  } else if constexpr (kIsOptional<T>) {
    return value ? to_js(env, *value) : env.Undefined();
  } else if constexpr (std::is_same_v<T, CounterLabels>) {
    Napi::Object out = Napi::Object::New(env);
    for (const auto& [key, label] : value) out.Set(key, label);
    return out;
  } else if constexpr (Counted<T>) {
    Napi::Object out = Napi::Object::New(env);
    for (int i = 0; i < T::kCount; ++i) out.Set(T::kDescriptions[i].name, static_cast<double>(value.words()[i]));
    return out;
  } else if constexpr (kIsColumn<T>) {
    auto out = Napi::TypedArrayOf<typename T::value_type>::New(env, value.size());
    std::ranges::copy(value, out.Data());
    return out;
  } else if constexpr (std::is_bounded_array_v<T>) {
    auto out = Napi::Uint8Array::New(env, sizeof value);
    std::memcpy(out.Data(), value, sizeof value);
    return out;
  } else if constexpr (requires { value.second; }) {
    Napi::Array out = Napi::Array::New(env, 2);
    out.Set(0u, to_js(env, value.first));
    out.Set(1u, to_js(env, value.second));
    return out;
  } else {
    Napi::Array out = Napi::Array::New(env, value.size());
    uint32_t place = 0;
    for (const auto& each : value) out.Set(place++, to_js(env, each));
    return out;
  }
}

}  // namespace weir
