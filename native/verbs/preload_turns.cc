#include "verbs/preload_turns.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "verbs/preload.h"
#include "verbs/preload_compute.h"
#include "verbs/preload_host.h"

namespace weir {
namespace {

using Syscall = long (*)(long, ...);

TurnMemory* memory = nullptr;
uint32_t program = 0;
std::atomic<uint32_t> told_count{0};
// What threads of the process have done since one gave its turn away, by calls, and whether one has written to memory that the
// process shares.
std::atomic<uint32_t> deed{TurnPlace::kNothing};
std::atomic<bool> written{false};
pthread_key_t ending;

// So many readings of the clock in a row by one place of the program, or so many by several, without another wait, are a loop
// that waits for time to pass: then so much passes, and again with each of fewer.
constexpr uint32_t kReadings = 1'000;
constexpr uint32_t kMostReadings = 50'000;
constexpr uint32_t kReadingsOfStep = 32;
constexpr Time kReadingStep = 10 * kMicrosecond;
// What others see now and then passes when it is so much; and nobody is ahead of time for longer than that.
constexpr Time kPart = 1 * kMicrosecond;
constexpr Time kMostAhead = 1 * kMillisecond;

constexpr uint32_t kNoPlace = UINT32_MAX;
thread_local volatile uint32_t given __attribute__((tls_model("initial-exec"))) = 0;
thread_local uint32_t alike_count __attribute__((tls_model("initial-exec"))) = 0;
thread_local const void* read_from __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local uint32_t read_count __attribute__((tls_model("initial-exec"))) = 0;
thread_local Time read_since __attribute__((tls_model("initial-exec"))) = 0;
thread_local uint32_t own_place __attribute__((tls_model("initial-exec"))) = kNoPlace;

// Threads of libraries that serve the process, where each sleeps, and how many wait for locks of others.
struct Server {
  const void* word;
  uint32_t place;
};
constexpr size_t kMostServers = 64;
Server servers[kMostServers];
uint32_t contenders = 0;
thread_local bool contends __attribute__((tls_model("initial-exec"))) = false;
thread_local bool serves __attribute__((tls_model("initial-exec"))) = false;
thread_local bool detached __attribute__((tls_model("initial-exec"))) = false;

// The library's own calls to the kernel, which this library does not see.
long kernel(long number, const void* a, long b, long c) {
  long result;
  register long d __asm__("r10") = 0;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d) : "rcx", "r11", "memory");
  return result;
}
void sleep_while(std::atomic<uint32_t>& word, uint32_t value) { kernel(SYS_futex, &word, FUTEX_WAIT, value); }
void wake(std::atomic<uint32_t>& word) { kernel(SYS_futex, &word, FUTEX_WAKE, INT_MAX); }

TurnPlace* own() { return memory == nullptr || own_place == kNoPlace ? nullptr : &memory->place[own_place]; }

void await_turn(TurnPlace& place) {
  while (place.turn.load(std::memory_order_acquire) == 0) sleep_while(place.turn, 0);
  place.turn.store(0, std::memory_order_relaxed);
  begin_computing();
}

bool is_first_thread() { return ::gettid() == ::getpid(); }

// The program's signals are its first thread's.
bool fire_alarm() { return is_first_thread() && raise_signals(); }

uint32_t place_of_thread() {
  const auto self = static_cast<uint32_t>(::gettid());
  for (uint32_t i = 0; i < std::min(memory->places.load(std::memory_order_relaxed), kTurnPlaces); ++i) {
    const TurnPlace& one = memory->place[i];
    if (one.program.load(std::memory_order_relaxed) == program && one.thread.load(std::memory_order_relaxed) == self &&
        one.state.load(std::memory_order_relaxed) == TurnPlace::runs) {
      return i;
    }
  }
  return kNoPlace;
}

void at_end(void*) { end_turns(); }

void leave(TurnPlace::State how) {
  TurnPlace* const place = own();
  if (place == nullptr) return;
  own_place = kNoPlace;
  place->deed.store(TurnPlace::kAnything, std::memory_order_relaxed);
  place->state.store(how, std::memory_order_release);
  wake(place->state);
}

// A child process has a place of its own, which its parent takes: so the order of places is that of what programs do.
uint32_t child = kNoPlace;
bool is_child = false;
std::vector<uint32_t> children;
void before_fork() {
  if (in_virtual_time()) child = take_place();
}
void in_parent() {
  if (in_virtual_time()) children.push_back(child);
}
void in_child() {
  if (!in_virtual_time()) return;
  forget_signals();
  forget_watch();
  forget_computed();
  children.clear();
  is_child = true;
  contenders = 0;
  begin_turns(child);
  watch_spins();
}

// Who carries time on hears of a program's first process by the kernel, of others so.
[[gnu::destructor(101)]] void end() { end_process(); }

// Before anything of the program runs, other libraries and libc's own beginning included, which knows the environment after that.
[[gnu::constructor(101)]] void begin(int, char**, char** variables) {
  if (environ == nullptr) environ = variables;
  const char* const path = std::getenv(kTurnsVariable);
  const char* const place = std::getenv(kPlaceVariable);
  const char* const number = std::getenv(kProgramVariable);
  if (path == nullptr || place == nullptr || number == nullptr) return;
  const int descriptor = ::open(path, O_RDWR | O_CLOEXEC);
  void* const at =
      descriptor < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(TurnMemory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (descriptor >= 0) ::close(descriptor);
  if (at == MAP_FAILED || static_cast<TurnMemory*>(at)->layout != kTurnsLayout) {
    refuse("a run that has ended, or of another version of Weir");
  }
  memory = static_cast<TurnMemory*>(at);
  program = static_cast<uint32_t>(std::strtoul(number, nullptr, 10)) % kTurnPrograms;
  begin_to_measure(memory->compute[program].load(std::memory_order_relaxed));
  pthread_key_create(&ending, at_end);
  pthread_atfork(before_fork, in_parent, in_child);
  // A program that another has become has its place, and the turn.
  const uint32_t first = static_cast<uint32_t>(std::strtoul(place, nullptr, 10)) % kTurnPlaces;
  own_place = place_of_thread();
  // The first of the program is 1 of its namespace.
  is_child = ::getpid() != 1;
  if (own_place != kNoPlace) {
    std::atomic<uint32_t>& nic = memory->place[own_place].nic;
    nic.store(settle_host(variables, nic.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    begin_computing();
    return watch_spins();
  }
  const uint32_t named = memory->place[first].thread.load(std::memory_order_relaxed);
  if (named != 0 && named != static_cast<uint32_t>(::getpid())) refuse("a process that was not started by fork()");
  begin_turns(first);
  watch_spins();
}

// Gives the turn away. What calls have done counts at once, and what only memory tells when what was computed has passed.
bool hand_over(TurnPlace& place, uint32_t causes, Time until, uint32_t by_memory) {
  const OwnWork work;
  const Time computed = ahead();
  if (is_first_thread()) until = std::min(until, next_signal());
  given = given + 1;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  read_count = alike_count = 0;
  place.causes.store(causes, std::memory_order_relaxed);
  place.until.store(until, std::memory_order_relaxed);
  if (contenders > 0 && !contends) note_deed(TurnPlace::kOwn);
  const uint32_t acted = deed.exchange(TurnPlace::kNothing, std::memory_order_relaxed);
  place.deed.store(computed > 0 ? acted : std::max(acted, by_memory), std::memory_order_relaxed);
  place.deed_after.store(computed > 0 ? by_memory : TurnPlace::kNothing, std::memory_order_relaxed);
  place.from.store(computed > 0 ? memory->now.load(std::memory_order_relaxed) + computed : 0, std::memory_order_relaxed);
  place.state.store(TurnPlace::waits, std::memory_order_release);
  wake(place.state);
  await_turn(place);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  given = given + 1;
  return fire_alarm();
}

}  // namespace

bool in_virtual_time() { return own() != nullptr; }

Time read_clock(const void* from) {
  const OwnWork work;
  if (ahead() >= kMostAhead) let_pass();
  alike_count = std::exchange(read_from, from) == from ? alike_count + 1 : 0;
  if (read_count++ == 0) read_since = virtual_now();
  if (alike_count >= kReadings || read_count >= kMostReadings) {
    const bool alike = alike_count >= kReadings;
    // What it computes meanwhile may be time enough.
    if (virtual_now() - read_since < kReadingStep) give_turn(0, virtual_now() + kReadingStep, true);
    read_since = virtual_now();
    if (alike) alike_count = kReadings - kReadingsOfStep;
    read_count = kMostReadings - kReadingsOfStep;
    if (alike) read_count = 0;
  }
  return virtual_now();
}

uint32_t turns_given() { return given; }

Time virtual_now() { return memory->now.load(std::memory_order_acquire) + ahead(); }
Time time_of_network() { return memory->now.load(std::memory_order_acquire); }

bool give_turn(uint32_t causes, Time until, bool idle) {
  TurnPlace* const place = own();
  if (place == nullptr) return false;
  const bool wrote = written.exchange(false, std::memory_order_relaxed);
  return hand_over(*place, causes, until,
                   !idle && !serves ? TurnPlace::kAnything
                   : wrote          ? TurnPlace::kWrites
                                    : TurnPlace::kNothing);
}

void let_pass(Time least) {
  TurnPlace* const place = own();
  // A signal's handler may come while another has the turn.
  if (!computes() || place == nullptr || serves || given % 2 != 0) return;
  const OwnWork work;
  if (ahead() >= least) hand_over(*place, 0, virtual_now(), TurnPlace::kNothing);
}
void let_pass_in_part() {
  if (!is_own_work()) let_pass(kPart);
}

bool wait_until(uint32_t causes, Time until, const std::function<bool()>& done, bool* interrupted) {
  const OwnWork work;
  for (bool idle = false;; idle = true) {
    if (done()) return true;
    if (until <= virtual_now()) return false;
    if (give_turn(causes, until, idle) && interrupted != nullptr) return *interrupted = true, done();
  }
}

uint32_t woken() { return own()->woken.load(std::memory_order_relaxed); }
uint32_t readings() { return read_count; }

void note_deed(TurnPlace::Deed what) {
  if (deed.load(std::memory_order_relaxed) < what) deed.store(what, std::memory_order_relaxed);
}
void note_written() { written.store(true, std::memory_order_relaxed); }
void tell_others() {
  let_pass();
  told_count.fetch_add(1, std::memory_order_relaxed);
  note_deed(TurnPlace::kWrites);
}
void note_write() {
  let_pass();
  note_deed(TurnPlace::kAnything);
}
void note_read() {
  if (in_virtual_time() && memory->want_room.load(std::memory_order_relaxed) > 0) note_write();
}
void want_room(bool whether) { memory->want_room.fetch_add(whether ? 1 : UINT32_MAX, std::memory_order_relaxed); }
void contend(bool whether) {
  contends = whether;
  whether ? ++contenders : --contenders;
}

void begin_to_serve() { serves = in_virtual_time(); }
bool is_server() { return serves; }
bool serve_until(const std::atomic<uint32_t>& word, uint32_t value, Time until) {
  Server* const free =
      std::find_if(std::begin(servers), std::end(servers), [](const Server& one) { return one.word == nullptr; });
  if (free == std::end(servers)) refuse("a process that has opened more than 64 NICs");
  *free = {&word, own_place};
  while (word.load(std::memory_order_acquire) == value && virtual_now() < until) give_turn(TurnPlace::kBell, until, true);
  free->word = nullptr;
  return word.load(std::memory_order_acquire) != value;
}
bool wake_server(const void* word) {
  const Server* const found =
      std::find_if(std::begin(servers), std::end(servers), [&](const Server& one) { return one.word == word; });
  if (found == std::end(servers)) return false;
  memory->place[found->place].until.store(0, std::memory_order_relaxed);
  return true;
}
uint32_t told() { return told_count.load(std::memory_order_relaxed); }

uint32_t take_place() {
  let_pass();
  const uint32_t place = take_turn_place(*memory, program, own()->nic.load(std::memory_order_relaxed));
  if (place == kTurnPlaces) refuse("more than 1024 threads of all programs at a time");
  return place;
}

void begin_turns(uint32_t place) {
  own_place = place;
  memory->place[place].thread.store(static_cast<uint32_t>(::gettid()), std::memory_order_relaxed);
  memory->place[place].process.store(static_cast<uint32_t>(::getpid()), std::memory_order_relaxed);
  pthread_setspecific(ending, memory);
  await_turn(memory->place[place]);
}

void end_turns() {
  let_pass();
  end_watch();
  leave(detached ? TurnPlace::free : TurnPlace::gone);
}
void detach_turns() { detached = true; }

void end_process() {
  let_pass();
  if (is_child) leave(TurnPlace::ends);
}

void hurry(pid_t process) {
  for (uint32_t i = 0; i < std::min(memory->places.load(std::memory_order_relaxed), kTurnPlaces); ++i) {
    TurnPlace& one = memory->place[i];
    const bool meant = process <= 0 || one.process.load(std::memory_order_relaxed) == static_cast<uint32_t>(process);
    if (meant && i != own_place && one.program.load(std::memory_order_relaxed) == program &&
        one.state.load(std::memory_order_relaxed) == TurnPlace::waits) {
      one.until.store(0, std::memory_order_relaxed);
    }
  }
  note_write();
}

bool take_ended_child(pid_t process) {
  const auto is_meant = [&](uint32_t place) {
    const auto child = static_cast<pid_t>(memory->place[place].process.load(std::memory_order_relaxed));
    if (process > 0 || process == -1) return process == -1 || child == process;
    return ::getpgid(child) == (process == 0 ? ::getpgrp() : -process);
  };
  const auto ended =
      std::find_if(children.begin(), children.end(), [&](uint32_t one) { return has_ended(one) && is_meant(one); });
  if (ended == children.end()) return false;
  free_place(*ended);
  children.erase(ended);
  return true;
}

bool has_ended(uint32_t place) { return memory->place[place].state.load(std::memory_order_acquire) == TurnPlace::gone; }

void note_port(uint16_t port) {
  for (std::atomic<uint16_t>& one : memory->ports[program]) {
    if (one.load(std::memory_order_relaxed) == port) return;
    if (one.load(std::memory_order_relaxed) != 0) continue;
    one.store(port, std::memory_order_relaxed);
    return;
  }
}

void free_place(uint32_t place) { memory->place[place].state.store(TurnPlace::free, std::memory_order_release); }

void add_child(uint32_t place, pid_t process) {
  children.push_back(place);
  name_child(process);
}

void name_child(pid_t process) {
  TurnPlace& place = memory->place[children.back()];
  place.thread.store(static_cast<uint32_t>(process), std::memory_order_relaxed);
  place.process.store(static_cast<uint32_t>(process), std::memory_order_relaxed);
}

void refuse(const char* what) {
  std::fprintf(stderr, "weir: virtual time: %s: this program cannot run in virtual time; weir lab run runs it in real time\n",
               what);
  ::_exit(125);
}

}  // namespace weir
