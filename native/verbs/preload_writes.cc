// Writes to descriptors of a program in virtual time. Where there is no room they wait in turns, for those who read. Who polls a
// completion queue afterwards, in vain, has done something that others may wait for.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "verbs/preload.h"
#include "verbs/preload_patches.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

using Write = ssize_t (*)(int, const void*, size_t);
// Looked up when the library is loaded: signal handlers write, too.
Write found_write = next<Write>("write");

// While there is one, calls on the descriptor do not block, though it may be one that does: nobody else has the turn.
class Unblocked {
 public:
  // Flags as of flags_of().
  Unblocked(int descriptor, int flags) : descriptor_(descriptor), flags_(flags) {
    if (flags >= 0) ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
  }
  ~Unblocked() {
    const int error = errno;
    if (flags_ >= 0) ::fcntl(descriptor_, F_SETFL, flags_);
    errno = error;
  }
  Unblocked(const Unblocked&) = delete;
  Unblocked& operator=(const Unblocked&) = delete;

 private:
  const int descriptor_;
  const int flags_;
};

// Flags of a socket or pipe of a thread in virtual time; -1: it is something else. Channels of librdmacm are, whose commands wait
// in turns themselves: they say that they are character devices.
int flags_of(int descriptor) {
  struct stat kind {};
  if (!in_virtual_time() || ::fstat(descriptor, &kind) != 0) return -1;
  return S_ISSOCK(kind.st_mode) || S_ISFIFO(kind.st_mode) ? ::fcntl(descriptor, F_GETFL) : -1;
}

// Whether a thread may wait for room there. A signal's handler may come while another has the turn.
bool may_wait(int flags) { return flags >= 0 && (flags & O_NONBLOCK) == 0 && turns_given() % 2 == 0; }

size_t length_of(const iovec* pieces, size_t count) {
  size_t length = 0;
  for (size_t i = 0; i < count; ++i) length += pieces[i].iov_len;
  return length;
}

std::vector<iovec> without(const iovec* pieces, size_t count, size_t done) {
  std::vector<iovec> rest;
  for (size_t i = 0; i < count; ++i) {
    const size_t gone = done < pieces[i].iov_len ? done : pieces[i].iov_len;
    done -= gone;
    if (gone < pieces[i].iov_len) rest.push_back({static_cast<char*>(pieces[i].iov_base) + gone, pieces[i].iov_len - gone});
  }
  return rest;
}

// Writes all of it as a call that blocks does. attempt(): behind so many bytes, without blocking.
template <class Attempt>
ssize_t write_all(size_t length, const Attempt& attempt) {
  size_t done = 0;
  ssize_t part = 0;
  const auto is_over = [&] { return (part = attempt(done)) >= 0 || errno != EAGAIN; };
  const auto has_room = [&] {
    if (is_over()) return true;
    bool interrupted = false;
    want_room(true);
    const bool over = wait_until(TurnPlace::kOthers, kNever, is_over, &interrupted);
    want_room(false);
    if (!over) errno = EINTR;
    return over;
  };
  do {
    if (!has_room() || part < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    done += static_cast<size_t>(part);
    // What has been written is there for others.
    note_write();
  } while (part > 0 && done < length);
  return static_cast<ssize_t>(done);
}

// Moves something, at least, from one descriptor to another, as a call that blocks while there is nothing there, or no room here.
// attempt(flags): with these besides.
template <class Attempt>
ssize_t move_some(int from, int to, const Attempt& attempt) {
  const int flags[] = {flags_of(from), flags_of(to)};
  const auto either = [&](bool (*is)(int)) { return is(flags[0]) || is(flags[1]); };
  const bool polls = either([](int one) { return one >= 0 && (one & O_NONBLOCK) != 0; });
  if (polls || !either(may_wait)) return attempt(0);
  const ssize_t moved = write_all(1, [&](size_t) {
    const Unblocked source(from, flags[0]);
    const Unblocked sink(to, flags[1]);
    return attempt(SPLICE_F_NONBLOCK);
  });
  note_read();
  return moved;
}

// The same of a call on a descriptor that does not block.
ssize_t write_some(int descriptor, ssize_t result) {
  if (result < 0 && errno == EAGAIN && in_virtual_time()) {
    ask_in_vain(descriptor);
    errno = EAGAIN;
  }
  return result;
}

#if defined(__x86_64__)

// libc's own write() goes here: streams of stdio call it by no name that a library could take. A lock of the stream is held, so
// nobody else has a turn unless there is no room.
ssize_t write_of_libc(int descriptor, const void* bytes, size_t length) {
  static const auto call = next<long (*)(long, ...)>("syscall");
  const int flags = flags_of(descriptor);
  if (!may_wait(flags)) return call(SYS_write, descriptor, bytes, length);
  const auto attempt = [&](size_t done) {
    const Unblocked unblocked(descriptor, flags);
    return call(SYS_write, descriptor, static_cast<const char*>(bytes) + done, length - done);
  };
  const ssize_t first = attempt(0);
  if (first < 0 && errno != EAGAIN) return first;
  const size_t done = first < 0 ? 0 : static_cast<size_t>(first);
  if (done == length) return first;
  const ssize_t rest = write_all(length - done, [&](size_t more) { return attempt(done + more); });
  return rest < 0 ? (done > 0 ? first : rest) : static_cast<ssize_t>(done) + rest;
}

[[gnu::constructor(102)]] void take_writes_of_streams() {
  if (!in_virtual_time()) return;
  // By this name no other library has it. Where its code is unlike that of others, streams do not wait for room.
  void* const of_libc = ::dlsym(RTLD_NEXT, "__write");
  if (of_libc != nullptr) (void)redirect(of_libc, reinterpret_cast<const void*>(write_of_libc));
}

#endif

}  // namespace

extern "C" {

WEIR_EXPORT ssize_t write(int descriptor, const void* bytes, size_t length) {
  note_write();
  // Another library may write before this one is begun.
  const Write real = found_write != nullptr ? found_write : next<Write>("write");
  const int flags = flags_of(descriptor);
  if (!may_wait(flags)) return write_some(descriptor, real(descriptor, bytes, length));
  return write_all(length, [&](size_t done) {
    const Unblocked unblocked(descriptor, flags);
    return real(descriptor, static_cast<const char*>(bytes) + done, length - done);
  });
}

WEIR_EXPORT ssize_t writev(int descriptor, const iovec* pieces, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("writev");
  note_write();
  const int flags = flags_of(descriptor);
  if (!may_wait(flags) || count < 0) return write_some(descriptor, real(descriptor, pieces, count));
  const auto all = static_cast<size_t>(count);
  return write_all(length_of(pieces, all), [&](size_t done) {
    const Unblocked unblocked(descriptor, flags);
    if (done == 0) return real(descriptor, pieces, count);
    const std::vector<iovec> rest = without(pieces, all, done);
    return real(descriptor, rest.data(), static_cast<int>(rest.size()));
  });
}

WEIR_EXPORT int eventfd_write(int descriptor, eventfd_t value) {
  static const auto real = next<int (*)(int, eventfd_t)>("eventfd_write");
  note_write();
  return real(descriptor, value);
}

WEIR_EXPORT ssize_t sendto(int descriptor, const void* bytes, size_t length, int flags, const sockaddr* to, socklen_t to_length) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t, int, const sockaddr*, socklen_t)>("sendto");
  note_write();
  const bool waits = (flags & MSG_DONTWAIT) == 0 && may_wait(flags_of(descriptor));
  if (!waits) return write_some(descriptor, real(descriptor, bytes, length, flags, to, to_length));
  return write_all(length, [&](size_t done) {
    return real(descriptor, static_cast<const char*>(bytes) + done, length - done, flags | MSG_DONTWAIT, to, to_length);
  });
}
WEIR_EXPORT ssize_t send(int descriptor, const void* bytes, size_t length, int flags) {
  return sendto(descriptor, bytes, length, flags, nullptr, 0);
}

WEIR_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static const auto real = next<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  note_write();
  const bool waits = (flags & MSG_DONTWAIT) == 0 && may_wait(flags_of(descriptor));
  if (!waits) return write_some(descriptor, real(descriptor, message, flags));
  return write_all(length_of(message->msg_iov, message->msg_iovlen), [&](size_t done) {
    if (done == 0) return real(descriptor, message, flags | MSG_DONTWAIT);
    // What came beside the bytes went with the first of them.
    std::vector<iovec> rest = without(message->msg_iov, message->msg_iovlen, done);
    msghdr rest_of = *message;
    rest_of.msg_iov = rest.data();
    rest_of.msg_iovlen = rest.size();
    rest_of.msg_control = nullptr;
    rest_of.msg_controllen = 0;
    return real(descriptor, &rest_of, flags | MSG_DONTWAIT);
  });
}

WEIR_EXPORT ssize_t sendfile(int to, int from, off_t* offset, size_t count) {
  static const auto real = next<ssize_t (*)(int, int, off_t*, size_t)>("sendfile");
  note_write();
  const int flags = flags_of(to);
  if (!may_wait(flags)) return write_some(to, real(to, from, offset, count));
  return write_all(count, [&](size_t done) {
    const Unblocked unblocked(to, flags);
    return real(to, from, offset, count - done);
  });
}
WEIR_EXPORT ssize_t sendfile64(int to, int from, off64_t* offset, size_t count) { return sendfile(to, from, offset, count); }

WEIR_EXPORT ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length, unsigned flags) {
  static const auto real = next<ssize_t (*)(int, off64_t*, int, off64_t*, size_t, unsigned)>("splice");
  note_write();
  const auto attempt = [&](unsigned more) { return real(from, from_offset, to, to_offset, length, flags | more); };
  return (flags & SPLICE_F_NONBLOCK) != 0 ? write_some(to, attempt(0)) : move_some(from, to, attempt);
}

}  // extern "C"
