// Counters of a simulated link, per direction: the single definition of their names, units and help texts.
#pragma once

#include "base/counters.h"

namespace weir {

#define WEIR_LINK_COUNTERS(X)                                                                           \
  X(frames, "frames", "Frames put on the link, MAC control included")                                   \
  X(wire_bytes, "bytes", "What they took of the link: frames, padding, FCS, preamble and gap")          \
  X(lost, "frames", "Frames dropped on purpose")                                                        \
  X(corrupted, "frames", "Frames with a bit flipped on purpose, which the receiving end's FCS refuses") \
  X(duplicated, "frames", "Frames that arrive twice on purpose")                                        \
  X(reordered, "frames", "Frames held back on purpose so that others overtake")                         \
  X(link_down, "frames", "Frames that were on the link when it failed, or sent into it while it was down")

WEIR_DEFINE_COUNTERS(LinkCounters, WEIR_LINK_COUNTERS);

}  // namespace weir
