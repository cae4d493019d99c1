// Records as JavaScript sees them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/record.h"

namespace weir {

// Words of one record: time, kind, device, index, four values.
inline constexpr uint32_t kRecordWords = 8;

inline void write_record(const Record& record, double* words) {
  words[0] = static_cast<double>(record.time);
  words[1] = static_cast<double>(record.kind);
  words[2] = record.device;
  words[3] = record.index;
  std::ranges::copy(record.values, words + 4);
}

}  // namespace weir
