// Counters are plain words owned by one device and written by one thread; the engine publishes them. Each set is defined
// once, by a list macro, from which the struct and its manifest (name, unit, help) are both made.
#pragma once

#include <cstdint>

#include "base/describe.h"

namespace weir {

struct CounterDescription {
  const char* name;
  const char* unit;
  const char* help;
};
void describe(auto& v, Of<CounterDescription> auto& counter) {
  v.type("CounterName", "What a counter is.");
  v("name", counter.name, field::any("As in metrics.md."));
  v("unit", counter.unit, field::any("Of its value."));
  v("help", counter.help, field::any("What it counts."));
}

#define WEIR_COUNTER_FIELD(name, unit, help) uint64_t name = 0;
#define WEIR_COUNTER_DESCRIPTION(name, unit, help) {#name, unit, help},

// Defines `struct Type` with one uint64_t per entry of the list macro and a parallel `kDescriptions`.
#define WEIR_DEFINE_COUNTERS(Type, LIST)                                                    \
  struct Type {                                                                             \
    LIST(WEIR_COUNTER_FIELD)                                                                \
    static constexpr CounterDescription kDescriptions[] = {LIST(WEIR_COUNTER_DESCRIPTION)}; \
    static constexpr int kCount = sizeof(kDescriptions) / sizeof(kDescriptions[0]);         \
    uint64_t* words() { return reinterpret_cast<uint64_t*>(this); }                         \
    const uint64_t* words() const { return reinterpret_cast<const uint64_t*>(this); }       \
    void add(const Type& other) {                                                           \
      for (int i = 0; i < kCount; ++i) words()[i] += other.words()[i];                      \
    }                                                                                       \
  }

}  // namespace weir
