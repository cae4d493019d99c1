// Seeded random streams, one per (seed, component, purpose), so that adding a draw in one place never shifts another.
#pragma once

#include <cstdint>

namespace weir {

// splitmix64 (Steele, Lea, Flood 2014): tiny state, passes BigCrush, and the same bits on every platform.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t component = 0, uint64_t purpose = 0)
      : state_(mix(mix(seed + kGolden) ^ mix(component + 2 * kGolden) ^ mix(purpose + 3 * kGolden))) {}

  uint64_t next() {
    state_ += kGolden;
    return mix(state_);
  }
  // Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // Each bit of `z` changes about half of the result's.
  static constexpr uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  uint64_t state_;
};

}  // namespace weir
