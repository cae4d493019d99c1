// News of links, of one network namespace and of another.
#include <doctest/doctest.h>
#include <poll.h>

#include "io/link_news.h"
#include "io/network_namespace.h"
#include "test/live_wire.h"

using namespace weir;
using namespace weir::test;

TEST_CASE("link news: of each namespace that ports are in, by one socket, and of none that is not there") {
  live([](Wire& wire) {
    LinkNews news;
    news.listen({.interface = "near0"});
    news.listen({.interface = "near0"});
    news.listen({.interface = "away0", .namespace_path = "/nonexistent"});
    CHECK(news.namespaces() == 1);
    REQUIRE(ip({"link", "set", "near0", "mtu", "1400"}));
    bool told = false;
    wait_until([&] { return told = news.take(); });
    CHECK(told);
    LinkNews far;
    far.listen({.interface = "far0", .namespace_fd = wire.far});
    REQUIRE(far.namespaces() == 1);
    in_namespace(wire.far, [&] { REQUIRE(ip({"link", "set", "far0", "mtu", "1400"})); });
    wait_until([&] { return told = far.take(); });
    CHECK(told);
    // One descriptor tells of all.
    news.listen({.interface = "far0", .namespace_fd = wire.far});
    CHECK(news.namespaces() == 2);
    while (news.take()) {
    }
    pollfd waits{news.descriptor(), POLLIN, 0};
    CHECK(::poll(&waits, 1, 0) == 0);
    in_namespace(wire.far, [&] { REQUIRE(ip({"link", "set", "far0", "mtu", "1300"})); });
    CHECK(::poll(&waits, 1, 10'000) == 1);
    CHECK(news.take());
    // More than the socket has room for is news, too.
    for (int i = 0; i < 2'000; ++i) {
      ifreq request{};
      std::strcpy(request.ifr_name, "near0");
      request.ifr_mtu = 1'300 + i % 2;
      const Descriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
      REQUIRE(::ioctl(socket.get(), SIOCSIFMTU, &request) == 0);
    }
    CHECK(news.take());
    CHECK_FALSE(news.take());
  });
}
