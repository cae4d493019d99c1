#include "io/stack_frames.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/native_error.h"
#include "io/packet_filter.h"

namespace weir {

StackFrames::StackFrames(int socket, const PortOptions& options, int interface_index) : socket_(socket) {
  constexpr int kOn = 1, kLeast = 1;
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = interface_index;
  if (options.roce_only) accept_roce_only(socket_.get(), options, UINT16_MAX, true);
  // What has no room in the socket counts, too, and so it needs none.
  if (::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &kLeast, sizeof kLeast) != 0 ||
      ::setsockopt(socket_.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &kOn, sizeof kOn) != 0 ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw NativeError::from_errno("socket", "cannot count the frames that pass AF_XDP by on " + options.interface,
                                  "backend: af_packet does without");
  }
}

uint64_t StackFrames::count() {
  tpacket_stats statistics{};
  socklen_t size = sizeof statistics;
  // The kernel's counters start again at every read.
  if (::getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0) count_ += statistics.tp_packets;
  // Frames that stay in the socket would keep memory of a driver from it: there is room for one or two. An error is told once.
  for (int i = 0; i < 8; ++i) {
    if (::recv(socket_.get(), nullptr, 0, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != ENETDOWN) break;
  }
  return count_;
}

}  // namespace weir
