// Records of fixed length in rings that native code and TypeScript share, from their descriptions (base/describe.h): fields
// follow each other in their order, each at a multiple of its own length, and a record is whole words of 8 bytes long.
// Little-endian, as all hosts are that this runs on.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/describe.h"

namespace weir {

static_assert(std::endian::native == std::endian::little);

// Reads into fields that may be changed, and writes those that may not. Without bytes it only sees where fields are. Fields are
// numbers, bools and enums only.
class RecordAt : public Visitor {
 public:
  explicit RecordAt(uint64_t* words = nullptr) : bytes_(reinterpret_cast<uint8_t*>(words)) {}
  void base(auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* /*name*/, T& field, const About& /*about*/) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const size_t place = place_of(field);
    at_ = place + sizeof field;
    if (bytes_ == nullptr) return;
    if constexpr (std::is_const_v<T>) {
      std::memcpy(bytes_ + place, &field, sizeof field);
    } else if constexpr (std::is_same_v<T, bool>) {
      field = bytes_[place] != 0;  // any other byte would be none
    } else {
      std::memcpy(&field, bytes_ + place, sizeof field);
    }
  }
  // Returns where a field that comes next lies, in bytes.
  size_t place_of(const auto& field) const { return (at_ + sizeof field - 1) / sizeof field * sizeof field; }
  size_t words() const { return (at_ + sizeof(uint64_t) - 1) / sizeof(uint64_t); }

 private:
  uint8_t* bytes_;
  size_t at_ = 0;
};

template <class T>
size_t words_of_record() {
  RecordAt layout;
  const T record{};
  describe(layout, record);
  return layout.words();
}

}  // namespace weir
