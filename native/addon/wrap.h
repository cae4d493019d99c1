// Classes of JavaScript whose methods are those of C++: arguments are decoded by their types, results encoded by theirs, and
// errors become those of JavaScript.
#pragma once

#include <napi.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "addon/decode.h"
#include "addon/encode.h"
#include "addon/errors.h"

namespace weir {

// The native side of `value`, which must have been made by `Handle`: that is not told by the wrap itself, so each class has a
// tag, which its constructor sets by tag(). Throws a JavaScript TypeError that names the class.
template <class Handle>
Handle& unwrap(const Napi::Value& value) {
  if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&Handle::kTag)) {
    throw Napi::TypeError::New(value.Env(), std::string("expected a ") + Handle::kName);
  }
  return *Handle::Unwrap(value.As<Napi::Object>());
}

template <class Handle>
concept Tagged = requires { Handle::kTag; };

template <Tagged Handle>
void from_js(const Napi::Value& value, Handle*& out, const Path& /*path*/) {
  out = &unwrap<Handle>(value);
}

// Memory of the caller's, for the time of the call: Float64Array, BigUint64Array, or Uint8Array. Decoding an object may run
// JavaScript, which may take such memory away: no method takes both.
template <class T>
std::span<T> memory_of(const Napi::Value& value) {
  using Element = std::remove_const_t<T>;
  constexpr auto kType = std::is_same_v<Element, uint64_t> ? napi_biguint64_array : kTyped<Element>;
  // One call asks for all of it, as calls take the time.
  napi_typedarray_type type{};
  size_t length = 0;
  void* data = nullptr;
  if (napi_get_typedarray_info(value.Env(), value, &type, &length, &data, nullptr, nullptr) != napi_ok || type != kType) {
    constexpr const char* kName = kType == napi_uint8_array     ? "Uint8Array"
                                  : kType == napi_float64_array ? "Float64Array"
                                                                : "BigUint64Array";
    throw Napi::TypeError::New(value.Env(), std::string("the argument must be a ") + kName);
  }
  return {static_cast<T*>(data), length};
}

template <class T>
inline constexpr bool kIsSpan = false;
template <class T>
inline constexpr bool kIsSpan<std::span<T>> = true;

// Number `place` of the arguments that `signature` names.
template <class Argument>
decltype(auto) argument(const Napi::CallbackInfo& info, const char* signature, size_t place) {
  using T = std::remove_cvref_t<Argument>;
  if constexpr (Tagged<T>) {
    return unwrap<T>(info[place]);
  } else if constexpr (kIsSpan<T>) {
    return memory_of<typename T::element_type>(info[place]);
  } else {
    T out{};
    from_js(info[place], out, Path{.name = signature, .place = place, .argument = true});
    return out;
  }
}

// A function's name in JavaScript, and those of its arguments in parentheses.
template <size_t N>
struct Signature {
  char text[N] = {};
  char name[N] = {};
  consteval Signature(const char (&signature)[N]) {  // NOLINT: a literal is one
    std::ranges::copy(signature, text);
    for (size_t i = 0; i < N && text[i] != '('; ++i) name[i] = text[i];
  }
};

// Returns what `action` makes of the arguments.
template <class Result, class... Arguments, size_t... I>
Napi::Value apply(const Napi::CallbackInfo& info, const char* signature, std::index_sequence<I...>, const auto& action) {
  return translated(info.Env(), [&]() -> Napi::Value {
    if constexpr (std::is_void_v<Result>) {
      action(argument<Arguments>(info, signature, I)...);
      return info.Env().Undefined();
    } else {
      return to_js(info.Env(), action(argument<Arguments>(info, signature, I)...));
    }
  });
}

template <class Result, class... Arguments>
Napi::Value apply(const Napi::CallbackInfo& info, const char* signature, Result (*function)(Arguments...)) {
  return apply<Result, Arguments...>(info, signature, std::index_sequence_for<Arguments...>(), function);
}

template <auto kFunction, Signature kSignature>
void add_function(Napi::Object& exports) {
  const auto callback = [](const Napi::CallbackInfo& info) { return apply(info, kSignature.text, kFunction); };
  exports.Set(kSignature.name, Napi::Function::New(exports.Env(), callback, kSignature.name));
}

template <class Handle>
class Wrap : public Napi::ObjectWrap<Handle> {
 protected:
  explicit Wrap(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Handle>(info) {
    info.This().As<Napi::Object>().TypeTag(&Handle::kTag);
  }

  // A method of the handle's, or of what it is a handle of: native().
  template <auto kMethod, Signature kSignature>
  static Napi::ClassPropertyDescriptor<Handle> method() {
    return Napi::ObjectWrap<Handle>::InstanceMethod(kSignature.name, &Wrap::template call<kMethod, kSignature>);
  }

 private:
  template <auto kMethod, Signature kSignature>
  Napi::Value call(const Napi::CallbackInfo& info) {
    return invoke(info, kSignature.text, kMethod);
  }
  template <class Target, class Result, class... Arguments>
  Napi::Value invoke(const Napi::CallbackInfo& info, const char* signature, Result (Target::*method)(Arguments...)) {
    return apply<Result, Arguments...>(info, signature, std::index_sequence_for<Arguments...>(),
                                       [&](auto&&... arguments) { return (target<Target>().*method)(arguments...); });
  }
  template <class Target, class Result, class... Arguments>
  Napi::Value invoke(const Napi::CallbackInfo& info, const char* signature, Result (Target::*method)(Arguments...) const) {
    return apply<Result, Arguments...>(info, signature, std::index_sequence_for<Arguments...>(),
                                       [&](auto&&... arguments) { return (target<Target>().*method)(arguments...); });
  }
  template <class Target>
  Target& target() {
    auto& self = static_cast<Handle&>(*this);
    if constexpr (std::derived_from<Handle, Target>) {
      return self;
    } else {
      return self.native();
    }
  }
};

}  // namespace weir
