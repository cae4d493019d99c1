#include "hosts/turns.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

// Real time after which it is looked whether who has the turn lives.
constexpr long kLook = 2'000'000;
// Looks after which a thread that still has the turn is taken for one that never waits: half a minute.
constexpr int kMostLooks = 15'000;
// Looks after which it is looked whether the thread gets a processor: a quarter of a second.
constexpr int kStarvationLooks = 125;
// Looks that a thread still has to give its turn back once somebody asks the run to stop: a second.
constexpr int kStopLooks = 500;
// The same for a process that is about to end: two seconds.
constexpr long kEndLook = 50'000;
constexpr int kMostEndLooks = 40'000;
constexpr int kEndStarvationLooks = 2'500;

void wake(std::atomic<uint32_t>& word) { ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace

Turns::Turns(std::string path, uint32_t nics, std::function<bool()> serve)
    : path_(std::move(path)),
      serve_(std::move(serve)),
      seen_(kTurnPlaces),
      later_(kTurnPlaces),
      processes_(kTurnPrograms),
      overran_(kTurnPrograms),
      writes_(nics),
      processes_seen_(kCountedProcesses) {
  const auto failed = [&](const char* call) {
    return NativeError::from_errno(call, "no memory can be shared with programs at " + path_, "make room in that folder");
  };
  const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) throw failed("open");
  void* at = ::ftruncate(descriptor, sizeof(TurnMemory)) < 0
                 ? MAP_FAILED
                 : ::mmap(nullptr, sizeof(TurnMemory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (at == MAP_FAILED) throw failed("mmap");
  memory_ = static_cast<TurnMemory*>(at);  // all zero, which is how its words begin
  memory_->layout = kTurnsLayout;
  if (::sched_getaffinity(0, sizeof processors_, &processors_) != 0) CPU_ZERO(&processors_);
}

Turns::~Turns() {
  ::munmap(memory_, sizeof *memory_);
  ::unlink(path_.c_str());
}

uint32_t Turns::take_place(uint32_t program, uint32_t nic) {
  const uint32_t place = take_turn_place(*memory_, program, nic);
  if (place == kTurnPlaces) {
    throw NativeError("NO_RESOURCES", 0, "", "programs have more than " + std::to_string(kTurnPlaces) + " threads",
                      "let fewer programs run");
  }
  told_ = true;
  return place;
}

bool Turns::listens(uint32_t program, uint16_t port) const {
  return std::ranges::any_of(memory_->ports[program],
                             [&](const auto& one) { return one.load(std::memory_order_relaxed) == port; });
}

void Turns::set_compute(uint32_t program, double factor) { memory_->compute[program].store(factor, std::memory_order_relaxed); }

bool Turns::may_go_on(uint32_t number) {
  const TurnPlace& place = memory_->place[number];
  const uint32_t state = place.state.load(std::memory_order_acquire);
  if (state == TurnPlace::begins) return true;
  if (state != TurnPlace::waits) return false;
  if (place.from.load(std::memory_order_relaxed) > memory_->now.load(std::memory_order_relaxed)) return false;
  return (news_of(number) & (place.causes.load(std::memory_order_relaxed) | TurnPlace::kTime)) != 0;
}

uint32_t Turns::news_of(uint32_t number) const {
  const TurnPlace& place = memory_->place[number];
  const Seen now = seeing(place);
  const Seen& seen = seen_[number];
  const bool due = place.until.load(std::memory_order_relaxed) <= memory_->now.load(std::memory_order_relaxed);
  return (seen.news != now.news ? TurnPlace::kNews : 0u) | (seen.bells != now.bells ? TurnPlace::kBell : 0u) |
         (seen.own != now.own ? TurnPlace::kProcess : 0u) | (seen.others != now.others ? TurnPlace::kOthers : 0u) |
         (seen.writes != now.writes ? TurnPlace::kShared : 0u) | (due ? TurnPlace::kTime : 0u);
}

uint32_t Turns::number_of_process(const TurnPlace& place) {
  const uint32_t program = place.program.load(std::memory_order_relaxed);
  return (program * 257 + place.process.load(std::memory_order_relaxed)) % kCountedProcesses;
}

uint64_t& Turns::writes_of(const TurnPlace& place) { return writes_[place.nic.load(std::memory_order_relaxed) % writes_.size()]; }

Turns::Seen Turns::seeing(const TurnPlace& place) const {
  const ProcessTurns& process = processes_seen_[number_of_process(place)];
  const uint64_t writes = writes_[place.nic.load(std::memory_order_relaxed) % writes_.size()];
  return {process.news, process.bells, writes, process.changes, all_changes_};
}

void Turns::run(Time now, const std::function<void(uint32_t, int)>& ended) {
  // Most frames are nobody's cause to look.
  if (!told_ && now < next_) return;
  told_ = false;
  memory_->now.store(now, std::memory_order_release);
  for (uint32_t place = 0; place < std::min(memory_->places.load(std::memory_order_relaxed), kTurnPlaces); ++place) {
    const bool counts = memory_->place[place].from.load(std::memory_order_relaxed) <= now;
    if (later_[place] != TurnPlace::kNothing && counts) count(place, std::exchange(later_[place], TurnPlace::kNothing));
  }
  for (bool more = true; more;) {
    more = false;
    // Threads that begin meanwhile have their turns in this round, too.
    for (uint32_t place = 0; place < std::min(memory_->places.load(std::memory_order_relaxed), kTurnPlaces); ++place) {
      if (stops_ || !may_go_on(place)) continue;
      give(place, ended);
      more = true;
    }
  }
  next_ = find_deadline();
}

void Turns::give(uint32_t number, const std::function<void(uint32_t, int)>& ended) {
  TurnPlace& place = memory_->place[number];
  const uint32_t program = place.program.load(std::memory_order_relaxed) % kTurnPrograms;
  place.woken.store(news_of(number), std::memory_order_relaxed);
  seen_[number] = seeing(place);
  place.deed.store(TurnPlace::kAnything, std::memory_order_relaxed);
  place.deed_after.store(TurnPlace::kNothing, std::memory_order_relaxed);
  place.from.store(0, std::memory_order_relaxed);
  place.state.store(TurnPlace::runs, std::memory_order_relaxed);
  place.turn.store(1, std::memory_order_release);
  wake(place.turn);
  const bool lives = await(place, program, ended);
  const uint32_t deed = lives ? place.deed.load(std::memory_order_relaxed) : TurnPlace::kAnything;
  // What it has seen in its turn is nothing new to it.
  if (deed != TurnPlace::kNothing) seen_[number] = seeing(place);
  count(number, deed);
  later_[number] = lives ? place.deed_after.load(std::memory_order_relaxed) : TurnPlace::kNothing;
}

// Has others look at what the thread has done, but not the thread itself.
void Turns::count(uint32_t number, uint32_t deed) {
  const TurnPlace& place = memory_->place[number];
  Seen& own = seen_[number];
  last_process_ = number_of_process(place);
  if (deed == TurnPlace::kAnything) ++all_changes_, ++own.others;
  if (deed >= TurnPlace::kWrites) ++writes_of(place), ++own.writes;
  if (deed != TurnPlace::kNothing) ++processes_seen_[last_process_].changes, ++own.own;
  // Requests come by sockets. Who asked goes on by the answer.
  if (deed == TurnPlace::kAnything && serve_()) ++all_changes_;
}

// Waits until a thread gives its turn back; false: it has ended, or its process has.
bool Turns::await(TurnPlace& place, uint32_t program, const std::function<void(uint32_t, int)>& ended) {
  const timespec look{0, kLook};
  Starvation starvation;
  int most = kMostLooks;
  bool stopped = false;
  for (int looks = 0; place.state.load(std::memory_order_acquire) == TurnPlace::runs; ++looks) {
    ::syscall(SYS_futex, &place.state, FUTEX_WAIT, TurnPlace::runs, &look, nullptr, 0);
    if (place.state.load(std::memory_order_acquire) != TurnPlace::runs) break;
    int status = 0;
    const pid_t process = processes_[program];
    // The first thread of a program has told no number before it has loaded the library.
    const uint32_t thread = place.thread.load(std::memory_order_relaxed);
    if (looks % kStarvationLooks == 0 && help_if_starved(starvation, process, std::max(thread, 1u))) most += kStarvationLooks;
    if (stop_.came() && !std::exchange(stops_, true)) most = std::min(most, looks + kStopLooks);
    if (looks == most && process != 0) {
      stopped = stops_;
      overran_[program] = !stopped;
      ::kill(process, SIGKILL);
    }
    if (process != 0 && ::waitpid(process, &status, WNOHANG) != process) {
      // The first process is heard of by waitpid() alone.
      const bool first = place.process.load(std::memory_order_relaxed) == 1;
      if (looks == 0 || thread == 0 || process == 0 || first || lives(process, thread)) continue;
      // It was ended by a signal.
      place.state.store(TurnPlace::ends, std::memory_order_relaxed);
      break;
    }
    // All of its threads have ended.
    processes_[program] = 0;
    for (uint32_t i = 0; i < std::min(memory_->places.load(std::memory_order_relaxed), kTurnPlaces); ++i) {
      if (memory_->place[i].program.load(std::memory_order_relaxed) == program) memory_->place[i].state.store(TurnPlace::gone);
    }
    if (process != 0 && !stopped) ended(program, status);
    return false;
  }
  if (place.state.load(std::memory_order_acquire) == TurnPlace::ends) await_end(place, processes_[program]);
  return true;
}

// Linux 6.18 was seen to leave a thread without a processor for a minute, where others computed on the one that programs are kept
// on.
bool Turns::help_if_starved(Starvation& starvation, pid_t first, uint32_t thread) {
  if (first == 0 || !starvation.look(first, thread)) return false;
  spread(processes_, processors_);
  return true;
}

// A process that has said that it ends does so a moment later. Until then its parent could neither wait for it nor hear of it by
// a signal.
void Turns::await_end(TurnPlace& place, pid_t first) {
  const uint32_t process = place.process.load(std::memory_order_relaxed);
  Starvation starvation;
  int most = kMostEndLooks;
  for (int looks = 0; process != 0 && looks < most && lives(first, process); ++looks) {
    if (looks % kEndStarvationLooks == 0 && help_if_starved(starvation, first, process)) most += kEndStarvationLooks;
    const timespec moment{0, kEndLook};
    ::nanosleep(&moment, nullptr);
  }
  for (uint32_t i = 0; i < std::min(memory_->places.load(std::memory_order_relaxed), kTurnPlaces); ++i) {
    TurnPlace& other = memory_->place[i];
    const bool is_same = process != 0 && other.process.load(std::memory_order_relaxed) == process &&
                         other.program.load(std::memory_order_relaxed) == place.program.load(std::memory_order_relaxed);
    if (is_same && &other != &place) other.state.store(TurnPlace::free, std::memory_order_relaxed);
  }
  place.state.store(TurnPlace::gone, std::memory_order_release);
}

Time Turns::find_deadline() const {
  Time next = kNever;
  for (uint32_t i = 0; i < std::min(memory_->places.load(std::memory_order_relaxed), kTurnPlaces); ++i) {
    const TurnPlace& place = memory_->place[i];
    if (place.state.load(std::memory_order_acquire) != TurnPlace::waits) continue;
    const Time from = place.from.load(std::memory_order_relaxed);
    const bool computes = from > memory_->now.load(std::memory_order_relaxed);
    next = std::min<Time>(next, computes ? from : place.until.load(std::memory_order_relaxed));
  }
  return next;
}

}  // namespace weir
