#include "io/tcp_socket.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

#include "base/native_error.h"
#include "io/kernel_socket.h"

namespace weir {
namespace {

constexpr int kDscpShift = 2;

void configure(int fd, const sockaddr_in& name, const std::string& control, uint8_t dscp, uint64_t pacing) {
  const auto set = [&](int level, int option, const void* value, size_t size) {
    return ::setsockopt(fd, level, option, value, static_cast<socklen_t>(size)) == 0;
  };
  if (!set(IPPROTO_TCP, TCP_CONGESTION, control.data(), control.size())) {
    throw NativeError::from_errno("setsockopt", "congestion control " + control + " of TCP",
                                  "this kernel has those of /proc/sys/net/ipv4/tcp_available_congestion_control; for another, as "
                                  "root: modprobe tcp_" +
                                      control);
  }
  const int traffic_class = dscp << kDscpShift;
  const linger reset{1, 0};
  const uint64_t bytes = pacing / 8;
  if (!set(IPPROTO_IP, IP_TOS, &traffic_class, sizeof traffic_class) || !set(SOL_SOCKET, SO_LINGER, &reset, sizeof reset) ||
      (pacing > 0 && !set(SOL_SOCKET, SO_MAX_PACING_RATE, &bytes, sizeof bytes))) {
    throw NativeError::from_errno("setsockopt", "a socket of TCP", "");
  }
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    throw NativeError::from_errno("bind", "a port of TCP", "");
  }
}

}  // namespace

int open_tcp_socket(const std::string& address, const std::string& control, uint8_t dscp, uint64_t pacing,
                    const std::string& namespace_path) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) {
    throw NativeError("INVALID_CONFIG", 0, "", address + " is not an IPv4 address", "");
  }
  const int fd = open_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, namespace_path);
  try {
    configure(fd, name, control, dscp, pacing);
  } catch (...) {
    ::close(fd);
    throw;
  }
  return fd;
}

bool ask_tcp_info(int socket, std::span<double> words) {
  ::tcp_info info{};
  socklen_t size = sizeof info;
  if (words.size() < kTcpInfoWords || ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  // Kernels before 4.18 do not tell all of it.
  if (size < offsetof(::tcp_info, tcpi_delivered) + sizeof info.tcpi_delivered) return false;
  words[0] = info.tcpi_data_segs_out;
  words[1] = info.tcpi_total_retrans;
  words[2] = info.tcpi_delivered;
  words[3] = info.tcpi_rtt;
  words[4] = info.tcpi_snd_cwnd;
  return true;
}

}  // namespace weir
