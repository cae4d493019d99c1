// Input from which fuzzers draw their decisions, and require(), by which they say that something must not be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace weir::fuzz {

// The bytes of an input one after the other, then zeros: what an input begins with is an input too.
class Input {
 public:
  // `mask`: the bits that bytes of numbers may have.
  explicit Input(std::span<const uint8_t> bytes, uint8_t mask = 0xff) : bytes_(bytes), mask_(mask) {}

  bool empty() const { return bytes_.empty(); }
  uint8_t byte() {
    if (empty()) return 0;
    const uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  // Big-endian.
  uint64_t number(int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0) value = value << 8 | (byte() & mask_);
    return value;
  }
  // The next bytes as they are, fewer where there are no more.
  std::span<const uint8_t> take(size_t bytes) {
    const auto taken = bytes_.first(bytes < bytes_.size() ? bytes : bytes_.size());
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> bytes_;
  uint8_t mask_;
};

// Ends the process, as a sanitizer does, unless `condition` holds.
inline void require(bool condition, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (condition) return;
  std::fprintf(stderr, "%s:%d: what must hold does not\n", file, line);
  std::abort();
}

}  // namespace weir::fuzz
