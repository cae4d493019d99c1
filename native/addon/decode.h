// From values of JavaScript to values of C++, by the types of these; structs by their descriptions (base/describe.h). TypeScript
// has validated what users wrote; what is missing or of the wrong type here is a defect of ours, and is thrown as INVALID_CONFIG
// naming the field. Ranges are checked by whom the parameters are for.
#pragma once

#include <napi.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/describe.h"

namespace weir {

[[noreturn]] inline void wrong(const Path& path, const std::string& expected) {
  throw NativeError("INVALID_CONFIG", 0, "", path.text() + ": expected " + expected, "this is a defect in Weir, please report it");
}

// The typed array of JavaScript for columns and records of T.
template <class T>
inline constexpr napi_typedarray_type kTyped = sizeof(T) == 1 ? napi_uint8_array
                                               : std::is_same_v<T, uint16_t> ? napi_uint16_array
                                               : std::is_same_v<T, uint32_t> ? napi_uint32_array
                                                                             : napi_float64_array;

inline bool is_typed(const Napi::Value& value, napi_typedarray_type type) {
  return value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == type;
}

// Whether a number of JavaScript is one of this type, but for a fraction, which is cut off. To convert another is undefined.
template <class T>
bool fits(double value) {
  if constexpr (std::is_enum_v<T>) {
    return fits<std::underlying_type_t<T>>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return !std::isnan(value);
  } else {
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return value >= (std::is_signed_v<T> ? -end : 0) && value < end;
  }
}

template <class T>
T number_from(double number, const Path& path) {
  if (!fits<T>(number)) wrong(path, "a number in its range");
  return static_cast<T>(number);
}

template <class T>
void from_js(const Napi::Value& value, T& out, const Path& path);

class Decoder : public Visitor {
 public:
  Decoder(const Napi::Value& value, const Path& path) : path_(path) {
    if (!value.IsObject()) wrong(path_, "an object");
    object_ = value.As<Napi::Object>();
  }
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* name, T& out, const About& about) const {
    const Napi::Value value = object_.Get(name);
    if (!about.optional || !value.IsUndefined()) from_js(value, out, {&path_, name});
  }
  template <class T>
  void columns(const char* name, std::vector<T>& out, const About& about) const;

 private:
  Napi::Object object_;
  Path path_;
};

// Structs from typed arrays, one for each of their fields and all of one length.
class ColumnDecoder : public Visitor {
 public:
  ColumnDecoder(const Napi::Value& value, const Path& path) : path_(path) {
    if (!value.IsObject()) wrong(path_, "an object");
    object_ = value.As<Napi::Object>();
  }
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* name, T& out, const About& about) {
    const Path path{&path_, name};
    if (next_ == columns_.size()) columns_.push_back(open<T>(name, about, path));
    const void* data = columns_[next_++];
    if (data == nullptr || length_ == 0) return;
    if constexpr (std::is_same_v<T, bool>) {
      out = static_cast<const uint8_t*>(data)[row_] != 0;
    } else if constexpr (Worded<T>) {
      const uint8_t place = static_cast<const uint8_t*>(data)[row_];
      if (place >= words_of(T{}).size()) wrong(path, "places of words");
      out = static_cast<T>(place);
    } else if constexpr (kTyped<T> == napi_float64_array) {
      out = number_from<T>(static_cast<const double*>(data)[row_], path);
    } else {
      out = static_cast<const T*>(data)[row_];
    }
  }
  size_t length() const { return length_; }
  // To be called before each struct but the first.
  void next_row(size_t row) {
    row_ = row;
    next_ = 0;
  }

 private:
  // Null: absent.
  template <class T>
  const void* open(const char* name, const About& about, const Path& path) {
    const Napi::Value value = object_.Get(name);
    if (about.optional && value.IsUndefined()) return nullptr;
    if (!is_typed(value, kTyped<T>)) wrong(path, "a typed array of its type");
    const auto array = value.As<Napi::TypedArray>();
    if (columns_.empty()) length_ = array.ElementLength();
    if (array.ElementLength() != length_) wrong(path, "a column as long as the others");
    return static_cast<const uint8_t*>(array.ArrayBuffer().Data()) + array.ByteOffset();
  }
  Napi::Object object_;
  Path path_;
  std::vector<const void*> columns_;
  size_t next_ = 0;
  size_t row_ = 0;
  size_t length_ = 0;
};

template <class T>
void Decoder::columns(const char* name, std::vector<T>& out, const About& /*about*/) const {
  ColumnDecoder decoder(object_.Get(name), {&path_, name});
  T first;
  describe(decoder, first);
  out.resize(decoder.length());
  for (size_t row = 0; row < out.size(); ++row) {
    decoder.next_row(row);
    describe(decoder, out[row]);
  }
}

template <class T>
inline constexpr bool kIsColumn = false;
template <class T>
inline constexpr bool kIsColumn<Column<T>> = true;

template <class List>
void list_from_js(const Napi::Value& value, List& out, const Path& path) {
  if (!value.IsArray()) wrong(path, "an array");
  const Napi::Array array = value.As<Napi::Array>();
  if constexpr (requires { out.resize(0); }) {
    out.resize(array.Length());
  } else if (array.Length() != out.size()) {
    wrong(path, "an array of " + std::to_string(out.size()));
  }
  for (uint32_t i = 0; i < out.size(); ++i) from_js(array.Get(i), out[i], Path{&path, nullptr, i});
}

template <class T>
void from_js(const Napi::Value& value, T& out, const Path& path) {
  if constexpr (Described<T>) {
    Decoder decoder(value, path);
    describe(decoder, out);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.IsBoolean()) wrong(path, "a boolean");
    out = value.As<Napi::Boolean>().Value();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.IsString()) wrong(path, "a string");
    out = value.As<Napi::String>().Utf8Value();
  } else if constexpr (Worded<T>) {
    std::string word;
    from_js(value, word, path);
    constexpr auto kWords = words_of(T{});
    size_t place = 0;
    while (place < kWords.size() && word != kWords[place]) ++place;
    if (place == kWords.size()) wrong(path, "another word");
    out = static_cast<T>(place);
  } else if constexpr (Number<T>) {
    if (!value.IsNumber()) wrong(path, "a number");
    out = number_from<T>(value.As<Napi::Number>().DoubleValue(), path);
  } else if constexpr (kIsOptional<T>) {
    out.reset();
    if (!value.IsUndefined()) from_js(value, out.emplace(), path);
  } else if constexpr (kIsColumn<T>) {
    if (!is_typed(value, kTyped<typename T::value_type>)) wrong(path, "a typed array of its type");
    const auto array = value.As<Napi::TypedArrayOf<typename T::value_type>>();
    out.assign(array.Data(), array.Data() + array.ElementLength());
  } else if constexpr (std::is_bounded_array_v<T>) {
    if (!is_typed(value, napi_uint8_array) || value.As<Napi::Uint8Array>().ByteLength() > sizeof out) wrong(path, "a short Uint8Array");
    const auto array = value.As<Napi::Uint8Array>();
    if (array.ByteLength() > 0) std::memcpy(out, array.Data(), array.ByteLength());
  } else {
    list_from_js(value, out, path);
  }
}

}  // namespace weir
