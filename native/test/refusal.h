// Helpers by which tests ask for a refusal.
#pragma once

#include <functional>
#include <string>

#include "base/native_error.h"

namespace weir::test {

// The code of the NativeError that `action` throws; empty if it throws none.
inline std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const NativeError& e) {
    return e.code;
  }
  return "";
}

}  // namespace weir::test
