#include "verbs/connection_nics.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weir {
namespace {

constexpr NicAddress kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kPrefix = 12;

bool is_ipv4(const NicAddress& address) { return std::equal(kMapped.begin(), kMapped.begin() + kPrefix, address.begin()); }

bool read_line(const char* path, char* line, int size) {
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const bool got = std::fgets(line, size, file) != nullptr;
  std::fclose(file);
  if (got) line[std::strcspn(line, "\n")] = '\0';
  return got;
}

// Eight groups of hexadecimal digits.
NicAddress read_gid(const char* line) {
  NicAddress gid{};
  for (size_t i = 0; i < gid.size(); i += 2) {
    char* end = nullptr;
    const unsigned long group = std::strtoul(line, &end, 16);
    gid[i] = static_cast<uint8_t>(group >> 8);
    gid[i + 1] = static_cast<uint8_t>(group);
    line = *end == ':' ? end + 1 : end;
  }
  return gid;
}

std::vector<ConnectionNic> read_nics() {
  std::vector<ConnectionNic> nics;
  const char* root = std::getenv("SYSFS_PATH");
  char path[512];
  char name[128];
  for (size_t i = 0; root != nullptr && i < kMostNics; ++i) {
    std::snprintf(path, sizeof path, "%s/class/infiniband_verbs/uverbs%zu/ibdev", root, i);
    if (!read_line(path, name, sizeof name)) break;
    ConnectionNic nic;
    nic.daemon.sun_family = AF_UNIX;
    std::snprintf(path, sizeof path, "%s/class/infiniband/%s/weir_socket", root, name);
    if (!read_line(path, nic.daemon.sun_path, sizeof nic.daemon.sun_path)) break;
    std::snprintf(path, sizeof path, "%s/class/infiniband/%s/ports/1/gids/", root, name);
    nic.gids = path;
    nics.push_back(std::move(nic));
  }
  return nics;
}

// The addresses that a NIC has now; places without one are zero.
std::vector<NicAddress> addresses_of(const ConnectionNic& nic) {
  std::vector<NicAddress> all;
  char line[64];
  while (read_line((nic.gids + std::to_string(all.size())).c_str(), line, sizeof line)) all.push_back(read_gid(line));
  std::erase(all, NicAddress{});
  return all;
}

// Returns the address from which the kernel would send there. It makes the system calls themselves: a library that
// programs preload may turn sockets of functions into connections of librdmacm.
std::optional<NicAddress> kernel_source(const NicAddress& to) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(9);
  std::memcpy(&v4.sin_addr, to.data() + kPrefix, sizeof v4.sin_addr);
  std::memcpy(&v6.sin6_addr, to.data(), sizeof v6.sin6_addr);
  const bool is_v4 = is_ipv4(to);
  void* name = is_v4 ? static_cast<void*>(&v4) : &v6;
  socklen_t length = is_v4 ? sizeof v4 : sizeof v6;
  const long socket = ::syscall(SYS_socket, is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::nullopt;
  const bool found = ::syscall(SYS_connect, socket, name, length) == 0 && ::syscall(SYS_getsockname, socket, name, &length) == 0;
  ::syscall(SYS_close, socket);
  return found ? address_at(name, 0) : std::nullopt;
}

// -1: of another version of IP.
int common_bits(const NicAddress& a, const NicAddress& b) {
  if (is_ipv4(a) != is_ipv4(b)) return -1;
  for (int bit = 0; bit < 128; ++bit) {
    const auto byte = static_cast<size_t>(bit / 8);
    if (((a[byte] ^ b[byte]) >> (7 - bit % 8) & 1) != 0) return bit;
  }
  return 128;
}

}  // namespace

const std::vector<ConnectionNic>& connection_nics() {
  static const std::vector<ConnectionNic> nics = read_nics();
  return nics;
}

std::optional<NicAddress> address_at(const void* bytes, size_t offset) {
  const uint8_t* at = static_cast<const uint8_t*>(bytes) + offset;
  uint16_t family;
  std::memcpy(&family, at, sizeof family);
  NicAddress address = kMapped;
  if (family == AF_INET) {
    std::memcpy(address.data() + kPrefix, at + offsetof(sockaddr_in, sin_addr), 4);
  } else if (family == AF_INET6) {
    std::memcpy(address.data(), at + offsetof(sockaddr_in6, sin6_addr), address.size());
  } else {
    return std::nullopt;
  }
  return address;
}

bool is_any(const NicAddress& address) {
  NicAddress loopback{};
  loopback.back() = 1;
  return address == NicAddress{} || address == kMapped || address == loopback || (is_ipv4(address) && address[kPrefix] == 127);
}

std::optional<size_t> nic_with(const NicAddress& address) {
  const std::vector<ConnectionNic>& nics = connection_nics();
  for (size_t i = 0; i < nics.size(); ++i) {
    const std::vector<NicAddress> own = addresses_of(nics[i]);
    if (std::find(own.begin(), own.end(), address) != own.end()) return i;
  }
  return std::nullopt;
}

size_t nic_towards(const NicAddress& address) {
  if (const auto here = nic_with(address)) return *here;
  if (const auto source = kernel_source(address)) {
    if (const auto found = nic_with(*source)) return *found;
  }
  size_t best = 0;
  int most = -1;
  const std::vector<ConnectionNic>& nics = connection_nics();
  for (size_t i = 0; i < nics.size(); ++i) {
    for (const NicAddress& own : addresses_of(nics[i])) {
      const int bits = common_bits(own, address);
      if (bits <= most) continue;
      best = i;
      most = bits;
    }
  }
  return best;
}

}  // namespace weir
