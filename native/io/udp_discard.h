// A UDP port of the kernel that throws away all that comes: with it the kernel does not answer "port unreachable".
#pragma once

#include <cstdint>
#include <string>

namespace weir {

// Opens a socket at an address of the kernel's, IPv4 or IPv6 as text, in the network namespace at a path (empty: this thread's).
// A filter drops packets before they are queued. Returns the descriptor, which is the caller's to close.
// Throws NativeError: EADDRINUSE when the port is taken, EADDRNOTAVAIL when the kernel does not have the address.
int open_udp_discard(const std::string& address, uint16_t port, const std::string& namespace_path);

}  // namespace weir
