// Listener that hears of the messages that a NIC's streams send and receive. It must not call the stream that tells it.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "transport/work.h"

namespace weir {

class MessageListener {
 public:
  // Message `number` (from 0) of queue pair `qpn` is complete: acknowledged, where its stream is reliable. An unacknowledged
  // stream tells of its end only, at the receiver: `number` is its last message's, `bytes` is all, and `posted` is its start.
  virtual void message_completed(uint32_t qpn, uint64_t number, uint64_t bytes, Time posted, Time now) = 0;
  // A stream has sent all it had, and it is acknowledged; or its connection has failed.
  virtual void stream_ended(uint32_t qpn, bool failed, Time now) = 0;
  // A message that was posted to a stream (SoftNic::post()) is acknowledged, just after message_completed() told of it; or it has
  // come, whole, at the other end.
  enum class Posted : uint8_t { acknowledged, arrived };
  virtual void posted_message(Posted, uint32_t /*qpn*/, uint32_t /*word*/, Time) {}
  // A reliable stream that begins again has a connection (success), or its first or its present one has failed, and why.
  virtual void stream_connected(uint32_t, WorkStatus, Time) {}

 protected:
  ~MessageListener() = default;
};

}  // namespace weir
