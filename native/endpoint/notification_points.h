// The notification points of a NIC say which flows are owed a CNP, and when (congestion/dcqcn_notification_point.h has the rule).
//
// A flow is all packets to one queue pair; among datagrams, all packets to one queue pair from one there, which the IP address
// and DETH's source QP name. Each queue pair has a place of its own here, by its index. Behind these are some that senders of
// marked datagrams share: a place is a sender's until its window has ended and its CNPs are sent.
//
// A NIC may be able to make only so many CNPs for all its flows together: section 3.3 of the DCQCN paper has one per 1 to 5 us.
// Those that are owed then wait, in turn; one that a flow is owed while it waits for another is withheld: as hardware has one bit
// for it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ring.h"
#include "base/types.h"
#include "congestion/dcqcn_notification_point.h"
#include "wire/packet.h"
#include "wire/roce_builder.h"

namespace weir {

class NotificationPoints {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Senders of marked datagrams at a time.
  static constexpr uint32_t kSenders = 64;

  // `datagrams`: there may be queue pairs of this kind. `withheld` counts, and outlives it.
  NotificationPoints(uint32_t queue_pairs, bool datagrams, uint64_t& withheld);
  // Least time between two CNPs of the NIC; 0: no limit.
  void limit(Time now, Time interval);

  // The place of who sent this datagram to a queue pair; the answer leaves from `own_mac`. kNone: there is none left, or the
  // frame's source MAC address is not that of one station.
  uint32_t sender(uint32_t queue_pair, uint64_t own_mac, const uint8_t* frame, const PacketMeta& meta);

  // A marked packet of the flow at `place` came; windows that end by `now` have been expired. The CNP that it leads to has its
  // partition key. `arrived`: kNever when nobody wants to know it. `interval` is N.
  void on_marked(uint32_t place, Time now, Time interval, uint16_t partition_key, Time arrived);
  // Ends windows up to `at`.
  void expire(Time at, Time interval);
  // When the next window ends.
  Time next_deadline() const { return windows_.empty() ? kNever : points_[windows_.front()].point.window_end(); }

  bool owed() const { return !owed_.empty(); }
  // When the next one may go, if any is owed.
  Time next_cnp() const { return next_cnp_; }
  struct Cnp {
    uint32_t queue_pair;
    uint16_t partition_key;
    Time arrived;                 // arrival of the first marked packet that it answers; kNever: not known
    const RoceTemplate* headers;  // null: those of the queue pair, and its peer's number
    uint32_t destination_qp;      // set with headers
  };
  // The next one; only when owed(), and next_cnp() has come.
  Cnp take(Time now);

  // N is shorter from now on: no window ends later than `latest`.
  void shorten(Time latest);
  // Nothing is owed for this queue pair any more, and its next marked packet is its first.
  void forget(uint32_t queue_pair);
  // The same for all.
  void clear();

 private:
  struct Point {
    NotificationPoint point;
    uint32_t owed = 0;  // CNPs that wait for the link
    uint16_t partition_key = 0;
    Time arrived = kNever;  // arrival of the first marked packet that no CNP has answered
  };

  struct Sender {
    uint32_t queue_pair = kNone;
    uint32_t source_qpn = 0;
    uint8_t ip_version = 0;
    uint8_t address[16] = {};  // IPv4 in the first 4 bytes
    RoceTemplate headers{RocePath{}};
  };

  void owe(uint32_t place);
  uint32_t queue_pair_of(uint32_t place) const { return place < pairs_ ? place : senders_[place - pairs_].queue_pair; }

  uint32_t pairs_;
  uint64_t& withheld_;
  Time interval_ = 0;  // the NIC's
  Time next_cnp_ = 0;
  std::vector<Point> points_;
  std::vector<Sender> senders_;
  // Places, each at most once.
  Ring<uint32_t> owed_;
  Ring<uint32_t> windows_;  // windows all last N, so they are in the order of their ends
};

}  // namespace weir
