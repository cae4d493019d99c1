#include "io/tap_port.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/native_error.h"
#include "io/kernel_socket.h"
#include "io/network_namespace.h"

namespace weir {
namespace {

// Makes the tap in the calling thread's namespace, which is that of the descriptor and so of the tap.
int make_tap(const std::string& name) {
  const int fd = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) throw NativeError::from_errno("open", "cannot open /dev/net/tun", "modprobe tun; needs access to that device");
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  // One that is there is somebody else's.
  request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_TUN_EXCL);
  if (::ioctl(fd, TUNSETIFF, &request) == 0) return fd;
  const NativeError error =
      NativeError::from_errno("ioctl", "cannot make the tap " + name,
                              errno == EBUSY ? "there is an interface of that name: name another network namespace"
                                             : "needs CAP_NET_ADMIN over the network namespace: run as root");
  ::close(fd);
  throw error;
}

int open_tap(const PortOptions& options) {
  require(!options.interface.empty() && options.interface.size() < IFNAMSIZ, "tap",
          "the name of an interface has 1 to 15 characters");
  int fd = -1;
  in_namespace(options.namespace_path, [&] { fd = make_tap(options.interface); });
  return fd;
}

}  // namespace

TapPort::TapPort(const PortOptions& options, const PortClock& clock)
    : name_(options.interface),
      tap_(open_tap(options)),
      stack_(open_socket(AF_INET, SOCK_DGRAM, 0, options.namespace_path)),
      clock_(clock),
      slot_bytes_(kOffloadHeader + options.slot_bytes),
      slots_(kSlots * slot_bytes_) {}

size_t TapPort::receive(std::span<RxFrame> frames) {
  size_t count = 0;
  while (!gone_ && count < frames.size() && lent_ < kSlots) {
    uint8_t* const slot = &slots_[next_ * slot_bytes_];
    const ssize_t got = ::read(tap_.get(), slot, slot_bytes_);
    if (got < 0) {
      gone_ = errno != EAGAIN && errno != EINTR;
      break;
    }
    if (static_cast<size_t>(got) <= kOffloadHeader) continue;
    frames[count++] = {.data = slot + kOffloadHeader,
                       .length = static_cast<uint32_t>(static_cast<size_t>(got) - kOffloadHeader),
                       .stamp = clock_.now,
                       .offload = load_offload(slot)};
    next_ = (next_ + 1) % kSlots;
    ++lent_;
  }
  return count;
}

Transmitted TapPort::transmit(std::span<const TxFrame> frames) {
  Transmitted result;
  for (const TxFrame& frame : frames) {
    std::array<uint8_t, kOffloadHeader> header{};
    store_offload(header.data(), frame.offload);
    const iovec parts[] = {{header.data(), header.size()}, {const_cast<uint8_t*>(frame.data), frame.length}};
    if (gone_ || ::writev(tap_.get(), parts, 2) < 0) {
      ++losses_.transmit_errors;
      result.refused = true;
      break;
    }
    ++result.sent;
  }
  return result;
}

TapPort::~TapPort() {
  ending_ = true;
  notify();
}

void TapPort::set_carrier(bool carrier) {
  carrier_ = carrier;
  notify();
  if (!teller_.joinable()) teller_ = std::jthread([this] { tell(); });
}

void TapPort::notify() {
  ++changes_;
  changes_.notify_one();
}

void TapPort::tell() {
  for (uint32_t told = 0; !ending_; changes_.wait(told)) {
    told = changes_;
    tell_carrier(carrier_);
  }
}

// Linux before 5.0 has no such request: the carrier stays. Linux tells of one interface in a second that loses its carrier, all
// namespaces together; a question for the state of one has it told at once, since Linux 6.8.
void TapPort::tell_carrier(bool carrier) const {
  int value = carrier ? 1 : 0;
  ::ioctl(tap_.get(), TUNSETCARRIER, &value);
  ethtool_value asked{.cmd = ETHTOOL_GLINK, .data = 0};
  ask_ethtool(stack_.get(), name_, std::span(reinterpret_cast<uint8_t*>(&asked), sizeof asked));
}

}  // namespace weir
