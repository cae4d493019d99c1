// Writes to descriptors of a program in virtual time: who polls a completion queue afterwards, in vain, has done something that
// others may wait for.
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

using Write = ssize_t (*)(int, const void*, size_t);
// Looked up when the library is loaded: signal handlers write, too.
Write found_write = next<Write>("write");

}  // namespace

extern "C" {

WEIR_EXPORT ssize_t write(int descriptor, const void* bytes, size_t length) {
  note_write();
  // Another library may write before this one is begun.
  const Write real = found_write != nullptr ? found_write : next<Write>("write");
  return real(descriptor, bytes, length);
}

WEIR_EXPORT ssize_t writev(int descriptor, const iovec* pieces, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("writev");
  note_write();
  return real(descriptor, pieces, count);
}

WEIR_EXPORT int eventfd_write(int descriptor, eventfd_t value) {
  static const auto real = next<int (*)(int, eventfd_t)>("eventfd_write");
  note_write();
  return real(descriptor, value);
}

WEIR_EXPORT ssize_t send(int descriptor, const void* bytes, size_t length, int flags) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, int)>("send");
  note_write();
  return real(descriptor, bytes, length, flags);
}

WEIR_EXPORT ssize_t sendto(int descriptor, const void* bytes, size_t length, int flags, const sockaddr* to, socklen_t to_length) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, int, const sockaddr*, socklen_t)>("sendto");
  note_write();
  return real(descriptor, bytes, length, flags, to, to_length);
}

WEIR_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static const auto real = next<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  note_write();
  return real(descriptor, message, flags);
}

}  // extern "C"
