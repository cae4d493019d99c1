#include "link/scheduler.h"

#include <cstddef>

namespace weir {

int Scheduler::pick(uint8_t backlogged, uint8_t paused, const std::array<uint32_t, kPriorities>& head_bytes) {
  const uint8_t ready = static_cast<uint8_t>(backlogged & ~paused);
  const uint8_t strict = ready & parameters_->strict;
  if (strict != 0) return 31 - __builtin_clz(strict);
  if (ready == 0) return -1;
  if ((ready & (ready - 1)) == 0) return __builtin_ctz(ready);  // no competitor: nothing to share
  for (;;) {
    const size_t q = static_cast<size_t>(current_);
    if ((ready >> current_ & 1) != 0) {
      if (!credited_) {
        deficit_[q] += parameters_->weights[q] * kQuantum;
        credited_ = true;
      }
      if (deficit_[q] >= head_bytes[q]) {
        deficit_[q] -= head_bytes[q];
        return current_;
      }
    } else if ((backlogged >> current_ & 1) == 0) {
      deficit_[q] = 0;
    }
    current_ = (current_ + 1) % kPriorities;
    credited_ = false;
  }
}

}  // namespace weir
