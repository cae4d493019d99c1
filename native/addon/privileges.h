// Privileges that a daemon gives up once it runs.
#pragma once

#include <cstdint>
#include <vector>

namespace weir {

// limitCapabilities(keep): in all threads of the process, and for good, capabilities are those of `keep` (numbers of
// linux/capability.h) that the thread has; no new ones come by executing a program (no_new_privs). Throws NativeError, with
// threads as they were so far.
void limit_capabilities(const std::vector<uint32_t>& keep);

}  // namespace weir
