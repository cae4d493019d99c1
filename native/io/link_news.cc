#include "io/link_news.h"

#include <linux/rtnetlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/native_error.h"

namespace weir {

LinkNews::LinkNews() : any_(::epoll_create1(EPOLL_CLOEXEC)) {}

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
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  sockets_.emplace_back(fd);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::epoll_ctl(any_.get(), EPOLL_CTL_ADD, fd, &event) == 0) {
    spaces_.push_back(std::move(space));
  } else {
    sockets_.pop_back();
  }
}

// ENOBUFS: more than there was room for.
bool LinkNews::take() {
  bool any = false;
  std::array<char, 64> start;
  std::array<epoll_event, 16> ready;
  int count;
  do {
    count = ::epoll_wait(any_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < count; ++i) {
      const int fd = ready[static_cast<size_t>(i)].data.fd;
      while (::recv(fd, start.data(), start.size(), MSG_DONTWAIT) >= 0 || errno == ENOBUFS || errno == EINTR) any = true;
    }
  } while (count == static_cast<int>(ready.size()));
  return any;
}

}  // namespace weir
