// Structs as rows of numbers in a Float64Array, from their descriptions: each field in its order, arrays one number after
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/describe.h"

namespace weir {

// Without a target a writer only sees where fields are.
class RowWriter : public Visitor {
 public:
  explicit RowWriter(std::span<double> target = {}) : target_(target) {}
  void base(const auto& part) { describe(*this, part); }
  template <class T>
  void operator()(const char* name, const T& value, const About& about) {
    if constexpr (Listed<T>) {
      for (const auto& each : value) (*this)(name, each, about);
    } else {
      if (at_ < target_.size()) target_[at_] = static_cast<double>(value);
      ++at_;
    }
  }
  // True if there is room for one more like this.
  bool has_room(const auto& record) const {
    RowWriter row;
    describe(row, record);
    return at_ + row.words() <= target_.size();
  }
  void write(const auto& record) {
    describe(*this, record);
    ++count_;
  }
  uint32_t count() const { return count_; }
  size_t place_of(const auto& /*field*/) const { return at_; }
  size_t words() const { return at_; }

 private:
  std::span<double> target_;
  size_t at_ = 0;
  uint32_t count_ = 0;
};

}  // namespace weir
