// Sockets of the kernel's TCP, in any network namespace, with what scenarios say of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weir {

// Opens a socket bound to an IPv4 address (as text) and a port that is free, neither connected nor listening. `control` is the
// name of a congestion control, `dscp` that of its packets, `pacing` the most that it sends, bit/s (0: unlimited). A close before
// all was sent throws the rest away, with a reset. Returns the descriptor, which is the caller's to close. Throws NativeError:
// ENOENT where the kernel does not have the congestion control, EADDRNOTAVAIL where it lacks the address.
int open_tcp_socket(const std::string& address, const std::string& control, uint8_t dscp, uint64_t pacing,
                    const std::string& namespace_path);

// Number of words that ask_tcp_info() tells, in this order.
inline constexpr size_t kTcpInfoWords = 5;
// Tells of a connection, as of now: data segments sent, those sent again, those delivered, smoothed round trip time (us),
// congestion window (segments). False where the descriptor is no connection's.
bool ask_tcp_info(int socket, std::span<double> words);

}  // namespace weir
