// Streams of stdio that a program in virtual time reads: libc reads by calls that this library does not see, which may wait for
// another program. So whoever empties a stream's buffer waits here first, in turns.
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

// Streams without a descriptor, and such as are made of calls, see to it themselves.
void await_bytes(FILE* stream) {
  if (!in_virtual_time() || stream->_IO_read_ptr < stream->_IO_read_end || ::feof_unlocked(stream) != 0) return;
  struct stat kind {};
  if (stream->_fileno < 0 || ::fstat(stream->_fileno, &kind) != 0 || S_ISREG(kind.st_mode)) return;
  pollfd one{stream->_fileno, POLLIN, 0};
  while (::poll(&one, 1, -1) < 0 && errno == EINTR) {
  }
  note_read();
}

int take(FILE* stream) {
  await_bytes(stream);
  static const auto real = next<int (*)(FILE*)>("getc_unlocked");
  return real(stream);
}

class Lock {
 public:
  explicit Lock(FILE* stream) : stream_(stream) { ::flockfile(stream); }
  ~Lock() { ::funlockfile(stream_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  FILE* const stream_;
};

// As fgets(): up to a line's end, or until there is no more room.
char* take_line(char* out, int room, FILE* stream) {
  if (room <= 0) return nullptr;
  int count = 0;
  for (int one = 0; count + 1 < room && one != '\n';) {
    one = take(stream);
    if (one == EOF) break;
    out[count++] = static_cast<char>(one);
  }
  if (count == 0 && room > 1) return nullptr;
  out[count] = 0;
  return ::ferror_unlocked(stream) != 0 ? nullptr : out;
}

size_t take_all(void* out, size_t size, size_t count, FILE* stream) {
  if (size == 0 || count == 0) return 0;
  static const auto real = next<size_t (*)(void*, size_t, size_t, FILE*)>("fread_unlocked");
  size_t got = 0;
  while (got < size * count) {
    // What is there is read at once; one byte more than that would wait.
    const auto there = static_cast<size_t>(stream->_IO_read_end - stream->_IO_read_ptr);
    if (there == 0) {
      const int one = take(stream);
      if (one == EOF) break;
      static_cast<char*>(out)[got++] = static_cast<char>(one);
      continue;
    }
    got += real(static_cast<char*>(out) + got, 1, std::min(there, size * count - got), stream);
  }
  return got / size;
}

ssize_t take_delimited(char** line, size_t* room, int end, FILE* stream) {
  if (line == nullptr || room == nullptr) return errno = EINVAL, -1;
  size_t count = 0;
  for (int one = 0; one != end || count == 0;) {
    one = take(stream);
    if (one == EOF) break;
    if (*line == nullptr || count + 2 > *room) {
      const size_t more = std::max<size_t>(120, 2 * count + 2);
      char* const grown = static_cast<char*>(std::realloc(*line, more));
      if (grown == nullptr) return errno = ENOMEM, -1;
      *line = grown;
      *room = more;
    }
    (*line)[count++] = static_cast<char>(one);
    if (one == end) break;
  }
  if (count == 0) return -1;
  (*line)[count] = 0;
  return static_cast<ssize_t>(count);
}

}  // namespace

extern "C" {

WEIR_EXPORT char* fgets(char* out, int room, FILE* stream) {
  static const auto real = next<char* (*)(char*, int, FILE*)>("fgets");
  if (!in_virtual_time()) return real(out, room, stream);
  const Lock lock(stream);
  return take_line(out, room, stream);
}
WEIR_EXPORT char* fgets_unlocked(char* out, int room, FILE* stream) {
  static const auto real = next<char* (*)(char*, int, FILE*)>("fgets_unlocked");
  return in_virtual_time() ? take_line(out, room, stream) : real(out, room, stream);
}
WEIR_EXPORT char* __fgets_chk(char* out, size_t, int room, FILE* stream) { return fgets(out, room, stream); }

WEIR_EXPORT size_t fread(void* out, size_t size, size_t count, FILE* stream) {
  static const auto real = next<size_t (*)(void*, size_t, size_t, FILE*)>("fread");
  if (!in_virtual_time()) return real(out, size, count, stream);
  const Lock lock(stream);
  return take_all(out, size, count, stream);
}
WEIR_EXPORT size_t fread_unlocked(void* out, size_t size, size_t count, FILE* stream) {
  static const auto real = next<size_t (*)(void*, size_t, size_t, FILE*)>("fread_unlocked");
  return in_virtual_time() ? take_all(out, size, count, stream) : real(out, size, count, stream);
}
WEIR_EXPORT size_t __fread_chk(void* out, size_t, size_t size, size_t count, FILE* stream) {
  return fread(out, size, count, stream);
}

WEIR_EXPORT ssize_t getdelim(char** line, size_t* room, int end, FILE* stream) {
  static const auto real = next<ssize_t (*)(char**, size_t*, int, FILE*)>("getdelim");
  if (!in_virtual_time()) return real(line, room, end, stream);
  const Lock lock(stream);
  return take_delimited(line, room, end, stream);
}
WEIR_EXPORT ssize_t __getdelim(char** line, size_t* room, int end, FILE* stream) { return getdelim(line, room, end, stream); }
WEIR_EXPORT ssize_t getline(char** line, size_t* room, FILE* stream) { return getdelim(line, room, '\n', stream); }

WEIR_EXPORT int fgetc(FILE* stream) {
  const Lock lock(stream);
  return take(stream);
}
WEIR_EXPORT int getc(FILE* stream) { return fgetc(stream); }
WEIR_EXPORT int _IO_getc(FILE* stream) { return fgetc(stream); }
WEIR_EXPORT int getchar() { return fgetc(stdin); }
WEIR_EXPORT int getc_unlocked(FILE* stream) { return take(stream); }
WEIR_EXPORT int fgetc_unlocked(FILE* stream) { return take(stream); }
WEIR_EXPORT int getchar_unlocked() { return take(stdin); }

// What getc_unlocked() calls, where the compiler has put it into the program.
WEIR_EXPORT int __uflow(FILE* stream) {
  static const auto real = next<int (*)(FILE*)>("__uflow");
  await_bytes(stream);
  return real(stream);
}

}  // extern "C"
