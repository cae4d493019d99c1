#include "io/interface_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fstream>

#include "base/native_error.h"

namespace weir {
namespace {

int make_socket() {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw NativeError::from_errno("socket", "cannot open a unix socket", "");
  return fd;
}

// Binds to an abstract address; false if another socket has it.
bool bind_to(int fd, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  name.copy(address.sun_path + 1, length);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  if (errno == EADDRINUSE) return false;
  throw NativeError::from_errno("bind", "cannot claim an interface", "");
}

// Returns the rest of an abstract address that begins with `prefix`, as the kernel shows it; empty if there is none. The table is
// that of the thread's network namespace.
std::string find_label(const std::string& prefix) {
  std::ifstream sockets("/proc/thread-self/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.find(" @" + prefix);
    if (at != std::string::npos) return line.substr(at + 2 + prefix.size());
  }
  return {};
}

// "sw0 (pid 4711)" of "4711/sw0".
std::string describe(const std::string& label) {
  const size_t slash = label.find('/');
  if (label.empty() || slash == std::string::npos) return "another program";
  return label.substr(slash + 1) + " (pid " + label.substr(0, slash) + ")";
}

}  // namespace

InterfaceClaim::InterfaceClaim(int index, const std::string& interface, const std::string& owner)
    : lock_(make_socket()), label_(make_socket()) {
  const std::string name = "weir/interface/" + std::to_string(index);
  if (!bind_to(lock_.get(), name)) {
    throw NativeError("INTERFACE_IN_USE", EADDRINUSE, "bind",
                      interface + ": in use by " + describe(find_label(name + "/")) + ", and one interface serves one Weir",
                      "end that one, or use another interface; `ss -xap` shows who has @" + name);
  }
  std::string whose = owner;
  std::ranges::replace_if(
      whose, [](unsigned char c) { return std::isgraph(c) == 0; }, '_');
  bind_to(label_.get(), name + "/" + std::to_string(::getpid()) + "/" + whose);
}

}  // namespace weir
