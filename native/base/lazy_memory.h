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
  // may and should, from the first byte on. Throws std::bad_alloc.
  LazyMemory(size_t bytes, bool sparse, bool dense = false) : bytes_(bytes) {
    if (bytes == 0) return;
    mapped_bytes_ = dense ? (bytes + 2 * kHugePage - 1) / kHugePage * kHugePage : bytes;
    mapped_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    if (sparse) ::madvise(mapped_, mapped_bytes_, MADV_NOHUGEPAGE);
    if (dense) ::madvise(mapped_, mapped_bytes_, MADV_HUGEPAGE);
    data_ = static_cast<uint8_t*>(mapped_);
    if (dense) data_ += -reinterpret_cast<uintptr_t>(data_) % kHugePage;
  }
  ~LazyMemory() {
    if (mapped_bytes_ > 0) ::munmap(mapped_, mapped_bytes_);
  }
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  std::span<uint8_t> all() { return {data_, bytes_}; }

  // Zeroes the whole pages of the memory at `from`, which begins at a page: they cost nothing from then on.
  static void forget(void* from, size_t bytes) { ::madvise(from, bytes / kPage * kPage, MADV_DONTNEED); }

 private:
  static constexpr size_t kPage = 64 * 1024;    // no host has larger ones
  static constexpr size_t kHugePage = 2 << 20;  // size on x86-64, and mostly on arm64

  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  uint8_t* data_ = nullptr;
  size_t bytes_;
};

}  // namespace weir
