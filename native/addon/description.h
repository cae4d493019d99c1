// Types that cross the boundary, as data: scripts/generate-native.ts makes TypeScript's types of them.
#pragma once

#include <napi.h>

namespace weir {

// { configuration, reports: of structs { name, text, bases, fields: { name, type, text, unit, range, optional }[],
//                                         written: what users write, src/congestion/parameter.ts has its type }[],
//   records: { name, words, at: [name, place][] }[], words: { name, words }[] }
Napi::Value description(const Napi::CallbackInfo& info);

}  // namespace weir
