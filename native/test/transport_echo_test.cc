// Echoes of the responder of a reliable connection for packets that met congestion: each mark that arrives is echoed.
#include <map>

#include "test/transport_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

// The right end of a connection that echoes, given single packets; what it answers is kept.
class Echoes {
 public:
  explicit Echoes(LossRecovery recovery) {
    pair_.both([&](QueueAttributes& a) { a.recovery = recovery, a.informs = true; });
    pair_.connect();
    pair_.on_frame = [this](End&, Frame& frame) { return answers.push_back(frame), false; };
  }
  // A request of one packet, `ahead` of the first one.
  void deliver(uint32_t ahead, bool marked, uint8_t opcode = kOpcodeRcWriteOnly) {
    DataHeader header;
    header.opcode = opcode;
    header.ack_request = true;
    header.psn = psn_add(first(), ahead);
    Frame frame = pair_.to(pair_.right, header);
    frame.meta.ecn = marked ? 3 : 2;
    pair_.deliver(pair_.right, frame);
  }
  // Lets the answers go that wait.
  void answer() { pair_.run(1 * kMicrosecond); }
  // Tells for each packet, counted from the first, whether the first answer that acknowledges it had the echo.
  std::map<uint32_t, bool> acknowledged() {
    std::map<uint32_t, bool> echoed;
    uint32_t next = 0;
    for (const Frame& frame : answers) {
      const bool negative = (frame.syndrome() & kSyndromeKind) != kSyndromeAck;
      const uint32_t end = static_cast<uint32_t>(psn_distance(frame.psn(), first())) + (negative ? 0 : 1);
      for (; next < end; ++next) echoed[next] = frame.bth().becn;
    }
    return echoed;
  }
  Pair& pair() { return pair_; }

  std::vector<Frame> answers;

 private:
  uint32_t first() const { return pair_.right_attributes.receive_psn; }

  Pair pair_;
};

using Marks = std::map<uint32_t, bool>;

}  // namespace

TEST_CASE("echo: a packet that came early under selective repeat is acknowledged with its own mark") {
  Echoes echoes(LossRecovery::selective_repeat);
  echoes.deliver(1, true);
  echoes.answer();
  echoes.deliver(2, false);
  echoes.answer();
  echoes.deliver(3, true);
  echoes.answer();
  // NAKs say that they are here, each with the mark of the newest, and acknowledge nothing.
  CHECK(echoes.acknowledged().empty());
  REQUIRE(echoes.answers.size() == 3);
  for (const size_t i : {0, 1, 2}) CHECK(echoes.answers[i].bth().becn == (i != 1));
  echoes.deliver(0, false);
  echoes.answer();
  CHECK(echoes.acknowledged() == Marks{{0, false}, {1, true}, {2, false}, {3, true}});
  echoes.deliver(4, false);
  echoes.answer();
  CHECK_FALSE(echoes.acknowledged()[4]);
}

TEST_CASE("echo: the mark of any copy of an early packet counts, and only for that packet") {
  for (const bool first_marked : {true, false}) {
    Echoes echoes(LossRecovery::selective_repeat);
    echoes.deliver(1, first_marked);
    echoes.deliver(1, !first_marked);
    echoes.answer();
    echoes.deliver(0, false);
    echoes.answer();
    CHECK(echoes.acknowledged() == Marks{{0, false}, {1, true}});
    // Its place is another packet's later.
    for (uint32_t ahead = 2; ahead < kMaxSelectiveWindow; ++ahead) echoes.deliver(ahead, false);
    echoes.answer();
    echoes.deliver(kMaxSelectiveWindow + 1, false);
    echoes.deliver(kMaxSelectiveWindow, false);
    echoes.answer();
    const Marks marks = echoes.acknowledged();
    REQUIRE(marks.size() == kMaxSelectiveWindow + 2);
    for (uint32_t ahead = 2; ahead < marks.size(); ++ahead) CHECK_FALSE(marks.at(ahead));
  }
}

TEST_CASE("echo: the mark of a packet that is discarded for coming early goes with the one that fills the gap, once") {
  Echoes echoes(LossRecovery::go_back_n);
  echoes.deliver(0, false);
  echoes.deliver(2, true);
  echoes.deliver(3, false);
  echoes.answer();
  CHECK(echoes.acknowledged() == Marks{{0, false}});
  for (uint32_t ahead : {1u, 2u, 3u}) {
    echoes.deliver(ahead, false);
    echoes.answer();
  }
  CHECK(echoes.acknowledged() == Marks{{0, false}, {1, true}, {2, false}, {3, false}});
}

TEST_CASE("echo: a packet beyond the window of selective repeat is discarded like any other") {
  Echoes echoes(LossRecovery::selective_repeat);
  echoes.deliver(kMaxSelectiveWindow, true);
  echoes.answer();
  echoes.deliver(0, false);
  echoes.deliver(1, false);
  echoes.answer();
  CHECK(echoes.pair().right.counters.drop_reorder == 1);
  CHECK(echoes.acknowledged() == Marks{{0, true}, {1, false}});
}

TEST_CASE("echo: the mark of a SEND without a receive goes with its repetition") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Echoes echoes(recovery);
    echoes.deliver(0, true, kOpcodeRcSendOnly);
    echoes.answer();
    REQUIRE(echoes.answers.size() == 1);
    CHECK((echoes.answers[0].syndrome() & kSyndromeKind) == kSyndromeRnrNak);
    CHECK_FALSE(echoes.answers[0].bth().becn);
    const Region region = echoes.pair().right.make_region(64);
    echoes.pair().right.receive(region);
    echoes.deliver(0, false, kOpcodeRcSendOnly);
    echoes.deliver(1, false);
    echoes.answer();
    CHECK(echoes.acknowledged() == Marks{{0, true}, {1, false}});
  }
}

TEST_CASE("echo: nothing is remembered of a connection before") {
  Echoes echoes(LossRecovery::go_back_n);
  echoes.deliver(1, true);
  End& right = echoes.pair().right;
  right.rc.modify(QueuePairState::reset, echoes.pair().right_attributes);
  for (QueuePairState state : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
    right.rc.modify(state, echoes.pair().right_attributes);
  }
  echoes.deliver(0, false);
  echoes.answer();
  CHECK(echoes.acknowledged() == Marks{{0, false}});
}
