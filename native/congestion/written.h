// Parameters of congestion control as users write them, beside the fields that an algorithm has of them:
//
//   v("swift_hop_scaling", p.hop_scaling, time("Target delay of each hop.", 0, 10 * kSecond));
//
// A field has the user's name. What schemas, messages, `weir tune`, the reference and pages say of a parameter is said here
// alone: scripts/generate-native.ts makes src/congestion/described.ts of it. Profiles and the sources of values are in
// src/congestion.
//
// A user's range is of the scenario's own units. The core checks a wider one, that which it can run with, because times are
// longer and rates lower at a time scale: by default 0 or more, of parts 0 to 1. checked() and field::above() change that one.
#pragma once

#include "base/describe.h"
#include "base/types.h"

namespace weir {

struct Written : About {
  const char* kind = "";           // of src/congestion/parameter.ts
  const char* name = nullptr;      // null: the field's
  const char* spelling = nullptr;  // another name that is understood; null: none
  const char* meaning = "";        // the field's text, unless that says what has become of it
  const char* plain = "";          // unit of a number that is written without one
  // Both are allowed; in the core's unit, of numbers in `plain`. Of what is true or false the highest is below the lowest.
  double lowest = 0;
  double highest = -1;
  bool whole = true;  // nothing between whole numbers
};

namespace written {

constexpr Written of(const char* kind, const About& core, const char* plain, double lowest, double highest, bool whole = true) {
  Written out{core};
  out.kind = kind;
  out.meaning = core.text;
  out.plain = plain;
  out.lowest = lowest;
  out.highest = highest;
  out.whole = whole;
  return out;
}

constexpr Written time(const char* text, Time lowest, Time highest, const char* plain = "us") {
  return of("time", field::ns(text), plain, static_cast<double>(lowest), static_cast<double>(highest));
}
constexpr Written size(const char* text, double lowest, double highest) {
  return of("size", field::bytes(text), "bytes", lowest, highest);
}
// Users may write a part of the line rate as well.
constexpr Written rate(const char* text, double lowest) { return of("rate", field::bps(text), "Mb/s", lowest, 10e12); }
constexpr Written percent(const char* text, double lowest = 0) {
  return of("fraction", field::fraction(text), "%", lowest, 1, false);
}
constexpr Written whole(const char* text, const char* unit, double lowest, double highest) {
  return of("number", field::within(0, field::kMany, text, unit), unit, lowest, highest);
}
constexpr Written real(const char* text, const char* unit, double lowest, double highest) {
  return of("number", field::within(0, field::kMany, text, unit), unit, lowest, highest, false);
}
constexpr Written flag(const char* text) { return of("flag", field::any(text), "", 0, -1); }

// The core checks this range.
constexpr Written checked(double least, double most, Written about) {
  about.least = least;
  about.most = most;
  return about;
}

// mlx5 spells it in another way, too: in debugfs, cc_params/.
constexpr Written mlx5(const char* spelling, Written about) {
  about.spelling = spelling;
  return about;
}

// Users write it by another name than the field's; `core` is what has become of it there.
constexpr Written as(const char* name, Written about) {
  about.name = name;
  return about;
}
constexpr Written as(const char* name, Written about, const About& core) {
  static_cast<About&>(about) = core;
  return as(name, about);
}

}  // namespace written
}  // namespace weir
