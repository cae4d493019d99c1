#include "base/describe.h"

#include <array>
#include <charconv>
#include <string_view>

namespace weir {
namespace {

std::string shown(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

std::string About::range() const {
  const bool bounded = most < field::kMany;
  std::string out;
  if (least > -field::kMany) out = above ? "above " + shown(least) : shown(least) + (bounded && !below ? "" : " or more");
  if (bounded && !below) out += out.empty() ? "at most " + shown(most) : (above ? ", at most " : " to ") + shown(most);
  if (bounded && below) out += (out.empty() ? "below " : ", below ") + shown(most);
  return out;
}

std::string Path::text() const {
  if (argument) {
    const std::string_view signature = name;
    size_t from = signature.find('(') + 1;
    for (size_t i = 0; i < place; ++i) from = signature.find(", ", from) + 2;
    const size_t until = signature.find_first_of(",)", from);
    return std::string(signature.substr(0, signature.find('('))) + "(" + std::string(signature.substr(from, until - from)) + ")";
  }
  const std::string own = name != nullptr ? name : std::to_string(place);
  return outer == nullptr ? own : outer->text() + "." + own;
}

void FieldCheck::check_number(double value, const About& about, const Path& path) {
  if (about.holds(value)) return;
  throw NativeError("INVALID_CONFIG", EINVAL, "", path.text() + ": " + shown(value) + " is out of its range: " + about.range(),
                    "keep the parameters within their ranges");
}

}  // namespace weir
