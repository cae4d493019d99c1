// Memory that a program in virtual time shares with others: what is written there is no call that this library sees. The kernel
// tells which pages were written since the last time, from Linux 6.7 on.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <vector>

#include "verbs/preload.h"
#include "verbs/preload_turns.h"

namespace weir {
namespace {

// Of linux/userfaultfd.h and linux/fs.h, where those are older: pages that are protected are written all the same, and told.
constexpr uint64_t kOfSharedMemory = 1 << 12, kUnpopulated = 1 << 13, kAsynchronous = 1 << 15;
struct PageRegion {
  uint64_t start, end, categories;
};
struct PageScan {
  uint64_t size, flags, start, end, walk_end, regions, regions_length, most_pages;
  uint64_t inverted, all_of, any_of, told;
};
constexpr unsigned long kScan = _IOWR('f', 16, PageScan);
constexpr uint64_t kProtect = 1 << 0;
constexpr uint64_t kProtectable = 1 << 0, kWritten = 1 << 1;

// Descriptors are kept out of the way of programs that count theirs.
constexpr int kFirstDescriptor = 900;
int put_away(int descriptor) {
  if (descriptor < 0) return -1;
  const int kept = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstDescriptor);
  if (kept < 0) return descriptor;
  ::syscall(SYS_close, descriptor);
  return kept;
}

class Watch {
 public:
  void add(uint64_t start, uint64_t length) {
    ranges_.push_back({start, length});
    begin();
    watch(ranges_.back());
  }
  bool works() const { return state_ == State::works; }
  bool has_written() {
    begin();
    bool any = false;
    for (size_t i = 0; works() && i < watched_.size(); ++i) any |= scan(watched_[i]);
    return any;
  }
  // A child's memory is another.
  void forget() {
    for (const int one : {faults_, pages_}) {
      if (one >= 0) ::syscall(SYS_close, one);
    }
    faults_ = pages_ = -1;
    if (state_ == State::works) state_ = State::unknown;
  }

 private:
  enum class State : uint8_t { unknown, works, refused };
  struct Range {
    uint64_t start, length;
  };

  void begin() {
    if (state_ != State::unknown) return;
    state_ = State::refused;
    faults_ = put_away(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    pages_ = put_away(static_cast<int>(::syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC)));
    uffdio_api api{.api = UFFD_API, .features = kOfSharedMemory | kUnpopulated | kAsynchronous, .ioctls = 0};
    if (faults_ < 0 || pages_ < 0 || ::ioctl(faults_, UFFDIO_API, &api) < 0) return;
    state_ = State::works;
    watched_.clear();
    for (const Range& one : ranges_) watch(one);
  }
  // Whether any page was written since the last time.
  bool scan(const Range& range) {
    bool any = false;
    PageRegion regions[32];
    const uint64_t end = range.start + range.length;
    for (uint64_t at = range.start; at < end;) {
      PageScan scan{.size = sizeof(PageScan),
                    .flags = kProtect,
                    .start = at,
                    .end = end,
                    .walk_end = 0,
                    .regions = reinterpret_cast<uint64_t>(regions),
                    .regions_length = std::size(regions),
                    .most_pages = 0,
                    .inverted = 0,
                    .all_of = kProtectable | kWritten,
                    .any_of = 0,
                    .told = kWritten};
      const int found = ::ioctl(pages_, kScan, &scan);
      if (found < 0 || scan.walk_end <= at) {
        state_ = State::refused;
        return true;
      }
      any |= found > 0;
      at = scan.walk_end;
    }
    return any;
  }
  // Files that are no memory cannot be watched, and are not what programs wait for one another by.
  void watch(const Range& range) {
    constexpr uint64_t kPage = 4096;
    const uint64_t length = (range.length + kPage - 1) / kPage * kPage;
    uffdio_register whole{.range = {range.start, length}, .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
    if (!works() || ::ioctl(faults_, UFFDIO_REGISTER, &whole) < 0) return;
    const auto reaches = [&](const Range& one) {
      return one.start <= range.start + length && range.start <= one.start + one.length;
    };
    Range all{range.start, length};
    const auto extend = [&all](const Range& one) {
      const uint64_t end = std::max(all.start + all.length, one.start + one.length);
      all.start = std::min(all.start, one.start);
      all.length = end - all.start;
    };
    // Between ranges there is other memory, and to go through much of that takes longer than another call.
    constexpr size_t kMostRanges = 64;
    const bool many = watched_.size() >= kMostRanges;
    std::erase_if(watched_, [&](const Range& one) {
      const bool joined = many || reaches(one);
      if (joined) extend(one);
      return joined;
    });
    watched_.push_back(all);
  }

  State state_ = State::unknown;
  int faults_ = -1;
  int pages_ = -1;
  std::vector<Range> ranges_;
  std::vector<Range> watched_;  // apart from one another
};

Watch& watch() {
  static Watch one;
  return one;
}
std::atomic<bool> shares{false};

void share(const void* at, size_t length) {
  shares.store(true, std::memory_order_relaxed);
  watch().add(reinterpret_cast<uint64_t>(at), length);
}

// That of a NIC (engine/nic_programs.cc), which tells by itself.
bool is_of_nic(int descriptor) {
  char path[32], name[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(path, name, sizeof name);
  return length > 0 && std::string_view(name, static_cast<size_t>(length)).starts_with("/memfd:weir-program");
}

}  // namespace

void note_mapping(void* at, size_t length, int protection, int flags, int descriptor) {
  const bool shared = at != MAP_FAILED && (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0;
  if (shared && in_virtual_time() && !is_of_nic(descriptor)) share(at, length);
}

void note_attachment(void* at, int number) {
  shmid_ds told{};
  if (in_virtual_time() && at != reinterpret_cast<void*>(-1) && ::shmctl(number, IPC_STAT, &told) == 0) share(at, told.shm_segsz);
}

bool shares_memory() { return shares.load(std::memory_order_relaxed); }
bool knows_writes() { return watch().works(); }
bool has_written() { return watch().has_written(); }
void forget_watch() { watch().forget(); }

}  // namespace weir

extern "C" {

WEIR_EXPORT void* mmap(void* at, size_t length, int protection, int flags, int descriptor, off_t offset) {
  static const auto real = weir::next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  void* const result = real(at, length, protection, flags, descriptor, offset);
  weir::note_mapping(result, length, protection, flags, descriptor);
  return result;
}
WEIR_EXPORT void* mmap64(void* at, size_t length, int protection, int flags, int descriptor, off64_t offset) {
  return mmap(at, length, protection, flags, descriptor, offset);
}

WEIR_EXPORT void* shmat(int number, const void* at, int flags) {
  static const auto real = weir::next<void* (*)(int, const void*, int)>("shmat");
  void* const result = real(number, at, flags);
  weir::note_attachment(result, number);
  return result;
}

}  // extern "C"
