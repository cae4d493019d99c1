// Reading plain JavaScript objects. TypeScript has validated the values; what is missing or of the wrong type here is a defect of
// ours and is thrown as INVALID_CONFIG naming the field.
#pragma once

#include <napi.h>

#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/native_error.h"
#include "base/types.h"

namespace weir {

[[noreturn]] inline void wrong(const std::string& path, const char* expected) {
  throw NativeError("INVALID_CONFIG", 0, "", path + ": expected " + expected, "this is a defect in Weir, please report it");
}

// Whether a number of JavaScript is one of this type, but for a fraction, which is cut off. To convert another is undefined.
template <class Number>
bool fits(double value) {
  if constexpr (std::is_enum_v<Number>) {
    return fits<std::underlying_type_t<Number>>(value);
  } else if constexpr (std::is_floating_point_v<Number>) {
    return !std::isnan(value);
  } else {
    const double end = std::ldexp(1.0, std::numeric_limits<Number>::digits);
    return value >= (std::is_signed_v<Number> ? -end : 0) && value < end;
  }
}

template <class Number>
Number number_from(const Napi::Value& value, const std::string& path) {
  if (!value.IsNumber()) wrong(path, "a number");
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!fits<Number>(number)) wrong(path, "a number in its range");
  return static_cast<Number>(number);
}

// An argument that is to be written to.
inline Napi::Float64Array float64_array(const Napi::Value& value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float64_array) {
    throw Napi::TypeError::New(value.Env(), "the target must be a Float64Array");
  }
  return value.As<Napi::Float64Array>();
}

// One object of the configuration and the path that led to it.
class Fields {
 public:
  Fields(Napi::Value value, std::string path) : path_(std::move(path)) {
    if (!value.IsObject()) wrong(path_, "an object");
    object_ = value.As<Napi::Object>();
  }

  template <class Number>
  void number(const char* name, Number& out) const {
    out = number_from<Number>(object_.Get(name), at(name));
  }
  // Absent means never.
  void time_or_never(const char* name, Time& out) const {
    if (object_.Get(name).IsUndefined()) {
      out = kNever;
    } else {
      number(name, out);
    }
  }
  void boolean(const char* name, bool& out) const {
    const Napi::Value value = object_.Get(name);
    if (!value.IsBoolean()) wrong(at(name), "a boolean");
    out = value.As<Napi::Boolean>().Value();
  }
  std::string text(const char* name) const {
    const Napi::Value value = object_.Get(name);
    if (!value.IsString()) wrong(at(name), "a string");
    return value.As<Napi::String>().Utf8Value();
  }
  template <size_t N>
  void bytes(const char* name, uint8_t (&out)[N]) const {
    const Napi::Value value = object_.Get(name);
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().ByteLength() > N) wrong(at(name), "a short Uint8Array");
    const Napi::Uint8Array array = value.As<Napi::Uint8Array>();
    std::memcpy(out, array.Data(), array.ByteLength());
  }
  template <class T, size_t N>
  void numbers(const char* name, std::array<T, N>& out) const {
    const Napi::Array array = list(name);
    if (array.Length() != N) wrong(at(name), "an array of fixed length");
    for (uint32_t i = 0; i < N; ++i) out[i] = number_from<T>(array.Get(i), at(name));
  }
  std::vector<uint16_t> ports(const char* name) const { return port_numbers(list(name), at(name)); }
  // An array of arrays of port numbers.
  void groups(const char* name, std::vector<std::vector<uint16_t>>& out) const {
    const Napi::Array array = list(name);
    for (uint32_t i = 0; i < array.Length(); ++i) {
      if (!array.Get(i).IsArray()) wrong(at(name), "arrays of numbers");
      out.push_back(port_numbers(array.Get(i).As<Napi::Array>(), at(name)));
    }
  }
  // A typed array of exactly this type of number.
  template <class T>
  void column(const char* name, std::vector<T>& out) const {
    const Napi::Value value = object_.Get(name);
    constexpr napi_typedarray_type type = std::is_same_v<T, double>     ? napi_float64_array
                                          : std::is_same_v<T, uint32_t> ? napi_uint32_array
                                          : std::is_same_v<T, uint16_t> ? napi_uint16_array
                                                                        : napi_uint8_array;
    static_assert(std::is_same_v<T, double> || std::is_unsigned_v<T>);
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != type) wrong(at(name), "a typed array");
    const auto array = value.As<Napi::TypedArrayOf<T>>();
    out.assign(array.Data(), array.Data() + array.ElementLength());
  }
  Napi::Value value(const char* name) const { return object_.Get(name); }
  bool has(const char* name) const { return !object_.Get(name).IsUndefined(); }
  Fields object(const char* name) const { return {object_.Get(name), at(name)}; }
  template <class Decode>
  void each(const char* name, Decode decode) const {
    const Napi::Array array = list(name);
    for (uint32_t i = 0; i < array.Length(); ++i) decode(Fields(array.Get(i), at(name) + "." + std::to_string(i)));
  }
  // One of the words, by position.
  template <class Enum>
  void choice(const char* name, Enum& out, std::initializer_list<const char*> words) const {
    const std::string word = text(name);
    int position = 0;
    for (const char* candidate : words) {
      if (word == candidate) {
        out = static_cast<Enum>(position);
        return;
      }
      ++position;
    }
    wrong(at(name), "another word");
  }

 private:
  std::string at(const char* name) const { return path_ + "." + name; }
  static std::vector<uint16_t> port_numbers(const Napi::Array& array, const std::string& path) {
    std::vector<uint16_t> out;
    for (uint32_t i = 0; i < array.Length(); ++i) out.push_back(number_from<uint16_t>(array.Get(i), path));
    return out;
  }
  Napi::Array list(const char* name) const {
    const Napi::Value value = object_.Get(name);
    if (!value.IsArray()) wrong(at(name), "an array");
    return value.As<Napi::Array>();
  }
  Napi::Object object_;
  std::string path_;
};

}  // namespace weir
