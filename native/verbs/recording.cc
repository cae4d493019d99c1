#include "verbs/recording.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace weir {
namespace {

constexpr const char* kFolder = "WEIR_RECORD";
// Bytes that are mapped at a time: a multiple of all pages and of an event.
constexpr size_t kPiece = 40 << 16;

uint64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// Its own GID, which libibverbs knows; zeros where that does not.
void own_gid(ibv_context& context, uint8_t index, uint8_t* out) {
  void* const loaded = ::dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return;
  const auto query = reinterpret_cast<int (*)(ibv_context*, uint8_t, int, ibv_gid*)>(::dlsym(loaded, "ibv_query_gid"));
  ibv_gid gid{};
  if (query != nullptr && query(&context, 1, index, &gid) == 0) std::memcpy(out, gid.raw, sizeof gid.raw);
  ::dlclose(loaded);
}

}  // namespace

std::atomic<Recording*> Recording::current_{Recording::begin()};

// When the provider is loaded. The child of a fork has no file: its parent's is not to have its events.
Recording* Recording::begin() {
  const char* folder = std::getenv(kFolder);
  if (folder == nullptr || *folder == '\0') return nullptr;
  // In virtual time processes of several namespaces may begin with one number at one time.
  std::string path;
  int file = -1;
  for (uint64_t number = now(); file < 0; ++number) {
    path = std::string(folder) + "/" + std::to_string(::getpid()) + "-" + std::to_string(number) + ".rec";
    file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 && errno != EEXIST) break;
  }
  if (file < 0) {
    std::fprintf(stderr, "weir record: %s: %m\n", path.c_str());
    return nullptr;
  }
  auto* recording = new Recording(file);
  ::pthread_atfork(nullptr, nullptr, [] { current_.store(nullptr, std::memory_order_release); });
  recording->write({.kind = RecordedEvent::Kind::process, .bytes = static_cast<uint32_t>(::getpid())});
  return recording->room_ > 0 ? recording : nullptr;
}

void Recording::connects(ibv_context& context, uint32_t queue_pair, const ibv_qp_attr& attributes) {
  RecordedEvent peer{.kind = RecordedEvent::Kind::connects, .queue_pair = queue_pair, .other = attributes.dest_qp_num};
  std::memcpy(peer.gid, attributes.ah_attr.grh.dgid.raw, sizeof peer.gid);
  write(peer);
  RecordedEvent own{.kind = RecordedEvent::Kind::address, .queue_pair = queue_pair};
  own_gid(context, attributes.ah_attr.grh.sgid_index, own.gid);
  write(own);
}

void Recording::posts(uint32_t queue_pair, uint8_t opcode, uint32_t bytes) {
  write({.kind = RecordedEvent::Kind::posts, .opcode = opcode, .queue_pair = queue_pair, .bytes = bytes});
}

void Recording::completes(const ibv_wc& wc) {
  write({.kind = RecordedEvent::Kind::completes,
         .opcode = static_cast<uint8_t>(wc.opcode),
         .status = static_cast<uint8_t>(wc.status),
         .queue_pair = wc.qp_num,
         .bytes = wc.byte_len});
}

// Only the first of several in a row says anything.
void Recording::waits() {
  if (!waits_.load(std::memory_order_relaxed)) write({.kind = RecordedEvent::Kind::waits});
}

void Recording::write(RecordedEvent event) {
  const std::lock_guard lock(mutex_);
  if (next_ == room_ && !grow()) return;
  waits_.store(event.kind == RecordedEvent::Kind::waits, std::memory_order_relaxed);
  event.at = now();
  events_[next_++] = event;
}

// False: the disk is full; what was recorded stays.
bool Recording::grow() {
  if (events_ != nullptr) {
    ::munmap(events_, kPiece);
    mapped_ += kPiece;
    events_ = nullptr;
  }
  room_ = next_ = 0;
  const int error = ::posix_fallocate(file_, static_cast<off_t>(mapped_), kPiece);
  void* const memory =
      error != 0 ? MAP_FAILED : ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_SHARED, file_, static_cast<off_t>(mapped_));
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "weir record: no room for more events (%s): this process is recorded up to here\n",
                 std::strerror(error != 0 ? error : errno));
    current_.store(nullptr, std::memory_order_release);
    return false;
  }
  events_ = static_cast<RecordedEvent*>(memory);
  room_ = kPiece / sizeof(RecordedEvent);
  return true;
}

}  // namespace weir
