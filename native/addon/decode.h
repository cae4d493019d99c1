// Converts values of JavaScript to values of C++, by the types of these; structs by their descriptions (base/describe.h).
// TypeScript has validated what users wrote; a value that is missing or of the wrong type here is a defect of ours, and is thrown
// as INVALID_CONFIG naming the field. The users of parameters check their ranges.
#pragma once

#include <napi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "base/describe.h"

namespace weir {

[[noreturn]] inline void wrong(const Path& path, const std::string& expected) {
  throw NativeError("INVALID_CONFIG", 0, "", path.text() + ": expected " + expected,
                    "this is a defect in Weir, please report it");
}

// The typed array of JavaScript for columns and records of T.
template <class T>
inline constexpr napi_typedarray_type kTyped = sizeof(T) == 1                ? napi_uint8_array
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

// The place of a word among `words`.
size_t place_from(const Napi::Value& value, const auto& words, const Path& path) {
  if (!value.IsString()) wrong(path, "a string");
  const std::string word = value.As<Napi::String>().Utf8Value();
  const auto at = std::ranges::find(words, word);
  if (at == words.end()) wrong(path, "another word");
  return static_cast<size_t>(at - words.begin());
}

// It becomes the alternative at a place, by its defaults.
template <class... Alternatives>
void become(std::variant<Alternatives...>& out, size_t place) {
  size_t next = 0;
  ((next++ == place ? void(out = Alternatives{}) : void()), ...);
}

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
    if (about.optional && value.IsUndefined()) return;
    if constexpr (Variant<T>) {
      become(out, place_from(value, words_of(out), {&path_, name}));
      visit_described(out, [&](const char* word, auto& part) { from_js(object_.Get(word), part, {&path_, word}); });
    } else {
      from_js(value, out, {&path_, name});
    }
  }

 private:
  Napi::Object object_;
  Path path_;
};

template <class T>
inline constexpr bool kIsColumn = false;
template <class T>
inline constexpr bool kIsColumn<Column<T>> = true;

template <class T>
inline constexpr bool kAreColumns = false;
template <class T>
inline constexpr bool kAreColumns<Columns<T>> = true;

// Type of a field of type T in a column.
template <class T>
using InColumn = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<std::is_same_v<T, uint16_t>, uint16_t, std::conditional_t<std::is_same_v<T, uint32_t>, uint32_t, double>>>;

// Finds the columns, in the order of the fields.
class ColumnFinder : public Visitor {
 public:
  static constexpr size_t kUnknown = SIZE_MAX;
  ColumnFinder(const Napi::Value& value, const Path& path) : path_(path) {
    if (!value.IsObject()) wrong(path_, "an object");
    object_ = value.As<Napi::Object>();
  }
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* name, T&, const About& about) {
    const Napi::Value value = object_.Get(name);
    if (about.optional && value.IsUndefined()) return found_.push_back(nullptr);
    const Path path{&path_, name};
    if (!is_typed(value, kTyped<InColumn<T>>)) wrong(path, "a typed array of its type");
    const auto column = value.As<Napi::TypedArrayOf<InColumn<T>>>();
    if (length_ != kUnknown && length_ != column.ElementLength()) wrong(path, "as many as in the other columns");
    length_ = column.ElementLength();
    found_.push_back(column.Data());
  }
  size_t length() const { return length_ == kUnknown ? 0 : length_; }
  const std::vector<const void*>& found() const { return found_; }

 private:
  Napi::Object object_;
  Path path_;
  size_t length_ = kUnknown;
  std::vector<const void*> found_;
};

// One row of them.
class ColumnReader : public Visitor {
 public:
  ColumnReader(const std::vector<const void*>& columns, size_t row, const Path& path)
      : columns_(columns), row_(row), path_(path) {}
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* name, T& out, const About&) {
    const auto* column = static_cast<const InColumn<T>*>(columns_[next_++]);
    if (column == nullptr) return;
    if constexpr (std::is_same_v<T, bool>) {
      out = column[row_] != 0;
    } else if constexpr (Worded<T>) {
      if (column[row_] >= words_of(T{}).size()) wrong({&path_, name}, "the number of a word");
      out = static_cast<T>(column[row_]);
    } else {
      out = number_from<T>(static_cast<double>(column[row_]), {&path_, name});
    }
  }

 private:
  const std::vector<const void*>& columns_;
  size_t next_ = 0;
  size_t row_;
  Path path_;
};

template <class T>
void columns_from_js(const Napi::Value& value, Columns<T>& out, const Path& path) {
  ColumnFinder columns(value, path);
  T first{};
  describe(columns, first);
  out.resize(columns.length());
  for (size_t row = 0; row < out.size(); ++row) {
    ColumnReader reader(columns.found(), row, {&path, nullptr, row});
    describe(reader, out[row]);
  }
}

template <class List>
void list_from_js(const Napi::Value& value, List& out, const Path& path) {
  if (!value.IsArray()) wrong(path, "an array");
  const Napi::Array array = value.As<Napi::Array>();
  const uint32_t length = array.Length();
  if constexpr (requires { out.emplace_back(); }) {
    out.clear();
    // One by one: a sparse array may say that it is of any length.
    for (uint32_t i = 0; i < length; ++i) from_js(array.Get(i), out.emplace_back(), Path{&path, nullptr, i});
  } else {
    if (length != out.size()) wrong(path, "an array of " + std::to_string(out.size()));
    for (uint32_t i = 0; i < length; ++i) from_js(array.Get(i), out[i], Path{&path, nullptr, i});
  }
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
    out = static_cast<T>(place_from(value, words_of(T{}), path));
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
  } else if constexpr (kAreColumns<T>) {
    columns_from_js(value, out, path);
  } else if constexpr (std::is_bounded_array_v<T>) {
    if (!is_typed(value, napi_uint8_array) || value.As<Napi::Uint8Array>().ByteLength() > sizeof out)
      wrong(path, "a short Uint8Array");
    const auto array = value.As<Napi::Uint8Array>();
    if (array.ByteLength() > 0) std::memcpy(out, array.Data(), array.ByteLength());
  } else {
    list_from_js(value, out, path);
  }
}

}  // namespace weir
