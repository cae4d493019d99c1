// What the parts of the preloaded library have in common.
#pragma once

#include <dlfcn.h>

#define WEIR_EXPORT __attribute__((visibility("default")))

namespace weir {

// The function of this name that a program would have without this library.
template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace weir
