// Memory that a program in virtual time shares with others: what is written there is no call that this library sees.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace {

// That of a NIC (engine/nic_programs.cc), which tells by itself.
bool is_of_nic(int descriptor) {
  char path[32], name[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(path, name, sizeof name);
  return length > 0 && std::string_view(name, static_cast<size_t>(length)).starts_with("/memfd:weir-program");
}

}  // namespace

extern "C" {

WEIR_EXPORT void* mmap(void* at, size_t length, int protection, int flags, int descriptor, off_t offset) {
  static const auto real = weir::next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  const bool shared = (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0;
  if (shared && weir::in_virtual_time() && !is_of_nic(descriptor)) weir::share_memory();
  return real(at, length, protection, flags, descriptor, offset);
}
WEIR_EXPORT void* mmap64(void* at, size_t length, int protection, int flags, int descriptor, off64_t offset) {
  return mmap(at, length, protection, flags, descriptor, offset);
}

WEIR_EXPORT void* shmat(int number, const void* at, int flags) {
  static const auto real = weir::next<void* (*)(int, const void*, int)>("shmat");
  if (weir::in_virtual_time()) weir::share_memory();
  return real(number, at, flags);
}

}  // extern "C"
