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
#include <vector>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

// Streams without a descriptor, and such as are made of calls, see to it themselves.
bool may_wait(FILE* stream) {
  struct stat kind {};
  return stream->_fileno >= 0 && ::fstat(stream->_fileno, &kind) == 0 && !S_ISREG(kind.st_mode);
}

void await_bytes(FILE* stream) {
  if (!in_virtual_time() || stream->_IO_read_ptr < stream->_IO_read_end || ::feof_unlocked(stream) != 0) return;
  if (!may_wait(stream)) return;
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

// What a stream has, byte by byte, for another that is made of calls.
struct Source {
  FILE* stream;
  bool over = false;
};
ssize_t read_source(void* given, char* out, size_t room) {
  Source& source = *static_cast<Source*>(given);
  if (source.over || room == 0) return 0;
  const int one = take(source.stream);
  if (one == EOF) return ::ferror_unlocked(source.stream) != 0 ? -1 : 0;
  *out = static_cast<char>(one);
  return 1;
}

// As vfscanf(), by one of libc's: it reads from a stream in the place of this one, which waits in turns.
using Scan = int (*)(FILE*, const char*, va_list);
int scan(Scan real, FILE* stream, const char* format, va_list arguments) {
  if (!in_virtual_time() || !may_wait(stream)) return real(stream, format, arguments);
  const Lock lock(stream);
  Source source{stream};
  constexpr cookie_io_functions_t kCalls{.read = read_source, .write = nullptr, .seek = nullptr, .close = nullptr};
  FILE* const other = ::fopencookie(&source, "r", kCalls);
  if (other == nullptr) return EOF;
  ::setvbuf(other, nullptr, _IONBF, 0);
  const int result = real(other, format, arguments);
  const int error = errno;
  // What it has read and put back is there again.
  static const auto rest = next<int (*)(FILE*)>("getc_unlocked");
  source.over = true;
  std::vector<int> back;
  for (int one; (one = rest(other)) != EOF;) back.push_back(one);
  for (; !back.empty(); back.pop_back()) ::ungetc(back.back(), stream);
  ::fclose(other);
  return errno = error, result;
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

// scanf() and what is like it. Compilers have them call functions of other names, by the standard that tells what some formats
// mean.
#define WEIR_SCANS(standard, prefix)                                                                                    \
  WEIR_EXPORT int standard##_vfscanf(FILE*, const char*, va_list) __asm__(prefix "vfscanf");                            \
  WEIR_EXPORT int standard##_vscanf(const char*, va_list) __asm__(prefix "vscanf");                                     \
  WEIR_EXPORT int standard##_fscanf(FILE*, const char*, ...) __asm__(prefix "fscanf");                                  \
  WEIR_EXPORT int standard##_scanf(const char*, ...) __asm__(prefix "scanf");                                           \
  int standard##_vfscanf(FILE* stream, const char* format, va_list arguments) {                                         \
    static const auto real = next<Scan>(prefix "vfscanf");                                                              \
    return scan(real, stream, format, arguments);                                                                       \
  }                                                                                                                     \
  int standard##_vscanf(const char* format, va_list arguments) { return standard##_vfscanf(stdin, format, arguments); } \
  int standard##_fscanf(FILE* stream, const char* format, ...) {                                                        \
    va_list arguments;                                                                                                  \
    va_start(arguments, format);                                                                                        \
    const int result = standard##_vfscanf(stream, format, arguments);                                                   \
    va_end(arguments);                                                                                                  \
    return result;                                                                                                      \
  }                                                                                                                     \
  int standard##_scanf(const char* format, ...) {                                                                       \
    va_list arguments;                                                                                                  \
    va_start(arguments, format);                                                                                        \
    const int result = standard##_vfscanf(stdin, format, arguments);                                                    \
    va_end(arguments);                                                                                                  \
    return result;                                                                                                      \
  }

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

WEIR_SCANS(old, "")
WEIR_SCANS(c99, "__isoc99_")
WEIR_SCANS(c23, "__isoc23_")

// What getc_unlocked() calls, where the compiler has put it into the program.
WEIR_EXPORT int __uflow(FILE* stream) {
  static const auto real = next<int (*)(FILE*)>("__uflow");
  await_bytes(stream);
  return real(stream);
}

}  // extern "C"
