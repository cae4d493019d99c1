#include "hosts/program_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr const char* kRights = "run as root, or with CAP_SYS_ADMIN and CAP_NET_ADMIN";
constexpr int kNotStarted = 127;

// Gives the loopback its addresses, one for each label, whose whole networks are the host's own then.
int set_addresses(const std::vector<std::string>& addresses) {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  int error = 0;
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  if (::ioctl(socket, SIOCSIFFLAGS, &request) < 0) error = errno;
  for (size_t i = 0; i < addresses.size() && error == 0; ++i) {
    ifreq one{};
    ("lo:" + std::to_string(i)).copy(one.ifr_name, sizeof one.ifr_name - 1);
    auto& address = reinterpret_cast<sockaddr_in&>(one.ifr_addr);
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, addresses[i].c_str(), &address.sin_addr);
    if (::ioctl(socket, SIOCSIFADDR, &one) < 0) error = errno;
  }
  ::close(socket);
  return error;
}

}  // namespace

ProgramNamespaces make_program_namespaces(const std::vector<std::string>& addresses) {
  ProgramNamespaces made;
  int error = 0;
  // A thread of its own enters it, and ends.
  std::thread([&] {
    if (::unshare(CLONE_NEWNET | CLONE_NEWIPC) < 0) {
      error = errno;
      return;
    }
    error = set_addresses(addresses);
    if (error == 0) made.network = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (error == 0 && made.network < 0) error = errno;
    if (error == 0) made.ipc = ::open("/proc/thread-self/ns/ipc", O_RDONLY | O_CLOEXEC);
    if (error == 0 && made.ipc < 0) error = errno;
  }).join();
  if (error == 0) return made;
  if (made.network >= 0) ::close(made.network);
  errno = error;
  throw NativeError::from_errno("unshare", "programs in virtual time have no network of their own", kRights);
}

pid_t start_program(const ProgramStart& start) {
  // Between the two only what is safe in the child of a process with threads.
  std::vector<char*> environment;
  for (const std::string& one : start.environment) environment.push_back(const_cast<char*>(one.c_str()));
  environment.push_back(nullptr);
  const char* const arguments[] = {"sh", "-c", start.command.c_str(), nullptr};
  const auto process = static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (process < 0) throw NativeError::from_errno("clone", "a program cannot be started", kRights);
  if (process > 0) return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // What Node.js ignores, programs would go on to ignore.
  ::signal(SIGPIPE, SIG_DFL);
  const int in = ::open("/dev/null", O_RDONLY), out = ::open(start.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644),
            errors = ::open(start.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool ready = ::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(errors, 2) == 2 &&
                     ::syscall(SYS_setns, start.namespaces.network, CLONE_NEWNET) == 0 &&
                     ::syscall(SYS_setns, start.namespaces.ipc, CLONE_NEWIPC) == 0 && ::personality(ADDR_NO_RANDOMIZE) >= 0;
  ::syscall(SYS_close_range, 3, ~0u, 0);
  // Its processes find themselves under /proc, and no other run's memory under /dev/shm, where mounts are allowed.
  if (::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0) {
    (void)!::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
    (void)!::mount(start.shared_memory.c_str(), "/dev/shm", nullptr, MS_BIND, nullptr);
  }
  if (ready) ::execve("/bin/sh", const_cast<char**>(arguments), environment.data());
  ::_exit(kNotStarted);
}

}  // namespace weir
