// Parameters as data. Beside each struct that TypeScript hands over, or is told, a function names its fields, once:
//
//   void describe(auto& v, Of<RedParameters> auto& p) {
//     v.type("NativeRed", "How a queue is marked.");
//     v("kmin", p.kmin, field::bytes("Up to this queue nothing is marked."));
//     v("pmax", p.pmax, field::fraction("Probability at kmax."));
//     v.rule(p.kmin <= p.kmax, "kmin must not be above kmax");
//   }
//
// Visitors make of that: the check of ranges (check(), below), reading from JavaScript and telling it (addon/decode.h,
// addon/encode.h), the types and texts of TypeScript (addon/description.h), and the layout of records in rings (base/layout.h). A
// visitor has
//   type(name, text)        of the struct, in TypeScript; first of all
//   defaults()              what the struct begins with is what users have who write nothing
//   base(part)              fields of another described struct, as if they were its own
//   (name, field, About)    a field: a number, bool, enum, text, described struct; or an array, vector or optional of these;
//                           or a variant of structs
//   rule(holds, text)       what must be true of several fields
// Enums are words, in their order: constexpr auto words_of(Enum) { return std::array{"qcn", "timer"}; } beside them; else
// numbers. Variants have words as well, one for each alternative: they are a field `name` with the word of the one that it is,
// and, if that is described, a field with this word for its name.
#pragma once

#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/native_error.h"

namespace weir {

template <class P, class T>
concept Of = (std::is_same_v<std::remove_const_t<P>, T>);

struct About {
  const char* text = "";
  const char* unit = "";
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false;     // `least` itself is out of range
  bool below = false;     // `most` itself is
  bool optional = false;  // may be absent in JavaScript: then it stays as it is

  constexpr bool holds(double value) const {
    return (above ? value > least : value >= least) && (below ? value < most : value <= most);
  }
  // Returns the range in words; empty: all numbers.
  std::string range() const;
};

namespace field {

inline constexpr double kMany = std::numeric_limits<double>::infinity();

constexpr About any(const char* text, const char* unit = "") { return {.text = text, .unit = unit}; }
constexpr About within(double least, double most, const char* text, const char* unit = "") {
  return {.text = text, .unit = unit, .least = least, .most = most};
}
// Units say what becomes of a value at a time scale: src/native/wall.ts multiplies "ns" by it, divides "bit/s" by it, and leaves
// "wall ns", which are of the host and not of the network, as they are.
constexpr About ns(const char* text, double least = 0) { return within(least, kMany, text, "ns"); }
constexpr About wall_ns(const char* text) { return within(0, kMany, text, "wall ns"); }
constexpr About bps(const char* text) { return within(0, kMany, text, "bit/s"); }
// The time scale itself, for what is not described in these units: 1 where times are as they are meant.
constexpr About scale(const char* text, double least = 0, double most = kMany) { return within(least, most, text, "scale"); }
constexpr About bytes(const char* text, double least = 0, double most = kMany) { return within(least, most, text, "bytes"); }
constexpr About fraction(const char* text) { return within(0, 1, text); }
constexpr About priority(const char* text) { return within(0, 7, text); }
template <std::derived_from<About> A>
constexpr A above(A about) {
  about.above = true;
  return about;
}
template <std::derived_from<About> A>
constexpr A below(A about) {
  about.below = true;
  return about;
}
template <std::derived_from<About> A>
constexpr A optional(A about) {
  about.optional = true;
  return about;
}

}  // namespace field

// A visitor may leave out any of these.
struct Visitor {
  void type(const char* /*name*/, const char* /*text*/) {}
  void defaults() {}
  void rule(bool /*holds*/, const char* /*text*/) {}
  void base(auto& /*part*/) {}
  void operator()(const char* /*name*/, auto& /*value*/, const About& /*about*/) {}
};

template <class T>
concept Described = requires(Visitor& v, T& p) { describe(v, p); };
template <class T>
concept Worded = std::is_enum_v<T> && requires(T value) { words_of(value); };
template <class T>
concept Number = (std::is_arithmetic_v<T> && !std::same_as<T, bool>) || (std::is_enum_v<T> && !Worded<T>);
template <class T>
concept Listed = (std::ranges::range<T> && !std::is_convertible_v<T, std::string>);
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
inline constexpr bool kIsVariant = false;
template <class... Alternatives>
inline constexpr bool kIsVariant<std::variant<Alternatives...>> = true;
template <class T>
concept Variant = kIsVariant<std::remove_const_t<T>>;

// Calls action(word, alternative) with the one that a variant is, if that is described.
void visit_described(Variant auto& value, const auto& action) {
  const auto words = words_of(value);
  std::visit(
      [&](auto& alternative) {
        if constexpr (Described<std::remove_cvref_t<decltype(alternative)>>) action(words[value.index()], alternative);
      },
      value);
}

// Numbers that JavaScript has in a typed array.
template <class T>
struct Column : std::vector<T> {
  using std::vector<T>::vector;
};

// Structs of which JavaScript has a typed array for each field, all of a length: words and bools are numbers there.
template <class T>
struct Columns : std::vector<T> {
  using std::vector<T>::vector;
};

// Names a place for messages: "worker.switches.0.name"; with an argument's place in a signature, "inject(port)".
struct Path {
  const Path* outer = nullptr;
  const char* name = nullptr;  // null: by `place`
  size_t place = 0;
  bool argument = false;  // number `place` of those that `name` has in parentheses
  std::string text() const;
};

// Throws INVALID_CONFIG for what is not within its range, and for a rule that does not hold.
class FieldCheck : public Visitor {
 public:
  explicit FieldCheck(const Path& path) : path_(path) {}
  void type(const char* name, const char* /*text*/) {
    if (path_.outer == nullptr && path_.name == nullptr) path_.name = name;
  }
  void base(const Described auto& part) { describe(*this, part); }
  void rule(bool holds, const char* text) const {
    if (!holds) require(false, path_.text().c_str(), text);
  }
  template <class T>
  void operator()(const char* name, const T& value, const About& about) const {
    if constexpr (Variant<T>) {
      visit_described(value, [&](const char* word, const auto& part) { check_value(part, about, {&path_, word}); });
    } else {
      check_value(value, about, {&path_, name});
    }
  }

 private:
  static void check_number(double value, const About& about, const Path& path);
  template <class T>
  static void check_value(const T& value, const About& about, const Path& path) {
    if constexpr (Described<T>) {
      FieldCheck inner(path);
      describe(inner, value);
    } else if constexpr (kIsOptional<T>) {
      if (value) check_value(*value, about, path);
    } else if constexpr (Listed<T>) {
      size_t place = 0;
      for (const auto& each : value) check_value(each, about, {&path, nullptr, place++});
    } else if constexpr (Number<T>) {
      check_number(static_cast<double>(value), about, path);
    }
  }
  Path path_;
};

// Throws NativeError INVALID_CONFIG for parameters that what they are for cannot run with. `path`: what messages call them.
void check(const Described auto& parameters, const char* path = nullptr) {
  FieldCheck fields({.name = path});
  describe(fields, parameters);
}

}  // namespace weir
