// Live cases that need XDP.
#pragma once

#include <functional>

#include "base/native_error.h"
#include "io/xdp_program.h"
#include "test/live_wire.h"

namespace weir::test {

// Whether programs may be loaded at all; says so if not.
inline bool xdp_permitted() {
  try {
    XdpProgram program({});
    return true;
  } catch (const NativeError& error) {
    INFO(error.what(), "\n", error.hint);
    REQUIRE((error.code == "EPERM" || error.code == "ENOSYS"));
    std::printf("SKIPPED: XDP test: %s\n", error.what());
    MESSAGE("SKIPPED: ", error.what());
    return false;
  }
}

// Like live(), but only where BPF programs may be attached too.
inline void live_xdp(const std::function<void(Wire&)>& body) {
  live([&](Wire& wire) {
    if (xdp_permitted()) body(wire);
  });
}

}  // namespace weir::test
