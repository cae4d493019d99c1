// Memory of many small objects in huge pages: where there are tens of megabytes of them, each in pages of its own, a processor
// waits more for page tables than for the objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace weir {

class HugePages {
 public:
  // An object there is used often. It has been made, so that its pages are there.
  void add(const void* object, size_t bytes);
  template <class Element>
  void add(const std::vector<Element>& elements) {
    add(elements.data(), elements.size() * sizeof(Element));
  }
  // Puts the neighbourhoods of the objects into huge pages, as far as the kernel can (from Linux 6.1 on). It copies what is
  // there, so few objects are left where they are.
  void collapse() const;

 private:
  static constexpr size_t kHugePage = 2 << 20;  // size on x86-64, and mostly on arm64
  static constexpr size_t kWorthwhile = kHugePage / 16;

  std::map<uintptr_t, size_t> used_;  // bytes by number of the huge page that they would be in
};

}  // namespace weir
