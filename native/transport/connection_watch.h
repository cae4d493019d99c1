// The daemon's view of a reliable connection whose transport runs in a program: for congestion control by acknowledgements,
// which is the daemon's, from the packets that pass. It sees requests as they leave and answers as they come, and takes from
// them the same as the completer (transport/completer.h) with go-back-N, by which programs recover:
//
//   una   the oldest PSN that is not acknowledged, or whose response has not come
//   end   behind the newest PSN that has left
//
// The program's own timer shows in its going back to una when nothing that was told is a reason to.
//
// It believes a program's PSNs. Whatever these are, the packets in flight are bounded, and so are memory and
// work: one place for each packet in flight, of which a READ's request is one, and none further than the window.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ring.h"
#include "base/types.h"
#include "transport/heard_news.h"
#include "wire/bth.h"
#include "wire/extension_headers.h"

namespace weir {

class ConnectionWatch {
 public:
  // `most`: packets in flight at most, whatever congestion control says; `telemetry`: answers may bring some.
  ConnectionWatch(uint32_t most, bool telemetry) : most_(most), limit_(most), requests_(most) { news_.start(telemetry); }

  // Congestion control: packets in flight at most.
  void limit(uint32_t packets) { limit_ = std::min(packets, most_); }
  // Whether a request that takes up these PSNs may leave now. The oldest always may.
  bool allows(uint32_t psn, uint32_t packets) const;
  // It has left; `answered`: with data, or with the result of an atomic.
  void sent(Time now, uint32_t psn, uint32_t packets, bool answered);

  // An answer has come. `aeth`: where it has one; `waiting_end`: behind the newest PSN of the requests that wait to leave, or of
  // those that have left.
  void hear(Time now, const Bth& bth, Aeth aeth, bool marked, uint32_t waiting_end);
  void take_telemetry(const uint8_t* telemetry, TransportCounters& counters) { news_.take_telemetry(telemetry, counters); }
  // Works as Transport::take_heard().
  bool take(Heard& heard);
  // When the program's timer has shown itself and take() has not told of it; kNever: it has not.
  Time timed_out_at() const { return timed_out_at_; }
  uint32_t end() const { return end_; }

 private:
  struct Request {
    uint32_t end_psn : 30;  // PSN behind its last packet
    uint32_t answered : 1;
    uint32_t again : 1;  // it was sent more than once
    Time sent;           // its latest transmission
  };
  bool acknowledge(uint32_t limit);
  void pass(uint32_t psn);
  void lose();
  uint32_t find(uint32_t psn) const;

  uint32_t most_;
  uint32_t limit_;
  uint32_t una_ = 0;
  uint32_t end_ = 0;
  uint32_t next_ = 0;  // PSN behind the packet that has left last
  bool begun_ = false;
  bool recovering_ = false;   // a loss was told, and nothing new was acknowledged since
  bool sends_again_ = false;  // the program was given a reason to, and has not yet
  bool waits_ = false;        // the peer was not ready, and nothing has left since
  Time timed_out_at_ = kNever;
  Ring<Request> requests_;  // those whose PSNs are from una to end
  HeardNews news_;
};

}  // namespace weir
