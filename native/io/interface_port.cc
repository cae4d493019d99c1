#include "io/interface_port.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/native_error.h"
#include "io/kernel_socket.h"
#include "io/network_namespace.h"
#include "wire/ethernet.h"

namespace weir {
namespace {

constexpr unsigned short kMacBytes = 6;

}  // namespace

int InterfacePort::packet_socket(int flags) const {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | flags, 0);
  if (fd >= 0) return fd;
  throw NativeError::from_errno("socket", "cannot open a packet socket on " + options_.interface,
                                "needs CAP_NET_RAW: run as root, or inside a user namespace");
}

void InterfacePort::look_up() {
  if (options_.lent_socket >= 0) return look_up_lent();
  asked_ = packet_socket();
  const unsigned index = ::if_nametoindex(options_.interface.c_str());
  if (index == 0) {
    throw NativeError::from_errno("if_nametoindex", "cannot open " + options_.interface,
                                  "no interface named " + options_.interface + " in this network namespace");
  }
  index_ = static_cast<int>(index);
  if (options_.lldp) ask_for(PACKET_MR_MULTICAST, kLldpAddress);
  if (std::exchange(takes_groups_, false)) take_groups();
  if (!options_.owner.empty()) claim_.emplace(index_, options_.interface, options_.owner);
}

// The socket knows its interface, and answers for its own namespace.
void InterfacePort::look_up_lent() {
  sockaddr_ll own{};
  socklen_t length = sizeof own;
  asked_ = ::fcntl(options_.lent_socket, F_DUPFD_CLOEXEC, 0);
  if (asked_ < 0 || ::getsockname(asked_, reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    throw NativeError::from_errno("getsockname", "cannot take the socket of " + options_.interface, "");
  }
  index_ = own.sll_ifindex;
}

ino_t InterfacePort::inside(const std::function<void()>& action) const {
  if (options_.namespace_path.empty()) return in_namespace(options_.namespace_fd, action), 0;
  const Descriptor space(::open(options_.namespace_path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (space.get() < 0 || ::fstat(space.get(), &status) != 0) {
    throw NativeError::from_errno("open", "cannot open the network namespace " + options_.namespace_path,
                                  "ip netns list shows named ones");
  }
  in_namespace(space.get(), action);
  return status.st_ino;
}

void InterfacePort::start(bool first) {
  try {
    namespace_inode_ = inside([&] {
      look_up();
      open(index_, first);
    });
  } catch (...) {
    shut();
    throw;
  }
}

void InterfacePort::shut() {
  close();
  if (asked_ >= 0) ::close(asked_);
  asked_ = -1;
  claim_.reset();
}

PortState InterfacePort::state() {
  if (asked_ < 0) return PortState::replaced;
  if (!options_.namespace_path.empty()) {
    // Our socket keeps a deleted namespace alive, but nobody else can reach it.
    struct stat status {};
    if (::stat(options_.namespace_path.c_str(), &status) != 0) return PortState::gone;
    if (status.st_ino != namespace_inode_) return PortState::replaced;
  }
  // The socket answers for its own namespace, wherever this thread is.
  ifreq request{};
  options_.interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(asked_, SIOCGIFINDEX, &request) != 0) return PortState::gone;
  if (request.ifr_ifindex != index_) return PortState::replaced;
  if (::ioctl(asked_, SIOCGIFFLAGS, &request) != 0) return PortState::gone;
  const int running = IFF_UP | IFF_RUNNING;
  return (request.ifr_flags & running) == running ? PortState::up : PortState::down;
}

uint32_t InterfacePort::mtu() {
  ifreq request{};
  options_.interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return ::ioctl(asked_, SIOCGIFMTU, &request) == 0 ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

uint32_t InterfacePort::receive_queues() const {
  const auto ask = [this](auto& question) {
    return ask_ethtool(asked_, options_.interface, {reinterpret_cast<uint8_t*>(&question), sizeof question});
  };
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (ask(channels)) return std::max(1u, channels.rx_count + channels.combined_count);
  // Drivers that cannot change their number, as vmxnet3's.
  ethtool_rxnfc rings{};
  rings.cmd = ETHTOOL_GRXRINGS;
  return ask(rings) ? std::max(1u, static_cast<uint32_t>(rings.data)) : 1;
}

bool InterfacePort::ask_for(int membership, uint64_t group) const {
  packet_mreq request{};
  request.mr_ifindex = index_;
  request.mr_type = static_cast<unsigned short>(membership);
  request.mr_alen = kMacBytes;
  store_be48(request.mr_address, group);
  return ::setsockopt(asked_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) == 0;
}

void InterfacePort::make_promiscuous() {
  if (ask_for(PACKET_MR_PROMISC)) return;
  throw NativeError::from_errno("setsockopt", "cannot make " + options_.interface + " promiscuous", "");
}

// The port takes all of them: an adapter knows few by their addresses, and takes all when there are more.
void InterfacePort::take_groups() {
  if (!takes_groups_ && !options_.promiscuous && asked_ >= 0) ask_for(PACKET_MR_ALLMULTI);
  takes_groups_ = true;
}

}  // namespace weir
