// Threads of programs as they are seen from outside.
#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "hosts/program_threads.h"

namespace weir::test {
namespace {

// A process that is the first of a namespace of its own, as programs are, and waits.
struct OwnProcess {
  OwnProcess() : number(static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr))) {
    while (number == 0) ::pause();
  }
  ~OwnProcess() {
    ::kill(number, SIGKILL);
    ::waitpid(number, nullptr, 0);
  }
  pid_t number;
};

cpu_set_t processors_of(pid_t process) {
  cpu_set_t found;
  CPU_ZERO(&found);
  CHECK(::sched_getaffinity(process, sizeof found, &found) == 0);
  return found;
}

TEST_CASE("program threads: spread, they may run wherever programs may, and others stay where they are") {
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: only root makes namespaces");
    return;
  }
  const OwnProcess one, other, third;
  REQUIRE(one.number > 0);
  REQUIRE(other.number > 0);
  REQUIRE(third.number > 0);
  const cpu_set_t all = processors_of(0);
  cpu_set_t first;
  CPU_ZERO(&first);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &first);
  }
  for (const pid_t process : {0, one.number, other.number, third.number}) {
    REQUIRE(::sched_setaffinity(process, sizeof first, &first) == 0);
  }
  spread(std::array<pid_t, 3>{one.number, 0, other.number}, all);
  for (const pid_t process : {0, one.number, other.number}) {
    const cpu_set_t now = processors_of(process);
    CHECK(CPU_EQUAL(&now, &all));
  }
  const cpu_set_t untouched = processors_of(third.number);
  CHECK(CPU_EQUAL(&untouched, &first));
}

TEST_CASE("program threads: one that sleeps, one that runs and one that is not there are not starved") {
  const pid_t sleeps = ::fork();
  while (sleeps == 0) ::pause();
  const pid_t runs = ::fork();
  while (runs == 0) {
    static volatile int counted = 0;
    counted = counted + 1;
  }
  REQUIRE(sleeps > 0);
  REQUIRE(runs > 0);
  Starvation sleeping, running, nobody;
  const auto processor_time = [&] {
    clockid_t clock;
    timespec time{};
    CHECK(::clock_getcpuclockid(runs, &clock) == 0);
    CHECK(::clock_gettime(clock, &time) == 0);
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  };
  for (int look = 0; look < 3; ++look) {
    const auto number = [](pid_t process) { return static_cast<uint32_t>(process); };
    CHECK_FALSE(sleeping.look(sleeps, number(sleeps)));
    CHECK_FALSE(running.look(runs, number(runs)));
    CHECK_FALSE(nobody.look(sleeps, number(::getpid()) + (1u << 22)));
    // However busy the machine is, it gets a processor before the next look.
    for (const auto before = processor_time(); processor_time() - before < 20'000'000;) ::usleep(1000);
  }
  for (const pid_t process : {sleeps, runs}) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
}

}  // namespace
}  // namespace weir::test
