#include "transport/connection_watch.h"

#include "transport/aeth.h"
#include "transport/opcode.h"
#include "transport/psn.h"

namespace weir {

bool ConnectionWatch::allows(uint32_t psn, uint32_t packets) const {
  const int32_t ahead = psn_distance(psn, una_);
  return !begun_ || ahead <= 0 || static_cast<uint32_t>(ahead) + packets <= limit_;
}

void ConnectionWatch::sent(Time now, uint32_t psn, uint32_t packets, bool answered) {
  if (!begun_) una_ = end_ = next_ = psn;
  begun_ = true;
  waits_ = false;
  const bool goes_back = psn_distance(psn, next_) < 0;
  next_ = psn_add(psn, packets);
  if (psn_distance(psn, una_) < 0) return;
  if (psn_distance(psn, end_) >= 0) {
    // PSNs that the program may have left out are its own affair.
    end_ = psn_add(psn, packets);
    requests_.push({.end_psn = end_, .answered = answered, .again = false, .sent = now});
    return;
  }
  Request& request = requests_[find(psn)];
  request.again = true;
  request.sent = now;
  if (!goes_back || psn != una_ || std::exchange(sends_again_, false)) return;
  recovering_ = true;
  news_.listen(now, false, static_cast<uint32_t>(psn_distance(end_, una_)));
  news_.timed_out();
  timed_out_at_ = now;
}

// The place of the request that `psn`, of [una, end), belongs to.
uint32_t ConnectionWatch::find(uint32_t psn) const {
  uint32_t low = 0;
  for (uint32_t high = requests_.size() - 1; low < high;) {
    const uint32_t middle = low + (high - low) / 2;
    if (psn_distance(requests_[middle].end_psn, psn) > 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Anything outside what is in flight is a ghost.
void ConnectionWatch::hear(Time now, const Bth& bth, Aeth aeth, bool marked, uint32_t waiting_end) {
  if (psn_distance(bth.psn, una_) < 0 || psn_distance(end_, bth.psn) <= 0) return;
  const bool acknowledges = plain_opcode(bth.opcode) == kOpcodeRcAcknowledge;
  news_.listen(now, bth.becn || (marked && !acknowledges),
               static_cast<uint32_t>(std::max(psn_distance(waiting_end, una_), psn_distance(end_, una_))));
  if (!acknowledges) {
    if (!acknowledge(bth.psn)) return lose();
    if (requests_.front().answered) pass(psn_add(bth.psn, 1));
    return;
  }
  switch (aeth.syndrome & kSyndromeKind) {
    case kSyndromeAck:
      if (!acknowledge(psn_add(bth.psn, 1))) lose();
      return;
    case kSyndromeRnrNak:
      if (waits_) return;
      acknowledge(bth.psn);
      sends_again_ = waits_ = true;
      return;
    case kSyndromeNak:
      acknowledge(bth.psn);
      if (aeth.syndrome == kNakSequence) lose();
      return;
    default:
      return;
  }
}

// Requests before `limit` have arrived; of those that are answered only their answers count. False when one of those is missing.
bool ConnectionWatch::acknowledge(uint32_t limit) {
  while (una_ != limit && !requests_.front().answered) {
    const uint32_t end = requests_.front().end_psn;
    pass(psn_distance(limit, end) < 0 ? limit : end);
  }
  return una_ == limit;
}

void ConnectionWatch::pass(uint32_t psn) {
  const Request& oldest = requests_.front();
  news_.arrived(static_cast<uint32_t>(psn_distance(psn, una_)), oldest.sent, oldest.again);
  una_ = psn;
  if (una_ == oldest.end_psn) requests_.pop();
  recovering_ = false;
  sends_again_ &= una_ != end_;
}

void ConnectionWatch::lose() {
  if (recovering_) return;
  recovering_ = sends_again_ = true;
  news_.lost();
}

bool ConnectionWatch::take(Heard& heard) {
  if (!news_.any()) return false;
  timed_out_at_ = kNever;
  news_.take(heard, static_cast<uint32_t>(psn_distance(end_, una_)));
  return true;
}

}  // namespace weir
