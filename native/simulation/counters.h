// Counters of a simulated link, per direction: the single definition of their names, units and help texts.
#pragma once

#include "base/counters.h"

namespace weir {

#define WEIR_LINK_COUNTERS(X)                                                                                  \
  X(frames, "frames", none, "Frames put on the link, MAC control included")                                    \
  X(wire_bytes, "bytes", none, "What they took of the link: frames, padding, FCS, preamble and gap")           \
  X(lost, "frames", fault, "Frames dropped on purpose")                                                        \
  X(corrupted, "frames", fault, "Frames with a bit flipped on purpose, which the receiving end's FCS refuses") \
  X(duplicated, "frames", duplicate, "Frames that arrive twice on purpose")                                    \
  X(reordered, "frames", none, "Frames held back on purpose so that others overtake")                          \
  X(changed, "frames", none, "Frames marked, or made NAKs, on purpose")                                        \
  X(link_down, "frames", down, "Frames that were on the link when it failed, or sent into it while it was down")

WEIR_DEFINE_COUNTERS(LinkCounters, WEIR_LINK_COUNTERS);

}  // namespace weir
