// Receive work requests in order.
#pragma once

#include "base/ring.h"
#include "transport/work.h"

namespace weir {

class ReceiveQueue : public Ring<ReceiveWork> {
 public:
  using Ring::Ring;
  // The oldest is done with; `completion` says how.
  void retire(Completion completion, uint32_t qpn, CompletionSink& completions) {
    completion.id = front().id;
    completion.qpn = qpn;
    completion.receive = true;
    pop();
    completions.complete(completion);
  }
};

}  // namespace weir
