#include <doctest/doctest.h>
#include <net/if.h>
#include <signal.h>
#include <sys/wait.h>

#include <optional>

#include "base/native_error.h"
#include "io/af_packet.h"
#include "io/interface_claim.h"
#include "test/live_wire.h"

using namespace weir;
using namespace weir::test;

namespace {

// The message of a refusal; empty if there was none.
template <class Action>
std::string refusal_of(const Action& action) {
  try {
    action();
  } catch (const NativeError& error) {
    CHECK(error.code == "INTERFACE_IN_USE");
    CHECK_FALSE(error.hint.empty());
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("interface claim: a second device on an interface is refused, and told of the first, until that is gone") {
  live([](Wire&) {
    const int index = static_cast<int>(::if_nametoindex("near0"));
    std::optional<InterfaceClaim> first(std::in_place, index, "near0", "sw 0");
    const std::string refused = refusal_of([&] { InterfaceClaim second(index, "near0", "sw1"); });
    CHECK(refused.find("near0: in use by sw_0 (pid " + std::to_string(::getpid()) + ")") == 0);
    // A name is not compared by its beginning: interface 1 is not 12.
    CHECK(refusal_of([&] { InterfaceClaim other(index * 10, "other", "sw1"); }).empty());
    first.reset();
    CHECK(refusal_of([&] { InterfaceClaim second(index, "near0", "sw1"); }).empty());
  });
}

TEST_CASE("interface claim: interfaces of other namespaces are others, whatever their index, and one is found from anywhere") {
  live([](Wire& wire) {
    PortClock clock = clock_now();
    const int near = static_cast<int>(::if_nametoindex("near0"));
    const InterfaceClaim here(near, "near0", "sw0");
    in_namespace(wire.far, [&] { CHECK(refusal_of([&] { InterfaceClaim there(near, "far0", "sw1"); }).empty()); });
    const AfPacketPort port({.interface = "far0", .namespace_fd = wire.far, .owner = "sw0"}, clock);
    const std::string refused =
        refusal_of([&] { AfPacketPort again({.interface = "far0", .namespace_fd = wire.far, .owner = "sw1"}, clock); });
    CHECK(refused.find("far0: in use by sw0 (pid ") == 0);
    CHECK(refusal_of([&] { AfPacketPort looks({.interface = "far0", .namespace_fd = wire.far}, clock); }).empty());
  });
}

TEST_CASE("interface claim: one whose process was killed is nobody's") {
  live([](Wire&) {
    const int index = static_cast<int>(::if_nametoindex("near0"));
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const InterfaceClaim claim(index, "near0", "sw0");
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    const std::string refused = refusal_of([&] { InterfaceClaim second(index, "near0", "sw1"); });
    CHECK(refused.find("sw0 (pid " + std::to_string(child) + ")") != std::string::npos);
    ::kill(child, SIGKILL);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK(refusal_of([&] { InterfaceClaim second(index, "near0", "sw1"); }).empty());
    ::close(ready[0]);
    ::close(ready[1]);
  });
}

TEST_CASE("interface claim: an interface that was made anew under its name is claimed again") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort port({.interface = "near0", .owner = "sw0"}, clock);
    REQUIRE(ip({"link", "del", "near0"}));
    CHECK(port.state() == PortState::gone);
    REQUIRE(ip({"link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", wire.path_of(wire.far)}));
    REQUIRE(ip({"link", "set", "near0", "up"}));
    CHECK(port.state() == PortState::replaced);
    port.reopen();
    CHECK_FALSE(refusal_of([&] { AfPacketPort second({.interface = "near0", .owner = "sw1"}, clock); }).empty());
  });
}
