#include "engine/lent_path.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "base/native_error.h"
#include "base/struct_bytes.h"

namespace weir {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;

}  // namespace

std::unique_ptr<LentPath> LentPath::lend(PacketPort& port, int block, const LentNicConfig& config) {
  const int socket = port.lend(static_cast<uint16_t>(1u << block));
  if (socket < 0) return nullptr;
  std::unique_ptr<LentPath> path(new LentPath(port, block));
  path->socket_ = socket;
  path->config_ = ::memfd_create("weir-path", MFD_CLOEXEC);
  if (path->config_ < 0) throw NativeError::from_errno("memfd_create", "no memory can be shared with a program", "");
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
  const uint64_t length = writer.bytes().size();
  if (::pwrite(config_, writer.bytes().data(), length, sizeof length) != static_cast<ssize_t>(length) ||
      ::pwrite(config_, &length, sizeof length, 0) != sizeof length) {
    throw NativeError::from_errno("pwrite", "no memory can be shared with a program", "");
  }
}

LentNicConfig read_lent_config(int memory) {
  uint64_t length = 0;
  if (::pread(memory, &length, sizeof length, 0) != sizeof length || length > kMostBytes) length = 0;
  std::vector<uint8_t> bytes(length);
  if (::pread(memory, bytes.data(), length, sizeof length) != static_cast<ssize_t>(length)) bytes.clear();
  LentNicConfig config;
  ByteReader(bytes).get(config);
  return config;
}

}  // namespace weir
