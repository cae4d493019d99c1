#include "engine/lent_path.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/native_error.h"
#include "base/struct_bytes.h"

namespace weir {
namespace {

constexpr const char* kNotShared = "no memory can be shared with a program";
constexpr const char* kRaiseLimits = "raise the limits on open files and memory, or end programs that are not used";

}  // namespace

std::unique_ptr<LentPath> LentPath::lend(PacketPort& port, int block, const LentNicConfig& config) {
  const int socket = port.lend(static_cast<uint16_t>(1u << block));
  if (socket < 0) return nullptr;
  std::unique_ptr<LentPath> path(new LentPath(port, block));
  path->socket_ = socket;
  path->config_ = ::memfd_create("weir-path", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // Sealed: a program cannot make it shorter below the worker's feet.
  if (path->config_ < 0 || ::ftruncate(path->config_, sizeof(LentMemory)) < 0 ||
      ::fcntl(path->config_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
    throw NativeError::from_errno("memfd_create", kNotShared, kRaiseLimits);
  }
  path->memory_ = map_lent_memory(path->config_);
  path->mirror_.emplace(path->memory_->mirror);
  path->rewrite(config);
  return path;
}

LentPath::~LentPath() {
  port_.take_back(static_cast<uint16_t>(1u << block_));
  if (socket_ >= 0) ::close(socket_);
  if (config_ >= 0) ::close(config_);
}

void LentPath::rewrite(const LentNicConfig& config) const {
  ByteWriter writer;
  writer.put(config);
  const size_t length = writer.bytes().size();
  if (length > LentMemory::kConfigBytes)
    throw NativeError("NO_RESOURCES", 0, "", "the NIC's configuration is too long to lend", "");
  // Who reads meanwhile finds that it is not there.
  __atomic_store_n(&memory_->length, 0, __ATOMIC_RELEASE);
  std::memcpy(memory_->config, writer.bytes().data(), length);
  __atomic_store_n(&memory_->length, length, __ATOMIC_RELEASE);
}

void UnmapLentMemory::operator()(LentMemory* memory) const { ::munmap(memory, sizeof *memory); }

MappedLentMemory map_lent_memory(int descriptor) {
  struct stat status {};
  const bool whole = ::fstat(descriptor, &status) == 0 && status.st_size == sizeof(LentMemory);
  void* at = whole ? ::mmap(nullptr, sizeof(LentMemory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  if (at == MAP_FAILED) throw NativeError::from_errno("mmap", kNotShared, kRaiseLimits);
  return MappedLentMemory(static_cast<LentMemory*>(at));
}

LentNicConfig read_lent_config(const LentMemory& memory) {
  const uint64_t length = __atomic_load_n(&memory.length, __ATOMIC_ACQUIRE);
  const std::vector<uint8_t> bytes(memory.config, memory.config + std::min<uint64_t>(length, LentMemory::kConfigBytes));
  std::atomic_thread_fence(std::memory_order_acquire);
  LentNicConfig config;
  ByteReader reader(bytes);
  reader.get(config);
  reader.finish(__atomic_load_n(&memory.length, __ATOMIC_RELAXED) == length);
  return config;
}

}  // namespace weir
