// A transport that an application drives with work requests.
#pragma once

#include "transport/queue_attributes.h"
#include "transport/transport.h"

namespace weir {

class VerbsTransport : public Transport {
 public:
  virtual QueuePairState state() const = 0;
  // Throws NativeError INVALID_STATE for an illegal transition, INVALID_ATTRIBUTE. What no state needs yet of the attributes is
  // ignored, and so is what an earlier transition has settled: rtr all that concerns receiving and both ends, but the access
  // rights and min_rnr_timer, which rts to rts may change too.
  virtual void modify(QueuePairState to, const QueueAttributes& attributes) = 0;
  // Work that cannot be taken is completed at once: flushed in the error state, else as a local operation error.
  virtual void post_send(const SendWork& work) = 0;
  virtual void post_receive(const ReceiveWork& work) = 0;
};

// Whether a packet of partition `theirs` may reach a queue pair of `ours`: the same key, and not both limited members (IBTA
// volume 1, 10.9.3).
constexpr bool same_partition(uint16_t ours, uint16_t theirs) {
  return ((ours ^ theirs) & 0x7fff) == 0 && ((ours | theirs) & 0x8000) != 0;
}

// Throws NativeError INVALID_STATE unless a queue pair may go from one state to the other.
void require_transition(QueuePairState from, QueuePairState to);

// Throws NativeError INVALID_ATTRIBUTE if one of them is out of its range.
void require_attributes(const QueueAttributes& attributes);

// The completion of work that was not begun.
Completion refused_work(uint32_t qpn, uint64_t id, bool receive, WorkStatus status);

}  // namespace weir
