// What probes of interfaces of every kind find is tested live, through the addon: test/live/interface_probe.test.ts.
#include <doctest/doctest.h>
#include <net/if.h>

#include <string>

#include "base/native_error.h"
#include "io/interface_probe.h"

using namespace weir;

namespace {

std::string refusal(const std::string& name, const std::string& path) {
  try {
    probe_interface(name, path);
  } catch (const NativeError& e) {
    return e.code + " " + e.syscall;
  }
  return "";
}

}  // namespace

TEST_CASE("the loopback is known by any user, and has no driver") {
  const InterfaceProbe probe = probe_interface("lo", "");
  CHECK(probe.kind.empty());
  CHECK(probe.driver.empty());
  CHECK(probe.master.empty());
  CHECK((probe.flags & IFF_LOOPBACK) != 0);
  CHECK(probe.index == if_nametoindex("lo"));
  CHECK(probe.mtu >= 576);
  CHECK(probe.mac == 0);
  CHECK(probe.xdp_attached == 0);
  REQUIRE(probe.tx_checksum.has_value());
  CHECK(*probe.tx_checksum);
  CHECK_FALSE(probe.receive_ring.has_value());
  CHECK_FALSE(probe.speed.has_value());
}

TEST_CASE("what is not there is named") {
  CHECK(refusal("weir-none", "") == "ENODEV if_nametoindex");
  CHECK(refusal("a-name-that-is-far-too-long-for-an-interface", "") == "ENODEV if_nametoindex");
  CHECK(refusal("lo", "/nonexistent/namespace") == "ENOENT open");
}
