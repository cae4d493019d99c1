// A program's own NIC, of what the daemon has lent it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "engine/lent_nic.h"
#include "io/af_packet.h"
#include "test/lent_paths_bed.h"

namespace weir::test {
namespace {

TEST_CASE("lent NIC: a program's NIC needs nothing of the daemon's but its two descriptors") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    PortOptions options;
    options.interface = "far0";
    options.namespace_fd = wire.far;
    options.roce_only = true;
    AfPacketPort port(options, clock);
    LentNicConfig config;
    config.nic = LentPathsBed::config(wire, nic_parameters().congestion).nics[1];
    // Numbers and paths of the daemon's process mean something else in the program's, or nothing.
    config.nic.port.namespace_fd = 1 << 20;
    config.nic.port.namespace_path = "/proc/self/no-such-namespace";
    config.nic.port.owner = "nic";
    const std::unique_ptr<LentPath> path = LentPath::lend(port, 9, config);
    REQUIRE(path != nullptr);
    LentNic nic(::dup(path->config()), ::dup(path->socket()));
    nic.turn();
    CHECK(nic.sent_all());
  });
}

TEST_CASE("lent NIC: descriptors that are no path are refused, and closed") {
  const int config = ::memfd_create("weir-test", MFD_CLOEXEC);
  const int socket = ::memfd_create("weir-test", MFD_CLOEXEC);
  CHECK_THROWS_AS(LentNic(config, socket), NativeError);
  CHECK(::fcntl(config, F_GETFD) == -1);
  CHECK(::fcntl(socket, F_GETFD) == -1);
}

}  // namespace
}  // namespace weir::test
