// DCQCN: the marker, the reaction point and the notification point, with the paper's parameters. QCN: the congestion point and
// the reaction point, with those of 802.1Q. DCTCP, TIMELY, Swift, HPCC and NSCC: what an acknowledgement costs.
#include <cstdint>
#include <type_traits>

#include "base/random.h"
#include "bench/bench_case.h"
#include "congestion/dcqcn_notification_point.h"
#include "congestion/dcqcn_reaction_point.h"
#include "congestion/dctcp_sender.h"
#include "congestion/hpcc_sender.h"
#include "congestion/nscc_sender.h"
#include "congestion/qcn_congestion_point.h"
#include "congestion/qcn_reaction_point.h"
#include "congestion/red_marker.h"
#include "congestion/swift_sender.h"
#include "congestion/timely_sender.h"

namespace weir::bench {
namespace {

constexpr Rate k40G = 40'000'000'000;
constexpr uint32_t kPairs = 1'000;  // queue pairs, in turn

class Red : public BenchCase {
 public:
  explicit Red(uint64_t queue_bytes) : queue_bytes_(queue_bytes) {}
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(marker_.mark(queue_bytes_, random_));
  }

 private:
  uint64_t queue_bytes_;
  RedMarker marker_{RedParameters{}};
  Random random_{1};
};

class ReactionPoint : public BenchCase {
 public:
  ReactionPoint() : points_(kPairs) {
    for (DcqcnReactionPoint& point : points_) {
      point.configure(parameters_, {.line_rate = k40G});
      point.start(0, k40G / 100);
    }
  }

 protected:
  DcqcnParameters parameters_;
  std::vector<DcqcnReactionPoint> points_;
  Time now_ = 0;
  uint64_t next_ = 0;
};

// A packet leaves each queue pair every 20 us: an expiration of a timer at every third. Each has a CNP every 400 us, which keeps
// it limited: the rate settles at some Gb/s.
class ReactionPointSent : public ReactionPoint {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      now_ += 20;
      DcqcnReactionPoint& point = points_[next_ % kPairs];
      point.on_sent(now_, 1'106);
      keep(point.rate());
      if (next_ % kPacketsPerCnp == next_ / kPairs % kPacketsPerCnp) point.on_cnp(now_);
      ++next_;
    }
  }

 private:
  static constexpr uint64_t kPacketsPerCnp = 20;
};

// Each queue pair has a CNP every 50 us.
class ReactionPointCnp : public ReactionPoint {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      now_ += 50;
      DcqcnReactionPoint& point = points_[next_++ % kPairs];
      point.on_cnp(now_);
      keep(point.next_deadline());
    }
  }
};

// Marked packets of each queue pair come every 20 us, and its windows of 50 us are ended when they are over.
class Np : public BenchCase {
 public:
  Np() : points_(kPairs) {}
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      now_ += 20;
      NotificationPoint& point = points_[next_++ % kPairs];
      while (point.window_end() <= now_) keep(point.expire(kInterval));
      keep(point.on_marked(now_, kInterval));
    }
  }

 private:
  static constexpr Time kInterval = 50 * kMicrosecond;
  std::vector<NotificationPoint> points_;
  Time now_ = 0;
  uint64_t next_ = 0;
};

// Frames join a thousand queues in turn, which hold 40 KB each: above the set point, so that each 100th or so is sampled.
class QcnEnqueue : public BenchCase {
 public:
  QcnEnqueue() : points_(kPairs) {
    for (uint32_t i = 0; i < kPairs; ++i) points_[i].configure(&parameters_, Random(1, i));
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(points_[next_++ % kPairs].on_enqueue(40'000, 1'082).quantized);
  }

 private:
  QcnCongestionParameters parameters_;
  std::vector<QcnCongestionPoint> points_;
  uint64_t next_ = 0;
};

// Each frame is sampled.
class QcnSample : public BenchCase {
 public:
  QcnSample() { point_.configure(&parameters_, Random(1)); }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) keep(point_.on_enqueue(40'000 + static_cast<int64_t>(i % 1'000), 1'000'000).quantized);
  }

 private:
  QcnCongestionParameters parameters_;
  QcnCongestionPoint point_;
};

class QcnReaction : public BenchCase {
 public:
  QcnReaction() : points_(kPairs) {
    for (uint32_t i = 0; i < kPairs; ++i) {
      points_[i].configure(parameters_, {.line_rate = k10G, .random = Random(1, i)});
      points_[i].start(0, k10G / 100);
    }
  }

 protected:
  static constexpr Rate k10G = 10'000'000'000;
  QcnParameters parameters_;
  std::vector<QcnReactionPoint> points_;
  Time now_ = 0;
  uint64_t next_ = 0;
};

// A frame leaves each limiter every 88 us, as at 100 Mb/s: a counter completes a cycle at every 100th or so. Each has a CNM every
// 17.6 ms, which keeps it limited.
class QcnReactionSent : public QcnReaction {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      now_ += 88;
      QcnReactionPoint& point = points_[next_ % kPairs];
      point.on_sent(now_, 1'106);
      keep(point.rate());
      if (next_ % kFramesPerCnm == next_ / kPairs % kFramesPerCnm) point.on_cnm(now_, 16);
      ++next_;
    }
  }

 private:
  static constexpr uint64_t kFramesPerCnm = 200;
};

// Each limiter has a CNM every 50 us.
class QcnReactionCnm : public QcnReaction {
 public:
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      now_ += 50;
      QcnReactionPoint& point = points_[next_++ % kPairs];
      point.on_cnm(now_, 16);
      keep(point.next_deadline());
    }
  }
};

// Each sender has a packet acknowledged every 20 us, which is a completion event of TIMELY; the queue swings between 20 and 90
// us, at the first of three hops, which are in use by 95%, and is marked where it is longest.
template <class Sender>
class SenderAck : public BenchCase {
 public:
  SenderAck() : senders_(kPairs) {
    for (Sender& sender : senders_) {
      sender.configure(parameters_, {.line_rate = k40G, .window = 1'024, .packet_bytes = kPacket});
      sender.start(0, k40G / 100);
      sender.on_sent(0, kPacket);
    }
    telemetry_.hops = 3;
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      now_ += 20;
      Sender& sender = senders_[next_ % kPairs];
      const Time rtt = 20 * kMicrosecond + static_cast<Time>(next_ / kPairs % 8) * 10 * kMicrosecond;
      for (TelemetryHop& hop : telemetry_.hop) {
        hop = {.time = static_cast<uint32_t>(now_), .sent = static_cast<uint32_t>(now_ / 20 * 95), .queue = 0, .rate = k40G};
      }
      telemetry_.hop[0].queue = static_cast<uint32_t>(next_ / kPairs % 8 * 50'000);
      sender.on_ack({.packets = 1,
                     .marked = next_ / kPairs % 8 == 7,
                     .in_flight = 8,
                     .wanted = 100,
                     .arrived = now_,
                     .sent = now_ - rtt,
                     .telemetry = &telemetry_});
      keep(sender.window());
      keep(sender.limited() ? sender.rate() : 0);
      ++next_;
    }
  }

 private:
  static constexpr uint32_t kPacket = std::is_same_v<Sender, TimelySender> ? 17'000 : 1'106;  // a segment of TIMELY
  typename Sender::Parameters parameters_;
  std::vector<Sender> senders_;
  Telemetry telemetry_;
  Time now_ = kMillisecond;
  uint64_t next_ = 0;
};

// A packet leaves each sender, which then says whether another may: what there is to do for each packet besides its
// acknowledgement.
template <class Sender>
class SenderSent : public BenchCase {
 public:
  SenderSent() : senders_(kPairs) {
    for (Sender& sender : senders_) {
      sender.configure(parameters_, {.line_rate = k40G, .window = 1'024, .packet_bytes = kPacket});
      sender.start(0, k40G / 100);
    }
  }
  void run(uint64_t count) override {
    for (uint64_t i = 0; i < count; ++i) {
      now_ += 20;
      Sender& sender = senders_[next_++ % kPairs];
      sender.on_sent(now_, kPacket);
      keep(sender.window());
      keep(sender.limited() ? sender.rate() : 0);
    }
  }

 private:
  static constexpr uint32_t kPacket = 1'106;
  typename Sender::Parameters parameters_;
  std::vector<Sender> senders_;
  Time now_ = kMillisecond;
  uint64_t next_ = 0;
};

template <class Sender>
void define_sender(BenchList& list, const std::string& name) {
  define<SenderAck<Sender>>(list, name + " ACK");
  define<SenderSent<Sender>>(list, name + " packet sent");
}

}  // namespace

void define_congestion_cases(BenchList& list) {
  define<Red>(list, "RED below Kmin", uint64_t{1'000});
  define<Red>(list, "RED between Kmin and Kmax", uint64_t{100'000});
  define<Red>(list, "RED above Kmax", uint64_t{300'000});
  define<ReactionPointSent>(list, "RP packet sent");
  define<ReactionPointCnp>(list, "RP CNP");
  define<Np>(list, "NP marked packet");
  define<QcnEnqueue>(list, "QCN CP frame");
  define<QcnSample>(list, "QCN CP sample");
  define<QcnReactionSent>(list, "QCN RP frame sent");
  define<QcnReactionCnm>(list, "QCN RP CNM");
  define_sender<DctcpSender>(list, "DCTCP");
  define_sender<TimelySender>(list, "TIMELY");
  define_sender<SwiftSender>(list, "Swift");
  define_sender<HpccSender>(list, "HPCC");
  define_sender<NsccSender>(list, "NSCC");
}

}  // namespace weir::bench
