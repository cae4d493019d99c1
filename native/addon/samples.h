// Samples and distributions as JavaScript sees them.
#pragma once

#include <napi.h>

#include "base/histogram.h"
#include "base/record.h"

namespace weir {

// Words of one record: time, kind, device, index, four values.
inline constexpr uint32_t kRecordWords = 8;

void write_record(const Record& record, double* words);
Napi::Object distribution(Napi::Env env, const Histogram& histogram);

}  // namespace weir
