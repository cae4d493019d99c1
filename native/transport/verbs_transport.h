// A queue pair that an application drives: its state, and its work requests on their way in and out.
#pragma once

#include <cstdint>

#include "transport/queue_attributes.h"
#include "transport/receive_queue.h"
#include "transport/send_queue.h"
#include "transport/transport.h"

namespace weir {

class VerbsTransport : public Transport {
 public:
  QueuePairState state() const { return state_; }
  // Throws NativeError INVALID_STATE for an illegal transition, INVALID_ATTRIBUTE. Attributes that no state needs yet are
  // ignored, and so are those that an earlier transition has settled: rtr all that concerns receiving and both ends, but the
  // access rights and min_rnr_timer, which rts to rts may change too, and from SQD timeout and counts of retries.
  void modify(QueuePairState to, const QueueAttributes& attributes);
  // SQD, in rts: work is taken and waits, but for that which has begun. A transition to rts ends this, and SQE.
  void drain();
  SendQueueState send_queue_state() const;
  // For a reliable connection: while requests are held, data_bytes() is about answers to the peer alone.
  void hold_requests(bool held) {
    if (held == holds_requests_) return;
    holds_requests_ = held;
    changed_ = true;
  }
  // For a reliable connection: see Requester.
  virtual void expect_reads(uint32_t) {}
  // True while the taker of frames has no room for many more of them.
  virtual bool crowded(Time) const { return false; }
  // Posts so many requests that are all the same. Those that cannot be taken are completed at once: flushed in the error state
  // and in SQE, else as a local operation error.
  void post_send(const SendWork& work, uint32_t times = 1);
  void post_receive(const ReceiveWork& work, uint32_t times = 1);
  bool may_receive() const { return state_ == QueuePairState::rtr || state_ == QueuePairState::rts; }
  const Received& received() const { return received_; }

 protected:
  // Depths: most work requests, 1..2^15. `shared`: where receives come from, if they are not the queue pair's own.
  VerbsTransport(uint32_t qpn, const TransportContext& context, uint32_t send_depth, uint32_t receive_depth,
                 SharedReceives* shared = nullptr)
      : qpn_(qpn), context_(context), sends_(send_depth), receives_(receive_depth, shared) {}

  void refuse(uint64_t id, bool receive);
  // Enters the state, which is set by now; attributes_ are those before.
  virtual void enter(QueuePairState from, const QueueAttributes& attributes) = 0;
  // Reset, or in the error state: frees what enter() took.
  virtual void stop() = 0;
  // Whether this type of queue pair has the operation, with that length.
  virtual bool serves(const SendWork& work) const = 0;
  // True for a key of the same partition, that is: the same key, and not both limited members (IBTA volume 1, 10.9.3).
  bool admits(uint16_t partition_key) const;
  // The queue pair is of no more use. `status` is what went wrong with the oldest send; success: nothing, it is flushed.
  void fail(WorkStatus status);
  // Whether it fails by the packet at hand, as a fault has it that is made on purpose.
  bool fails_by(const PacketMeta& meta) {
    if (meta.failure == 0) [[likely]]
      return false;
    fail(static_cast<WorkStatus>(meta.failure));
    return true;
  }
  void flush();
  // The oldest send is not valid. SQE, where it is offered and the service has no acknowledgements, or the queue pair is of no
  // more use.
  void fail_send(WorkStatus status);
  // Whether something has begun that draining has to wait for.
  virtual bool busy() const = 0;
  bool begins() const { return send_queue_ == SendQueueState::runs; }

  uint32_t qpn_;
  TransportContext context_;
  QueuePairState state_ = QueuePairState::reset;
  QueueAttributes attributes_;
  SendQueue sends_;
  ReceiveQueue receives_;
  Received received_;
  SendQueueState send_queue_ = SendQueueState::runs;  // never `drained`: send_queue_state() tells
  bool holds_requests_ = false;
  mutable bool changed_ = true;  // data_bytes() has to be worked out anew
};

// Forward one by one, and from anywhere to reset and error (IBTA volume 1, 10.3.1).
bool may_become(QueuePairState from, QueuePairState to);
// Throws NativeError INVALID_STATE unless it may.
void require_transition(QueuePairState from, QueuePairState to);
// Throws NativeError INVALID_ATTRIBUTE if one of them is out of its range.
void require_attributes(const QueueAttributes& attributes);

}  // namespace weir
