// Signals that ask the process to stop, noticed while its own loop is kept from hearing of them.
#pragma once

#include <signal.h>

namespace weir {

// While one is there, SIGINT and SIGTERM are noticed, and handled as before. Signals that nobody handles are left alone: they end
// the process. Whoever handles them meanwhile in another way is left alone, too. Of any thread.
class StopNotice {
 public:
  StopNotice();
  ~StopNotice();
  StopNotice(const StopNotice&) = delete;
  StopNotice& operator=(const StopNotice&) = delete;

  // Whether there was one, for as long as there are notices.
  bool came() const;
};

}  // namespace weir
