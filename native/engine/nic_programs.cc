#include "engine/nic_programs.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <new>
#include <string>
#include <utility>

#include "base/native_error.h"
#include "engine/lent_news.h"

namespace weir {
namespace {

constexpr const char* kRemedy = "raise the limits on open files and memory, or end programs that are not used";

int made(int fd, const char* syscall) {
  if (fd < 0) throw NativeError::from_errno(syscall, "no memory can be shared with a program", kRemedy);
  return fd;
}

}  // namespace

struct NicPrograms::Program {
  Program() {
    try {
      // Sealed: a program cannot make it shorter below the worker's feet.
      memory_fd = made(::memfd_create("weir-program", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create");
      if (::ftruncate(memory_fd, sizeof(ProgramMemory)) < 0 ||
          ::fcntl(memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        throw NativeError::from_errno("ftruncate", "no memory can be shared with a program", kRemedy);
      }
      void* at = ::mmap(nullptr, sizeof(ProgramMemory), PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
      if (at == MAP_FAILED) throw NativeError::from_errno("mmap", "no memory can be shared with a program", kRemedy);
      memory = static_cast<ProgramMemory*>(at);  // all zero, which is how its words begin
      wake_fd = made(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd");
      link = std::make_unique<ProgramLink>(*memory);
    } catch (...) {
      release();
      throw;
    }
  }
  ~Program() { release(); }
  void release() {
    link.reset();
    if (memory != nullptr) {
      memory->ended.store(1, std::memory_order_release);
      ring(true);
      ::munmap(memory, sizeof *memory);
    }
    if (memory_fd >= 0) ::close(memory_fd);
    if (wake_fd >= 0) ::close(wake_fd);
  }
  void count(SoftNic& nic, WirePort* port) {
    if (path != nullptr) {
      link->pass(account.take(memory->lent, nic, *port));
      for (const uint32_t qpn : queue_pairs) {
        if (QpCounters* counters = nic.applications().counters(qpn); counters != nullptr)
          account.read(memory->lent, qpn, *counters);
      }
    }
    link->count(nic.transport_counters());
  }
  // `sleeps`: the program may wait in the kernel.
  void ring(bool sleeps) const {
    memory->bell.fetch_add(1, std::memory_order_release);
    if (sleeps) ::syscall(SYS_futex, &memory->bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  int memory_fd = -1;
  int wake_fd = -1;
  ProgramMemory* memory = nullptr;
  std::unique_ptr<ProgramLink> link;
  std::unique_ptr<LentPath> path;
  LentAccount account;
  std::set<uint32_t> queue_pairs;
  QpCounters past;
};

NicPrograms::NicPrograms() : descriptor_(made(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {}

NicPrograms::~NicPrograms() {
  programs_.clear();
  ::close(descriptor_);
}

ProgramOpening NicPrograms::open() {
  if (programs_.size() >= kMost) {
    throw NativeError("NO_RESOURCES", 0, "", std::to_string(kMost) + " programs use the NIC, which is as many as can",
                      "end some of them");
  }
  auto program = std::make_unique<Program>();
  // Edge-triggered: what a program writes is never read, so it cannot make the worker wait.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  if (::epoll_ctl(descriptor_, EPOLL_CTL_ADD, program->wake_fd, &event) < 0) {
    throw NativeError::from_errno("epoll_ctl", "no memory can be shared with a program", kRemedy);
  }
  const ProgramOpening opening{.number = ++last_, .memory = program->memory_fd, .wake = program->wake_fd};
  program->memory->links.store(link_up_ ? 0 : 1, std::memory_order_relaxed);
  program->memory->mtu.store(path_mtu_, std::memory_order_relaxed);
  programs_[last_] = std::move(program);
  return opening;
}

void NicPrograms::count(uint32_t number, SoftNic& nic, WirePort* port) { programs_.at(number)->count(nic, port); }

bool NicPrograms::close(uint32_t number) {
  const auto found = programs_.find(number);
  if (found == programs_.end()) return false;
  // Others may still hold its descriptor: until they close theirs, the set would keep it.
  ::epoll_ctl(descriptor_, EPOLL_CTL_DEL, found->second->wake_fd, nullptr);
  programs_.erase(found);
  return true;
}

ProgramLink* NicPrograms::find(uint32_t number) {
  const auto found = programs_.find(number);
  return found == programs_.end() ? nullptr : found->second->link.get();
}

std::set<uint32_t>& NicPrograms::queue_pairs(uint32_t number) { return programs_.at(number)->queue_pairs; }

void NicPrograms::forget(uint32_t number, uint32_t qpn, const QpCounters& counted) {
  Program& program = *programs_.at(number);
  program.queue_pairs.erase(qpn);
  program.past.add(counted);
}

void NicPrograms::witness() {
  for (const auto& [number, program] : programs_) {
    if (program->path != nullptr) program->path->witness();
  }
}

LentPath* NicPrograms::path(uint32_t number) { return programs_.at(number)->path.get(); }

void NicPrograms::give_path(uint32_t number, std::unique_ptr<LentPath> path) { programs_.at(number)->path = std::move(path); }

void NicPrograms::rewrite_paths(const LentNicConfig& config) {
  for (const auto& [number, program] : programs_) {
    if (program->path == nullptr) continue;
    program->path->rewrite(config);
    program->memory->paths.fetch_add(1, std::memory_order_release);
  }
}

std::vector<uint32_t> NicPrograms::numbers() const {
  std::vector<uint32_t> out;
  for (const auto& [number, program] : programs_) out.push_back(number);
  return out;
}

const QpCounters& NicPrograms::past(uint32_t number) const { return programs_.at(number)->past; }

void NicPrograms::count(SoftNic& nic, WirePort* port) {
  for (const auto& [number, program] : programs_) program->count(nic, port);
}

void NicPrograms::take(SoftNic& nic) {
  for (const auto& [number, program] : programs_) {
    if (!program->link->waiting()) continue;
    program->link->take(nic.transport_counters(), [&](uint32_t qpn) { nic.applications().attend_to(qpn); });
  }
}

void NicPrograms::publish(const Told& told) {
  for (const auto& [number, program] : programs_) {
    program->link->publish();
    const bool has_cause = program->link->has_cause();
    const bool rings = program->link->take_wake();
    if (rings) program->ring(told == nullptr);
    if (has_cause && told != nullptr) told(number, rings);
  }
}

void NicPrograms::change_link(bool up) {
  link_up_ = up;
  for (const auto& [number, program] : programs_) program->memory->links.fetch_add(1, std::memory_order_release);
}

bool NicPrograms::tell(bool gids, uint32_t path_mtu) {
  path_mtu_ = path_mtu;
  for (const auto& [number, program] : programs_) {
    program->memory->mtu.store(path_mtu, std::memory_order_relaxed);
    if (gids) program->memory->gids.fetch_add(1, std::memory_order_release);
  }
  return !programs_.empty();
}

bool NicPrograms::crowded(Time now) {
  bool any = false;
  for (const auto& [number, program] : programs_) any |= program->link->crowded(now);
  return any;
}

void NicPrograms::doze() {
  for (const auto& [number, program] : programs_) program->memory->nic_sleeps.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void NicPrograms::rise() {
  epoll_event events[16];
  while (!programs_.empty() && ::epoll_wait(descriptor_, events, 16, 0) == 16) continue;
  for (const auto& [number, program] : programs_) program->memory->nic_sleeps.store(0, std::memory_order_relaxed);
}

bool NicPrograms::waiting() const {
  for (const auto& [number, program] : programs_) {
    if (program->link->waiting()) return true;
  }
  return false;
}

}  // namespace weir
