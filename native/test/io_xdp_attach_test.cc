// Live: the XDP program on a veth pair, in front of an AF_XDP socket.
#include <doctest/doctest.h>
#include <net/if.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/native_error.h"
#include "io/af_packet.h"
#include "io/bpf.h"
#include "io/xdp_program.h"
#include "test/live_xdp.h"
#include "test/xdp_receiver.h"

using namespace weir;
using namespace weir::test;

namespace {

int index_of(const char* interface) { return static_cast<int>(::if_nametoindex(interface)); }

XdpMetadata metadata_of(const XdpReceiver::Frame& frame) {
  XdpMetadata metadata;
  std::memcpy(&metadata, frame.before.data(), sizeof metadata);
  return metadata;
}

std::string attach_code(XdpProgram& program) {
  try {
    program.attach();
    return "";
  } catch (const NativeError& error) {
    CHECK_FALSE(error.hint.empty());
    return error.code;
  }
}

}  // namespace

TEST_CASE("xdp attach: frames reach the socket with time and bytes, in the driver and before the stack") {
  for (const bool generic : {false, true}) {
    live_xdp([generic](Wire& wire) {
      CAPTURE(generic);
      const PortClock clock = clock_now();
      XdpProgram program({.interface_index = index_of("near0"), .generic = generic, .stamp = true});
      XdpReceiver receiver(static_cast<uint32_t>(index_of("near0")));
      REQUIRE(receiver.error() == "");
      program.insert(0, receiver.descriptor());
      AfPacketPort far({.interface = "far0", .namespace_fd = wire.far}, clock);
      program.attach();
      const Time before = clock_time(CLOCK_MONOTONIC);
      constexpr uint32_t kSent = 20;
      for (uint32_t i = 0; i < kSent; ++i) REQUIRE(send(far, make_frame(i, 60 + 70 * i)) == 1);
      wait_until([&] { return receiver.frames().size() >= kSent; });
      Time last = before;
      REQUIRE(receiver.frames().size() == kSent);
      for (uint32_t i = 0; i < kSent; ++i) {
        CHECK(receiver.frames()[i].bytes == make_frame(i, 60 + 70 * i));
        const XdpMetadata metadata = metadata_of(receiver.frames()[i]);
        CHECK(metadata.mark == XdpMetadata::kMark);
        CHECK(static_cast<Time>(metadata.stamp) >= last);
        last = static_cast<Time>(metadata.stamp);
      }
      CHECK(last <= clock_time(CLOCK_MONOTONIC));
    });
  }
}

TEST_CASE("xdp attach: a tag that the sender left to its interface is put back, one in the frame stays there") {
  live_xdp([](Wire& wire) {
    XdpProgram program({.interface_index = index_of("near0"), .vlan = true});
    if (!program.has_vlan()) {
      REQUIRE(bpf_kernel_function("bpf_xdp_metadata_rx_vlan_tag") == 0);
      std::printf("SKIPPED: XDP live test: before Linux 6.8 no program sees tags beside the frame\n");
      return;
    }
    const PortClock clock = clock_now();
    XdpReceiver receiver(static_cast<uint32_t>(index_of("near0")));
    REQUIRE(receiver.error() == "");
    program.insert(0, receiver.descriptor());
    // The stack takes a tag out of the frame; a bridge passes on the two side by side. One that snoops on multicast would join
    // the group of all that do (224.0.0.106), and report that within a second.
    REQUIRE(wire.in_far({"link", "add", "far1", "type", "veth", "peer", "name", "far2"}));
    REQUIRE(wire.in_far({"link", "add", "bridge0", "type", "bridge", "mcast_snooping", "0"}));
    REQUIRE(wire.in_far({"link", "set", "far0", "master", "bridge0"}));
    REQUIRE(wire.in_far({"link", "set", "far1", "master", "bridge0"}));
    for (const char* name : {"far1", "far2", "bridge0"}) REQUIRE(wire.in_far({"link", "set", name, "up"}));
    AfPacketPort plain({.interface = "far0", .namespace_fd = wire.far}, clock);
    AfPacketPort bridged({.interface = "far2", .namespace_fd = wire.far}, clock);
    program.attach();
    const std::array<std::vector<uint8_t>, 4> sent = {make_frame(0, 200, 0x6005), make_frame(1), make_frame(2, 200, 0x6005),
                                                      make_frame(3, 200, 6, 0x88a8)};
    for (size_t i = 0; i < sent.size(); ++i) {
      REQUIRE(send(i % 3 == 0 ? bridged : plain, sent[i]) == 1);
      wait_until([&] { return receiver.frames().size() > i; });
    }
    REQUIRE(receiver.frames().size() == 4);
    for (size_t i = 0; i < sent.size(); ++i) CHECK(receiver.frames()[i].bytes == sent[i]);
  });
}

TEST_CASE("xdp attach: an endpoint leaves what is not its own to the stack") {
  for (const bool generic : {false, true}) {
    live_xdp([generic](Wire& wire) {
      CAPTURE(generic);
      const PortClock clock = clock_now();
      XdpProgram program(
          {.interface_index = index_of("near0"), .generic = generic, .stamp = true, .vlan = true, .roce_only = true});
      CHECK(program.has_vlan() == (!generic && bpf_kernel_function("bpf_xdp_metadata_rx_vlan_tag") != 0));
      XdpReceiver receiver(static_cast<uint32_t>(index_of("near0")));
      REQUIRE(receiver.error() == "");
      program.insert(0, receiver.descriptor());
      AfPacketPort far({.interface = "far0", .namespace_fd = wire.far}, clock);
      AfPacketPort stack({.interface = "near0"}, clock);
      program.attach();
      std::vector<uint8_t> pause(60);
      pause[12] = 0x88;
      pause[13] = 0x08;
      REQUIRE(send(far, make_frame(1)) == 1);
      REQUIRE(send(far, pause) == 1);
      REQUIRE(send(far, make_frame(2)) == 1);
      std::array<RxFrame, 8> frames;
      REQUIRE(receive_all(stack, frames, 2) == 2);
      CHECK(same(frames[0], make_frame(1)));
      CHECK(same(frames[1], make_frame(2)));
      wait_until([&] { return !receiver.frames().empty(); });
      REQUIRE(receiver.frames().size() == 1);
      CHECK(receiver.frames()[0].bytes == pause);
    });
  }
}

TEST_CASE("xdp attach: one program at a time, and nothing is left of one that ended, however it did") {
  for (const bool generic : {false, true}) {
    live_xdp([generic](Wire& wire) {
      CAPTURE(generic);
      const XdpProgramOptions options{.interface_index = index_of("near0"), .generic = generic};
      XdpProgram second(options);
      {
        XdpProgram first(options);
        first.attach();
        CHECK(attach_code(second) == "EBUSY");
      }
      CHECK(attach_code(second) == "");
      XdpProgram elsewhere({.interface_index = 12345, .generic = generic});
      CHECK(attach_code(elsewhere) != "");
      int ready[2];
      REQUIRE(::pipe(ready) == 0);
      const pid_t child = ::fork();
      if (child == 0) {
        if (::setns(wire.far, CLONE_NEWNET) != 0) ::_exit(1);
        try {
          XdpProgram program({.interface_index = index_of("far0"), .generic = generic});
          program.attach();
          [[maybe_unused]] const ssize_t told = ::write(ready[1], "!", 1);
          ::pause();
        } catch (const NativeError&) {
        }
        ::_exit(1);
      }
      ::close(ready[1]);
      char byte = 0;
      CHECK(::read(ready[0], &byte, 1) == 1);
      ::close(ready[0]);
      REQUIRE(::setns(wire.far, CLONE_NEWNET) == 0);
      XdpProgram heir({.interface_index = index_of("far0"), .generic = generic});
      CHECK(attach_code(heir) == "EBUSY");
      REQUIRE(::kill(child, SIGKILL) == 0);
      REQUIRE(::waitpid(child, nullptr, 0) == child);
      std::string code;
      wait_until([&] { return (code = attach_code(heir)) != "EBUSY"; });  // the kernel tears links down in its own time
      CHECK(code == "");
      REQUIRE(::setns(wire.near, CLONE_NEWNET) == 0);
    });
  }
}

TEST_CASE("xdp attach: a veth whose peer's MTU is larger than one buffer takes only programs for several") {
  live_xdp([](Wire& wire) {
    REQUIRE(wire.in_far({"link", "set", "far0", "mtu", "9000"}));
    XdpProgram single({.interface_index = index_of("near0")});
    CHECK(attach_code(single) == "ERANGE");
    XdpProgram several({.interface_index = index_of("near0"), .frags = true});
    CHECK(attach_code(several) == "");
  });
}
