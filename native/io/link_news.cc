#include "io/link_news.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/native_error.h"
#include "io/network_namespace.h"

namespace weir {

LinkNews::~LinkNews() {
  for (const int fd : descriptors_) ::close(fd);
}

void LinkNews::listen(const PortOptions& options) {
  std::pair space{options.namespace_path, options.namespace_path.empty() ? options.namespace_fd : -1};
  if (std::ranges::find(spaces_, space) != spaces_.end()) return;
  int fd = -1;
  const auto open = [&] { fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE); };
  try {
    options.namespace_path.empty() ? in_namespace(options.namespace_fd, open) : in_namespace(options.namespace_path, open);
  } catch (const NativeError&) {
    return;
  }
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (fd < 0) return;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return;
  }
  spaces_.push_back(std::move(space));
  descriptors_.push_back(fd);
}

// ENOBUFS: more than there was room for.
bool LinkNews::take() {
  bool any = false;
  std::array<char, 64> start;
  for (const int fd : descriptors_) {
    while (::recv(fd, start.data(), start.size(), MSG_DONTWAIT) >= 0 || errno == ENOBUFS || errno == EINTR) any = true;
  }
  return any;
}

}  // namespace weir
