// Counters are plain words owned by one device and written by one thread; the engine publishes them. Each set is defined
// once, by a list macro, from which the struct and its manifest (name, unit, meaning, help) are both made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/describe.h"

namespace weir {

// What a counter stands for, whatever it is called. Totals, tables, metrics and the account of frames are sums of the counters
// that mean the same, so a frame may be in one counter of a meaning only.
enum class CounterMeaning : uint8_t {
  none,         // it is in no sum: a part of another, or of use only under its name
  gauge,        // how much there is, or was at most: it does not begin anew when counters are cleared
  sent,         // frames that a port sent, MAC control apart
  received,     // frames that a port received, MAC control apart
  made,         // frames that a switch made and queued, CNMs apart
  taken,        // frames that ended at a switch, which took them for itself
  duplicate,    // copies beyond the frame that they are of
  control_tx,   // MAC control frames sent
  control_rx,   // MAC control frames received
  drop,         // frames discarded here, for a reason that the name has
  overrun,      // frames that the host lost before they came
  refused,      // frames that the host did not take to send
  down,         // frames that were to be sent while the interface, or the link, was down
  fault,        // frames lost on purpose
  mark,         // frames marked CE
  marked,       // frames that came marked CE
  cnm,          // CNMs made
  cnm_refused,  // CNMs that changed no rate, for a reason that the name has
  pause_tx,     // of a priority: frames sent that stop the peer, or let it go on
  pause_rx,     // of a priority: frames received that stop this port, or let it go on
  paused,       // of a priority: how long this port was stopped
  thrown,       // frames that the host took to send, and threw away then: they are sent, too
};
constexpr auto words_of(CounterMeaning) {
  return std::array{"none",       "gauge",       "sent",     "received", "made",   "taken", "duplicate", "control_tx",
                    "control_rx", "drop",        "overrun",  "refused",  "down",   "fault", "mark",      "marked",
                    "cnm",        "cnm_refused", "pause_tx", "pause_rx", "paused", "thrown"};
}
static_assert(words_of(CounterMeaning{}).size() == static_cast<size_t>(CounterMeaning::thrown) + 1);

struct CounterDescription {
  const char* name;
  const char* unit;
  CounterMeaning meaning;
  const char* help;
};
void describe(auto& v, Of<CounterDescription> auto& counter) {
  v.type("CounterName", "What a counter is.");
  v("name", counter.name, field::any("As in metrics.md."));
  v("unit", counter.unit, field::any("Of its value."));
  v("meaning", counter.meaning, field::any("What it adds to: native/base/counters.h has the words."));
  v("help", counter.help, field::any("What it counts."));
}

#define WEIR_COUNTER_FIELD(name, unit, meaning, help) uint64_t name = 0;
#define WEIR_COUNTER_DESCRIPTION(name, unit, meaning, help) {#name, unit, CounterMeaning::meaning, help},

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
    uint64_t sum(CounterMeaning meaning) const {                                            \
      uint64_t total = 0;                                                                   \
      for (int i = 0; i < kCount; ++i) {                                                    \
        if (kDescriptions[i].meaning == meaning) total += words()[i];                       \
      }                                                                                     \
      return total;                                                                         \
    }                                                                                       \
  }

}  // namespace weir
