// Programs with paths of their own, on NICs at both ends of a veth pair: a program's frames do not pass its daemon's NIC.
#pragma once

#include <doctest/doctest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>

#include "engine/open_port.h"
#include "io/network_namespace.h"
#include "test/live_wire.h"
#include "test/programs_bed.h"
#include "test/test_program.h"

namespace weir::test {

// The kernel says a while after both ends are up that they run.
inline bool runs(int namespace_fd, const char* interface) {
  int fd = -1;
  in_namespace(namespace_fd, [&] { fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  const Descriptor socket(fd);
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  return ::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

struct LentPathsBed : ProgramsBed {
  explicit LentPathsBed(const Wire& wire, const CongestionParameters& congestion = nic_parameters().congestion)
      : ProgramsBed(running(wire, congestion), open_packet_port, true) {}
  // Programs hear of no change of the link.
  static WorkerConfig running(const Wire& wire, const CongestionParameters& congestion) {
    REQUIRE(eventually([&] { return runs(wire.near, "near0") && runs(wire.far, "far0"); }));
    return config(wire, congestion);
  }
  static WorkerConfig config(const Wire& wire, const CongestionParameters& congestion) {
    WorkerConfig config = ProgramsBed::config(0, congestion);
    for (const int i : {0, 1}) {
      NicDeviceConfig& nic = config.nics[i];
      nic.port.interface = i == 0 ? "near0" : "far0";
      nic.port.namespace_fd = i == 0 ? wire.near : wire.far;
      nic.port.roce_only = true;
      nic.port.offloads = true;
      nic.port.join = 64;
      nic.parameters.verbs_queue_pairs = kLentBlocks << kLentBlockShift;
    }
    return config;
  }
  // Calls action(device) between two turns, for one of the NICs.
  void at(size_t nic, const std::function<void(NicDevice&)>& action) {
    turns.between([&](auto& nics) { action(*nics[nic]); });
  }
  // Frames that a daemon's NIC has taken from its own port.
  uint64_t came_by_daemon(size_t nic) {
    uint64_t count = 0;
    at(nic, [&](NicDevice& device) { count = device.ports().front().received(); });
    return count;
  }
};

inline bool is_direct(ibv_qp* qp) { return pair_of(qp).direct; }

}  // namespace weir::test
