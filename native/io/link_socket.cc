#include "io/link_socket.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <ctime>

#include "base/native_error.h"
#include "base/types.h"

namespace weir {
namespace {

Time read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return Time{now.tv_sec} * kSecond + now.tv_nsec;
}

// Arrival by the kernel's stamp, which is of the wall clock.
Time arrival(msghdr& message, Time now) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec stamp{};
    std::memcpy(&stamp, CMSG_DATA(part), sizeof stamp);
    const Time waited = read_clock(CLOCK_REALTIME) - (Time{stamp.tv_sec} * kSecond + stamp.tv_nsec);
    // Somebody may have set that clock meanwhile.
    return waited >= 0 && waited < kSecond ? now - waited : now;
  }
  return now;
}

}  // namespace

int open_link_socket(const std::string& interface, uint16_t ethertype) {
  const unsigned index = ::if_nametoindex(interface.c_str());
  if (index == 0) {
    throw NativeError::from_errno("if_nametoindex", "cannot open " + interface,
                                  "no interface named " + interface + " in this network namespace");
  }
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    throw NativeError::from_errno("socket", "cannot open a packet socket on " + interface,
                                  "needs CAP_NET_RAW: run as root, or inside a user namespace");
  }
  constexpr int kOn = 1;
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ethertype);
  address.sll_ifindex = static_cast<int>(index);
  if (::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &kOn, sizeof kOn) == 0 &&
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return fd;
  }
  const NativeError error = NativeError::from_errno("bind", "cannot bind to " + interface, "");
  ::close(fd);
  throw error;
}

bool read_link(int socket, std::span<uint8_t> data, std::span<double> words) {
  if (words.size() < 2) throw NativeError("INVALID_CONFIG", 0, "", "a length and a time need two words", "");
  iovec vector{data.data(), data.size()};
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(timespec))];
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (length < 0) return false;
  words[0] = static_cast<double>(length);
  words[1] = static_cast<double>(arrival(message, read_clock(CLOCK_MONOTONIC)));
  return true;
}

}  // namespace weir
