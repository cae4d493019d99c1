#include "verbs/preload_compute.h"

#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "verbs/preload_turns.h"

#define WEIR_OF_THREAD __attribute__((tls_model("initial-exec")))

namespace weir {

double compute_factor = 0;

namespace {

constexpr int kTrials = 33;

// Of the processor's time, ns: what is between two readings of it that follow one another, and what a trap takes.
Time reading_cost = 0;
Time trap_cost = 0;

thread_local Time accounted WEIR_OF_THREAD = 0;  // all before that time of the thread's processor
thread_local Time looked WEIR_OF_THREAD = 0;     // when the thread was looked at last, likewise
thread_local double unpassed WEIR_OF_THREAD = 0;
thread_local double computed WEIR_OF_THREAD = 0;
thread_local volatile unsigned depth WEIR_OF_THREAD = 0;
std::atomic<Time> computed_of_process{0};

// The call that programs have is answered by this library.
Time processor_time() {
  timespec t{};
  long result = SYS_clock_gettime;
  __asm__ volatile("syscall" : "+a"(result) : "D"(long{CLOCK_THREAD_CPUTIME_ID}), "S"(&t) : "rcx", "r11", "memory");
  return time_of(t);
}

// What something takes of the processor, with what two readings do.
template <class Something>
Time median_of(const Something& something) {
  Time taken[kTrials];
  for (Time& one : taken) {
    const Time before = processor_time();
    something();
    one = processor_time() - before;
  }
  std::sort(std::begin(taken), std::end(taken));
  return taken[kTrials / 2];
}

void account_until(Time processor) {
  const double passed = compute_factor * static_cast<double>(std::max<Time>(0, processor - accounted - reading_cost));
  accounted = std::max(accounted, processor);
  unpassed += passed;
  computed += passed;
  computed_of_process.fetch_add(static_cast<Time>(passed), std::memory_order_relaxed);
}

bool is_counted() { return computes() && in_virtual_time() && !is_server(); }

// A signal's handler that comes meanwhile finds this library at work.
void account() {
  if (!is_counted() || depth > 0) return;
  depth = depth + 1;
  account_until(processor_time());
  depth = depth - 1;
}

}  // namespace

void begin_to_measure(double factor) {
  compute_factor = factor;
  if (!computes()) return;
  reading_cost = median_of([] {});
}

Time ahead() {
  account();
  return static_cast<Time>(unpassed);
}
Time computed_by_thread() {
  account();
  return static_cast<Time>(computed);
}
Time computed_by_process() {
  account();
  return computed_of_process.load(std::memory_order_relaxed);
}

void begin_computing() {
  if (!computes()) return;
  unpassed = 0;
  accounted = processor_time();
}
void forget_computed() {
  computed = 0;
  computed_of_process.store(0, std::memory_order_relaxed);
}
void forget_computing() {
  if (computes()) accounted = processor_time();
}

void note_look() {
  if (!is_counted() || depth > 0) return;
  depth = depth + 1;
  if (looked > accounted) account_until(looked);
  looked = processor_time();
  depth = depth - 1;
}

void measure_traps(void (*trap)()) {
  if (!computes()) return;
  trap_cost = std::max<Time>(0, median_of(trap) - reading_cost);
}

void begin_own_work() {
  if (!computes()) return;
  account();
  depth = depth + 1;
}
void end_own_work() {
  if (!computes()) return;
  depth = depth - 1;
  // Of a trap more may be paid already.
  if (depth == 0) accounted = std::max(accounted, processor_time());
}
bool is_own_work() { return depth > 0; }

// Half of a trap is before its handler, about.
TrapWork::TrapWork(bool steps) {
  if (!computes()) return;
  if (depth == 0) accounted = steps ? processor_time() : accounted + trap_cost / 2;
  if (!steps) account();
  depth = depth + 1;
}
TrapWork::~TrapWork() {
  if (!computes()) return;
  end_own_work();
  if (depth == 0) accounted += trap_cost / 2;
}

ProgramsWork::ProgramsWork() : depth_(depth) {
  if (!computes()) return;
  depth = 0;
  accounted = processor_time();
}
ProgramsWork::~ProgramsWork() {
  if (!computes()) return;
  account();
  depth = depth_;
}

}  // namespace weir
