// Child processes of a program in virtual time: how they begin and become other programs, and how they are waited for.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace {

using namespace weir;

constexpr uint32_t kEnds = TurnPlace::kOthers;
constexpr const char* kShell = "/bin/sh";
constexpr int kNoShell = 127;

// Only a program that could not become another comes back.
template <class Execute>
int become(const Execute& execute) {
  let_pass();
  pause_watch(true);
  let_read_ticks(true);
  const int result = execute();
  let_read_ticks(false);
  pause_watch(false);
  return result;
}

// A program is begun with the place that it has among its parent's variables.
template <class Spawn>
int spawn_in_turns(pid_t* out, char* const* environment, const Spawn& spawn) {
  const uint32_t place = take_place();
  const std::string start = std::string(kPlaceVariable) + "=";
  std::string own = start + std::to_string(place);
  std::vector<char*> variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (!std::string_view(*environment).starts_with(start)) variables.push_back(*environment);
  }
  variables.push_back(own.data());
  variables.push_back(nullptr);
  pid_t process = 0;
  const int error = become([&] { return spawn(&process, variables.data()); });
  if (error != 0) {
    free_place(place);
    return error;
  }
  add_child(place, process);
  if (out != nullptr) *out = process;
  return 0;
}

[[noreturn]] void become_shell(const char* command) {
  const char* const arguments[] = {"sh", "-c", command, nullptr};
  ::execv(kShell, const_cast<char* const*>(arguments));
  ::_exit(kNoShell);
}

// Shells of popen(), by their streams.
std::map<FILE*, pid_t>& shells() {
  static std::map<FILE*, pid_t> all;
  return all;
}

int descriptor_of(void* stream) { return static_cast<int>(reinterpret_cast<intptr_t>(stream)); }
ssize_t read_stream(void* stream, char* bytes, size_t length) { return ::read(descriptor_of(stream), bytes, length); }
ssize_t write_stream(void* stream, const char* bytes, size_t length) { return ::write(descriptor_of(stream), bytes, length); }
int close_stream(void* stream) { return ::close(descriptor_of(stream)); }

}  // namespace

extern "C" {

WEIR_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) {
  static const auto real = next<int (*)(const char*, char* const*, char* const*)>("execve");
  return become([&] { return real(path, arguments, environment); });
}
WEIR_EXPORT int execv(const char* path, char* const* arguments) { return execve(path, arguments, environ); }
WEIR_EXPORT int execvp(const char* file, char* const* arguments) {
  static const auto real = next<int (*)(const char*, char* const*)>("execvp");
  return become([&] { return real(file, arguments); });
}
WEIR_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) {
  static const auto real = next<int (*)(const char*, char* const*, char* const*)>("execvpe");
  return become([&] { return real(file, arguments, environment); });
}

WEIR_EXPORT void _exit(int status) {
  end_process();
  ::syscall(SYS_exit_group, status);
  __builtin_unreachable();
}
WEIR_EXPORT void _Exit(int status) { _exit(status); }

WEIR_EXPORT pid_t fork() {
  static const auto real = next<pid_t (*)()>("fork");
  const pid_t process = real();
  if (process > 0 && in_virtual_time()) name_child(process);
  return process;
}
// Its child would have the memory of its parent, which waits without giving its turn away.
WEIR_EXPORT pid_t vfork() { return fork(); }

WEIR_EXPORT pid_t wait4(pid_t process, int* status, int options, rusage* usage) {
  static const auto real = next<pid_t (*)(pid_t, int*, int, rusage*)>("wait4");
  if (!in_virtual_time() || (options & WNOHANG) != 0) return real(process, status, options, usage);
  pid_t result = 0;
  bool interrupted = false;
  wait_until(
      kEnds, kNever,
      [&] { return (result = real(process, status, take_ended_child(process) ? options : options | WNOHANG, usage)) != 0; },
      &interrupted);
  return interrupted && result == 0 ? (errno = EINTR, -1) : result;
}
WEIR_EXPORT pid_t waitpid(pid_t process, int* status, int options) { return wait4(process, status, options, nullptr); }
WEIR_EXPORT pid_t wait3(int* status, int options, rusage* usage) { return wait4(-1, status, options, usage); }
WEIR_EXPORT pid_t wait(int* status) { return wait4(-1, status, 0, nullptr); }

WEIR_EXPORT int system(const char* command) {
  static const auto real = next<int (*)(const char*)>("system");
  if (!in_virtual_time()) return real(command);
  if (command == nullptr) return ::access(kShell, X_OK) == 0 ? 1 : 0;
  // As POSIX has it: the caller waits for this child alone, and keyboards' signals are the child's.
  struct sigaction ignored {
  }, interrupt{}, quit{};
  ignored.sa_handler = SIG_IGN;
  sigset_t children, before;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, &before);
  ::sigaction(SIGINT, &ignored, &interrupt);
  ::sigaction(SIGQUIT, &ignored, &quit);
  const pid_t process = fork();
  if (process == 0) {
    ::sigaction(SIGINT, &interrupt, nullptr);
    ::sigaction(SIGQUIT, &quit, nullptr);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    become_shell(command);
  }
  int status = -1;
  while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  ::sigaction(SIGINT, &interrupt, nullptr);
  ::sigaction(SIGQUIT, &quit, nullptr);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

WEIR_EXPORT FILE* popen(const char* command, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("popen");
  if (!in_virtual_time()) return real(command, mode);
  const bool reads = mode[0] == 'r';
  if (!reads && mode[0] != 'w') return errno = EINVAL, nullptr;
  int ends[2];
  if (::pipe(ends) < 0) return nullptr;
  const int kept = ends[reads ? 0 : 1], given = ends[reads ? 1 : 0];
  const pid_t process = fork();
  if (process == 0) {
    ::close(kept);
    for (const auto& [stream, shell] : shells()) ::close(::fileno(stream));
    ::dup2(given, reads ? 1 : 0);
    if (given > 1) ::close(given);
    become_shell(command);
  }
  ::close(given);
  // libc's own streams read without a call that this library sees.
  constexpr cookie_io_functions_t kCalls{.read = read_stream, .write = write_stream, .seek = nullptr, .close = close_stream};
  FILE* const stream =
      process < 0 ? nullptr : ::fopencookie(reinterpret_cast<void*>(static_cast<intptr_t>(kept)), reads ? "r" : "w", kCalls);
  if (stream == nullptr) {
    ::close(kept);
    return nullptr;
  }
  stream->_fileno = kept;
  if (std::strchr(mode, 'e') != nullptr) ::fcntl(kept, F_SETFD, FD_CLOEXEC);
  shells()[stream] = process;
  return stream;
}

WEIR_EXPORT int pclose(FILE* stream) {
  static const auto real = next<int (*)(FILE*)>("pclose");
  const auto found = shells().find(stream);
  if (found == shells().end()) return real(stream);
  const pid_t process = found->second;
  shells().erase(found);
  ::fclose(stream);
  int status = -1;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

WEIR_EXPORT int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  static const auto real = next<decltype(&::posix_spawn)>("posix_spawn");
  if (!in_virtual_time()) return real(process, path, actions, attributes, arguments, environment);
  return spawn_in_turns(process, environment, [&](pid_t* out, char* const* variables) {
    return real(out, path, actions, attributes, arguments, variables);
  });
}

WEIR_EXPORT int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  static const auto real = next<decltype(&::posix_spawnp)>("posix_spawnp");
  if (!in_virtual_time()) return real(process, file, actions, attributes, arguments, environment);
  return spawn_in_turns(process, environment, [&](pid_t* out, char* const* variables) {
    return real(out, file, actions, attributes, arguments, variables);
  });
}

}  // extern "C"
