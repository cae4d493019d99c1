// Described structs (base/describe.h) as bytes, for another process of the same version on this host: each value in the host's
// order, behind the one before. What is not described is not in them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/describe.h"
#include "base/native_error.h"

namespace weir {

class ByteWriter : public Visitor {
 public:
  void base(const auto& part) { describe(*this, part); }
  void operator()(const char* /*name*/, const auto& value, const About& /*about*/) { put(value); }

  void put(const auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (Variant<T>) {
      put(static_cast<uint32_t>(value.index()));
      visit_described(value, [this](const char*, const auto& part) { put(part); });
    } else if constexpr (Described<T>) {
      describe(*this, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      put(static_cast<uint32_t>(value.size()));
      bytes_.insert(bytes_.end(), value.begin(), value.end());
    } else if constexpr (kIsOptional<T>) {
      put(value.has_value());
      if (value) put(*value);
    } else if constexpr (Listed<T>) {
      put(static_cast<uint32_t>(std::size(value)));
      for (const auto& each : value) put(each);
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
      const auto* from = reinterpret_cast<const uint8_t*>(&value);
      bytes_.insert(bytes_.end(), from, from + sizeof value);
    }
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// Throws NativeError MALFORMED for bytes that are not those of such a struct. Ranges are not looked at: check() does.
class ByteReader : public Visitor {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : left_(bytes) {}
  void base(auto& part) { describe(*this, part); }
  void operator()(const char* /*name*/, auto& value, const About& /*about*/) { get(value); }

  void get(auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (Variant<T>) {
      become(value, count());
      visit_described(value, [this](const char*, auto& part) { get(part); });
    } else if constexpr (Described<T>) {
      describe(*this, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      const std::span<const uint8_t> text = take(count());
      value.assign(text.begin(), text.end());
    } else if constexpr (kIsOptional<T>) {
      bool present = false;
      get(present);
      value.reset();
      if (present) get(value.emplace());
    } else if constexpr (requires { value.emplace_back(); }) {
      value.clear();
      // One by one: each needs a byte at least, whatever number is there.
      for (uint32_t left = count(); left > 0; --left) {
        require_more();
        get(value.emplace_back());
      }
    } else if constexpr (Listed<T> || std::is_bounded_array_v<T>) {
      if (count() != std::size(value)) malformed();
      for (auto& each : value) get(each);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = take(1)[0] != 0;
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
      std::memcpy(&value, take(sizeof value).data(), sizeof value);
      if constexpr (Worded<T>) {
        if (static_cast<size_t>(value) >= words_of(value).size()) malformed();
      }
    }
  }
  bool finished() const { return left_.empty(); }
  // Throws as well unless that was all, and `good`.
  void finish(bool good = true) const {
    if (!good || !finished()) malformed();
  }

 private:
  [[noreturn]] static void malformed() {
    throw NativeError("MALFORMED", 0, "", "bytes of another process are not what they should be", "both are of the same version");
  }
  uint32_t count() {
    uint32_t out = 0;
    get(out);
    return out;
  }
  void require_more() const {
    if (left_.empty()) malformed();
  }
  std::span<const uint8_t> take(size_t count) {
    if (count > left_.size()) malformed();
    const std::span<const uint8_t> out = left_.first(count);
    left_ = left_.subspan(count);
    return out;
  }
  // It becomes the alternative at a place, by its defaults.
  template <class... Alternatives>
  static void become(std::variant<Alternatives...>& out, size_t place) {
    if (place >= sizeof...(Alternatives)) malformed();
    size_t next = 0;
    ((next++ == place ? void(out = Alternatives{}) : void()), ...);
  }

  std::span<const uint8_t> left_;
};

}  // namespace weir
