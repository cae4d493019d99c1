// Needs of a program beside the provider, preloaded by `weir run`:
//  - files of devices under /sys and /dev are found where nothing could be mounted (preload_files.cc);
//  - NETLINK_RDMA is answered as by a kernel that has these devices and pins nothing (netlink_answers.h), also where the kernel
//    has RDMA devices of its own;
//  - a completion channel is a pipe: it is the one verb that asks the kernel without asking the provider;
//  - the file by which librdmacm has connections is a socket, where its writes are commands (connection_channels.h).
#include "verbs/preload.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs/connection_channels.h"
#include "verbs/netlink_answers.h"

namespace {

using weir::next;

using Write = ssize_t (*)(int, const void*, size_t);
// Looked up when the library is loaded: signal handlers write, too.
Write found_write = next<Write>("write");

}  // namespace

extern "C" {

// librdmacm wants its file to be a character device.
WEIR_EXPORT int fstat(int descriptor, struct stat* out) {
  static const auto real = next<int (*)(int, struct stat*)>("fstat");
  const int result = real(descriptor, out);
  if (result == 0 && S_ISSOCK(out->st_mode) && weir::is_connection_channel(descriptor)) {
    out->st_mode = (out->st_mode & ~static_cast<mode_t>(S_IFMT)) | S_IFCHR;
  }
  return result;
}

WEIR_EXPORT ssize_t write(int descriptor, const void* bytes, size_t length) {
  if (weir::may_be_connection_command(bytes, length)) {
    if (const auto result = weir::run_connection_command(descriptor, bytes, length)) return *result;
  }
  // Another library may write before this one is begun.
  const Write real = found_write != nullptr ? found_write : next<Write>("write");
  return real(descriptor, bytes, length);
}

WEIR_EXPORT int socket(int domain, int type, int protocol) {
  static const auto real = next<int (*)(int, int, int)>("socket");
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA) return weir::open_rdma_netlink(type);
  return real(domain, type, protocol);
}

WEIR_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static const auto real = next<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  if (message != nullptr && weir::may_be_rdma_question(message->msg_iov, message->msg_iovlen)) {
    if (const auto result = weir::answer_rdma_question(descriptor, message->msg_iov, message->msg_iovlen)) return *result;
  }
  return real(descriptor, message, flags);
}

WEIR_EXPORT ssize_t sendto(int descriptor, const void* bytes, size_t length, int flags, const sockaddr* to, socklen_t to_length) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, int, const sockaddr*, socklen_t)>("sendto");
  const iovec piece = {.iov_base = const_cast<void*>(bytes), .iov_len = length};
  if (weir::may_be_rdma_question(&piece, 1)) {
    if (const auto result = weir::answer_rdma_question(descriptor, &piece, 1)) return *result;
  }
  return real(descriptor, bytes, length, flags, to, to_length);
}

WEIR_EXPORT ssize_t send(int descriptor, const void* bytes, size_t length, int flags) {
  return sendto(descriptor, bytes, length, flags, nullptr, 0);
}

WEIR_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return nullptr;
  // One descriptor for both ends: the provider writes to it, the program reads from it and closes it.
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  const int both = open(path, O_RDWR | O_CLOEXEC);
  ::close(ends[0]);
  ::close(ends[1]);
  auto* channel = both < 0 ? nullptr : static_cast<ibv_comp_channel*>(std::malloc(sizeof(ibv_comp_channel)));
  if (channel == nullptr) {
    if (both >= 0) ::close(both);
    return nullptr;
  }
  channel->context = context;
  channel->fd = both;
  channel->refcnt = 0;
  return channel;
}

}  // extern "C"
