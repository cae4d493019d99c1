// Needs of a program beside the provider, preloaded by `weir run`:
//  - devices' character files under /dev/infiniband are /dev/null, whose number the device's folder names: libibverbs only asks
//    for a character device of that number, and neither root nor a mount is needed;
//  - files under /sys/class/infiniband are looked for under $SYSFS_PATH first, where libibverbs looks: UCX does not ask it;
//  - NETLINK_RDMA is answered as by a kernel that has these devices and pins nothing (netlink_answers.h), also where the kernel
//    has RDMA devices of its own;
//  - a completion channel is a pipe: it is the one verb that asks the kernel without asking the provider;
//  - the file by which librdmacm has connections is a socket, where its writes are commands (connection_channels.h).
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs/connection_channels.h"
#include "verbs/netlink_answers.h"

#define WEIR_EXPORT __attribute__((visibility("default")))

namespace {

constexpr const char kDevices[] = "/dev/infiniband/uverbs";
constexpr const char kConnections[] = "/dev/infiniband/rdma_cm";
constexpr const char kSystem[] = "/sys";
constexpr const char kClass[] = "/sys/class/infiniband/";

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

template <size_t Size>
bool begins_with(const char* path, const char (&start)[Size]) {
  return path != nullptr && std::strncmp(path, start, Size - 1) == 0;
}

// File that is opened or looked at in place of `path`.
class File {
 public:
  explicit File(const char* path) : path_(begins_with(path, kDevices) ? "/dev/null" : path) {
    static const auto real_access = next<int (*)(const char*, int)>("access");
    const char* root = begins_with(path, kClass) ? std::getenv("SYSFS_PATH") : nullptr;
    if (root == nullptr) return;
    const int length = std::snprintf(ours_, sizeof ours_, "%s%s", root, path + sizeof kSystem - 1);
    if (length > 0 && static_cast<size_t>(length) < sizeof ours_ && real_access(ours_, F_OK) == 0) path_ = ours_;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const char* path() const { return path_; }

 private:
  const char* path_;
  char ours_[PATH_MAX];
};

bool is_connections(const char* path) { return path != nullptr && std::strcmp(path, kConnections) == 0; }

// The third argument of open(2), where there is one.
mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

using Write = ssize_t (*)(int, const void*, size_t);
// Looked up when the library is loaded: signal handlers write, too.
Write found_write = next<Write>("write");

}  // namespace

extern "C" {

WEIR_EXPORT int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  if (is_connections(path)) return weir::open_connection_channel(flags);
  return real(File(path).path(), flags, mode);
}

WEIR_EXPORT int access(const char* path, int mode) {
  static const auto real = next<int (*)(const char*, int)>("access");
  return real(File(path).path(), mode);
}

WEIR_EXPORT int stat(const char* path, struct stat* out) {
  static const auto real = next<int (*)(const char*, struct stat*)>("stat");
  return real(File(path).path(), out);
}

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
