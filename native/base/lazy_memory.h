// Zeroed memory of which only the pages that were ever touched cost anything.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace weir {

class LazyMemory {
 public:
  // `sparse`: only the start of each large piece is commonly used, so the kernel must not fill it up with huge pages. `dense`: it
  // may and should. Throws std::bad_alloc.
  LazyMemory(size_t bytes, bool sparse, bool dense = false) : bytes_(bytes) {
    if (bytes == 0) return;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    if (sparse) ::madvise(memory, bytes, MADV_NOHUGEPAGE);
    if (dense) ::madvise(memory, bytes, MADV_HUGEPAGE);
    data_ = static_cast<uint8_t*>(memory);
  }
  ~LazyMemory() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  std::span<uint8_t> all() { return {data_, bytes_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_;
};

}  // namespace weir
