// Records of fixed length in rings that native code and TypeScript share, from their descriptions (base/describe.h): fields follow
// each other in their order, each at a multiple of its own length, and a record is whole words of 8 bytes long. Little-endian, as
// all hosts are that this runs on.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/describe.h"

namespace weir {

static_assert(std::endian::native == std::endian::little);

// Where fields are. Of numbers, bools and enums only.
class Layout : public Visitor {
 public:
  static constexpr size_t kWord = sizeof(uint64_t);
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* /*name*/, const T& /*value*/, const About& /*about*/) {
    take<T>();
  }
  size_t words() const { return (at_ + kWord - 1) / kWord; }
  // Of a field that comes next, in bytes.
  template <class T>
  size_t place_of() const {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    return (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
  }

 protected:
  template <class T>
  size_t take() {
    const size_t place = place_of<T>();
    at_ = place + sizeof(T);
    return place;
  }

 private:
  size_t at_ = 0;
};

class RecordReader final : public Layout {
 public:
  explicit RecordReader(const uint64_t* words) : words_(words) {}
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* /*name*/, T& out, const About& /*about*/) {
    const size_t place = take<T>();
    if constexpr (std::is_same_v<T, bool>) {
      out = bytes()[place] != 0;  // any other byte would be none
    } else {
      std::memcpy(&out, bytes() + place, sizeof out);
    }
  }

 private:
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(words_); }
  const uint64_t* words_;
};

class RecordWriter final : public Layout {
 public:
  explicit RecordWriter(uint64_t* words) : words_(words) {}
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* /*name*/, const T& value, const About& /*about*/) {
    std::memcpy(reinterpret_cast<uint8_t*>(words_) + take<T>(), &value, sizeof value);
  }

 private:
  uint64_t* words_;
};

template <class T>
size_t words_of_record() {
  Layout layout;
  T record{};
  describe(layout, record);
  return layout.words();
}

}  // namespace weir
