#include "link/impairment.h"

#include <string>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr Time kMaxHold = 3600 * kSecond;

void refuse(const std::string& message, const std::string& hint) {
  throw NativeError("INVALID_CONFIG", 0, "", "impairment: " + message, hint);
}

}  // namespace

void check(const ImpairmentParameters& p) {
  const auto probability = [](const char* name, double value) {
    if (!(value >= 0 && value <= 1)) refuse(std::string(name) + " is not a probability", "must be between 0 and 1");
  };
  const auto time = [](const char* name, Time value) {
    if (value < 0 || value > kMaxHold) refuse(std::string(name) + " is out of range", "must be between 0 and 1 hour");
  };
  probability("loss", p.loss);
  probability("duplicate", p.duplicate);
  probability("corrupt", p.corrupt);
  probability("reorder", p.reorder);
  time("delay", p.delay);
  time("jitter", p.jitter);
  time("reorder_delay", p.reorder_delay);
  if (p.reorder > 0 && p.reorder_delay == 0) refuse("reorder has no effect", "give a reorder_delay");
}

}  // namespace weir
