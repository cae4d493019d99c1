// Live cases: each runs in network namespaces of its own, made by the thread that runs it and gone with it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/packet_port.h"

namespace weir::test {

inline constexpr uint32_t kFrameBytes = 1106;

inline Time clock_time(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return Time{t.tv_sec} * kSecond + t.tv_nsec;
}

inline PortClock clock_now() {
  PortClock clock;
  clock.now = clock_time(CLOCK_MONOTONIC);
  clock.realtime_offset = clock.now - clock_time(CLOCK_REALTIME);
  clock.read = [] { return clock_time(CLOCK_MONOTONIC); };
  return clock;
}

// Runs in the network namespace of the calling thread; no shell, so that it also works without one in the path.
inline bool run(const char* program, const std::vector<std::string>& words) {
  std::vector<char*> argv{const_cast<char*>(program)};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execvp(program, argv.data());
    ::_exit(127);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}
inline bool ip(const std::vector<std::string>& words) { return run("ip", words); }

// An interface of the thread's namespace without checksum offload has no segmentation offload either: the kernel does both before
// it transmits.
inline bool no_offloads(const char* interface) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  ethtool_value value{ETHTOOL_STXCSUM, 0};
  request.ifr_data = reinterpret_cast<char*>(&value);
  const bool done = ::ioctl(fd, SIOCETHTOOL, &request) == 0;
  ::close(fd);
  return done;
}

// Two fresh namespaces joined by a veth pair near0 -- far0, both up, without IPv6 so that the kernel itself sends nothing.
struct Wire {
  int near = -1;  // holds near0; also the namespace of the thread
  int far = -1;   // holds far0

  // Empty, or why it cannot be made here.
  std::string make() {
    if (::unshare(CLONE_NEWNET) != 0) return std::string("unshare(CLONE_NEWNET): ") + std::strerror(errno);
    far = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (!quiet()) return "cannot switch IPv6 off";
    if (::unshare(CLONE_NEWNET) != 0) return std::string("unshare(CLONE_NEWNET): ") + std::strerror(errno);
    near = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (!quiet()) return "cannot switch IPv6 off";
    if (!ip({"link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", path_of(far)})) {
      return "`ip link add ... type veth` failed";
    }
    if (!ip({"link", "set", "near0", "up"}) || !in_far({"link", "set", "far0", "up"})) return "`ip link set up` failed";
    return "";
  }
  bool in_far(const std::vector<std::string>& words) const {
    if (::setns(far, CLONE_NEWNET) != 0) return false;
    const bool done = ip(words);
    return ::setns(near, CLONE_NEWNET) == 0 && done;
  }
  // Path of a namespace, as a program that is started has it.
  std::string path_of(int fd) {
    inherited_.push_back(::dup(fd));  // without close-on-exec
    return "/proc/self/fd/" + std::to_string(inherited_.back());
  }
  ~Wire() {
    ::close(near);
    ::close(far);
    for (const int fd : inherited_) ::close(fd);
  }

 private:
  static bool quiet() {
    const int fd = ::open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);
    if (fd < 0) return errno == ENOENT;
    const bool written = ::write(fd, "1", 1) == 1;
    ::close(fd);
    return written;
  }
  std::vector<int> inherited_;
};

// Runs the case on a thread of its own, whose namespaces end with it.
inline void live(const std::function<void(Wire&)>& body) {
  std::thread thread([&] {
    Wire wire;
    const std::string reason = wire.make();
    if (!reason.empty()) {
      std::printf("SKIPPED: live test: %s\n", reason.c_str());
      MESSAGE("SKIPPED: ", reason);
      return;
    }
    body(wire);
  });
  thread.join();
}

inline std::vector<uint8_t> make_frame(uint32_t number, size_t length = kFrameBytes, int vlan_tci = -1, uint16_t tpid = 0x8100) {
  static constexpr uint8_t kAddresses[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
  std::vector<uint8_t> bytes(kAddresses, kAddresses + 12);
  if (vlan_tci >= 0) {
    for (const int half : {int{tpid}, vlan_tci}) {
      bytes.push_back(static_cast<uint8_t>(half >> 8));
      bytes.push_back(static_cast<uint8_t>(half));
    }
  }
  bytes.push_back(0x88);
  bytes.push_back(0xb5);  // IEEE 802 local experimental
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(number >> shift));
  while (bytes.size() < length) bytes.push_back(static_cast<uint8_t>(bytes.size() * 7 + number));
  return bytes;
}

inline size_t send(PacketPort& port, const std::vector<uint8_t>& bytes) {
  const TxFrame frame{bytes.data(), static_cast<uint32_t>(bytes.size())};
  return port.transmit({&frame, 1}).sent;
}

inline bool same(const RxFrame& frame, const std::vector<uint8_t>& bytes) {
  return frame.length == bytes.size() && std::memcmp(frame.data, bytes.data(), bytes.size()) == 0;
}

// Waits until `done`, at most 2 s: the kernel leaves delivery to its softirq thread when the machine is busy.
inline void wait_until(const std::function<bool()>& done) {
  const Time give_up = clock_time(CLOCK_MONOTONIC) + 2 * kSecond;
  while (!done() && clock_time(CLOCK_MONOTONIC) < give_up) ::sched_yield();
}

// Returns how many frames arrive; waits for `expected`, then takes what else there is.
inline size_t receive_all(PacketPort& port, std::span<RxFrame> frames, size_t expected) {
  size_t count = 0;
  wait_until([&] { return (count += port.receive(frames.subspan(count))) >= expected; });
  return count + port.receive(frames.subspan(count));
}

}  // namespace weir::test
