// Live cases that need XDP.
#pragma once

#include <functional>

#include "base/native_error.h"
#include "io/xdp_program.h"
#include "test/live_wire.h"

namespace weir::test {

// Like live(), but only where BPF programs may be attached too.
inline void live_xdp(const std::function<void(Wire&)>& body) {
  live([&](Wire& wire) {
    try {
      XdpProgram program({});
    } catch (const NativeError& error) {
      INFO(error.what(), "\n", error.hint);
      REQUIRE((error.code == "EPERM" || error.code == "ENOSYS"));
      std::printf("SKIPPED: XDP live test: %s\n", error.what());
      MESSAGE("SKIPPED: ", error.what());
      return;
    }
    body(wire);
  });
}

}  // namespace weir::test
