// The NICs of a program, as librdmacm's commands are for one of them: where their daemons are, and which has or reaches an
// address.
#pragma once

#include <sys/un.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir {

inline constexpr size_t kMostNics = 16;

// IPv4 as ::ffff:a.b.c.d.
using NicAddress = std::array<uint8_t, 16>;

struct ConnectionNic {
  sockaddr_un daemon{};
  std::string gids;  // folder of its table of GIDs, which the daemon brings up to date
};

// They are in the order of $SYSFS_PATH, read once.
const std::vector<ConnectionNic>& connection_nics();
inline bool has_several_nics() { return connection_nics().size() > 1; }

// Reads a sockaddr_in or sockaddr_in6 in a command; nothing: it is of another family.
std::optional<NicAddress> address_at(const void* bytes, size_t offset);
// True for addresses of no NIC in particular: all addresses, and loopback addresses (as cma_any_addr() of Linux has it).
bool is_any(const NicAddress& address);

// The NIC with this address; nothing: none has it.
std::optional<size_t> nic_with(const NicAddress& address);
// The NIC that connections to an address leave by: the one that has it, or that the kernel's routes lead to, or whose address has
// most leading bits in common with it (RFC 6724, 5, rule 8).
size_t nic_towards(const NicAddress& address);

}  // namespace weir
