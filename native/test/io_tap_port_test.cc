// A tap whose cable comes and goes.
#include <doctest/doctest.h>
#include <linux/if_tun.h>

#include "io/tap_port.h"
#include "test/live_wire.h"

using namespace weir;
using namespace weir::test;

namespace {

bool has_carrier(const char* name) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, name);
  REQUIRE(::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0);
  return (request.ifr_flags & IFF_RUNNING) != 0;
}

}  // namespace

TEST_CASE("tap port: of carriers that change quickly the last holds, and the port may go in the midst of it") {
  live([](Wire&) {
    const PortClock clock = clock_now();
    for (const bool last : {false, true}) {
      TapPort port({.interface = "tap0"}, clock);
      REQUIRE(ip({"link", "set", "tap0", "up"}));
      for (int i = 0; i < 100; ++i) port.set_carrier((i % 2 != 0) == last);
      bool seen = !last;
      wait_until([&] { return (seen = has_carrier("tap0")) == last; });
      CHECK(seen == last);
    }
    for (int i = 0; i < 20; ++i) {
      TapPort port({.interface = "tap0"}, clock);
      port.set_carrier(false);
      if (i % 2 != 0) port.set_carrier(true);
    }
  });
}
