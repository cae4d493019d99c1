#include "engine/thread_tuning.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <span>

namespace weir {
namespace {

// The kernel's struct sched_attr, which glibc 2.36 does not have (sched_setattr(2)).
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};

// An ordinary thread (SCHED_OTHER) with a nice value and a short slice: since Linux 6.12 a thread that wakes up with a
// shorter slice than the running one's takes over at once, where it used to wait for milliseconds. Older kernels ignore it.
bool set_ordinary(int nice) {
  constexpr uint64_t kSlice = 100'000;  // ns, the least that the kernel accepts
  SchedulingAttributes attributes{sizeof(SchedulingAttributes), SCHED_OTHER, 0, nice, 0, kSlice, 0, 0};
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

// Returns whether the host lets it have more than the short slice.
bool set_foremost() {
  if (set_ordinary(-20)) return true;
  set_ordinary(getpriority(PRIO_PROCESS, 0));
  return false;
}

// The kernel keeps a twentieth of each CPU for ordinary threads, and takes it from such a thread unless its naps leave that much.
bool schedule_real_time() {
  const sched_param parameters{.sched_priority = 1};
  return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) == 0;
}

}  // namespace

void schedule_soon() {
  const bool ordinary = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER;
  if (ordinary) set_foremost();
}

ThreadTuning tune_thread(const WorkerConfig& config, PacketMemory& memory) {
  ThreadTuning tuning;
  pthread_setname_np(pthread_self(), ("weir-" + config.name).substr(0, 15).c_str());
  if (config.cpu >= 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(config.cpu, &cpus);
    if (pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus) != 0) {
      tuning.refused.push_back("not pinned to CPU " + std::to_string(config.cpu));
    }
  }
  tuning.real_time = config.real_time && schedule_real_time();
  if (config.real_time && !tuning.real_time) {
    tuning.refused.emplace_back("real-time priority refused (needs CAP_SYS_NICE or RLIMIT_RTPRIO)");
  }
  if (!tuning.real_time && !set_foremost()) {
    tuning.refused.emplace_back("nice -20 refused (needs CAP_SYS_NICE or RLIMIT_NICE)");
  }
  // Pages are locked when they are touched: a pool with room for super-frames is mostly untouched.
  bool locked = true;
  for (const std::span<uint8_t> bytes : {memory.bytes(), memory.long_bytes()}) {
    locked = locked && (bytes.empty() || mlock2(bytes.data(), bytes.size(), MLOCK_ONFAULT) == 0);
  }
  if (!locked) tuning.refused.emplace_back("packet memory not locked (needs CAP_IPC_LOCK or a larger RLIMIT_MEMLOCK)");
  prctl(PR_SET_TIMERSLACK, 1);
  return tuning;
}

}  // namespace weir
