// Single faults at every possible place: each frame lost once, repeated late, a link that is dead, a peer that answers as rxe.
#include "test/transport_harness.h"

namespace weir {
namespace {

using test::End;
using test::Frame;
using test::Pair;
using test::Region;

constexpr uint32_t kMtu = 256;
constexpr uint32_t kBytes = 5 * kMtu + 3;

// One message of each kind, and what must come of them.
struct Session {
  explicit Session(LossRecovery recovery = LossRecovery::go_back_n, bool informs = false) {
    pair.both([&](QueueAttributes& a) { a.path_mtu = kMtu, a.recovery = recovery, a.informs = informs; });
    pair.connect();
    word.words[0] = 40;
  }
  void post() {
    pair.right.receive(inbox, 1);
    pair.right.receive(inbox, 2);
    post(WorkOpcode::write, source, target, kBytes);
    post(WorkOpcode::fetch_add, results, word, 8);
    post(WorkOpcode::read, sink, readable, kBytes);
    post(WorkOpcode::send_immediate, source, inbox, kBytes);
    post(WorkOpcode::read, sink, readable, kBytes);
    post(WorkOpcode::write_immediate, source, target, kBytes);
  }
  void post(WorkOpcode opcode, const Region& local, const Region& remote, uint32_t length) {
    SendWork work{next_id++, opcode, kSignaled, length, local.address, local.key, remote.key, remote.address};
    work.swap_add = 2;
    pair.left.rc.post_send(work);
  }
  void check_memory() {
    CHECK(std::memcmp(target.data(), source.data(), kBytes) == 0);
    CHECK(std::memcmp(inbox.data(), source.data(), kBytes) == 0);
    CHECK(std::memcmp(sink.data(), readable.data(), kBytes) == 0);
    CHECK(word.words[0] == 42);
    CHECK(results.words[0] == 40);
  }
  void check() {
    check_memory();
    const std::vector<Completion> sent = pair.left.take();
    REQUIRE(sent.size() == next_id);
    for (uint64_t id = 0; id < next_id; ++id) {
      CHECK(sent[id].id == id);
      CHECK(sent[id].status == WorkStatus::success);
    }
    const std::vector<Completion> received = pair.right.take();
    REQUIRE(received.size() == 2);
    CHECK(received[0].id == 1);
    CHECK(received[1].opcode == WorkOpcode::write_immediate);
  }

  Pair pair;
  Region source = pair.left.make_region(kBytes, 1), sink = pair.left.make_region(kBytes, 2),
         results = pair.left.make_region(8, 3);
  Region target = pair.right.make_region(kBytes, 4), inbox = pair.right.make_region(kBytes, 5);
  Region readable = pair.right.make_region(kBytes, 6), word = pair.right.make_region(8, 7);
  uint64_t next_id = 0;
};

TEST_CASE("any one frame lost") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    int frames = 1;
    for (int lost = 0; lost < frames; ++lost) {
      CAPTURE(lost);
      Session session(recovery);
      int count = 0;
      session.pair.on_frame = [&](End&, Frame&) { return count++ != lost; };
      session.post();
      REQUIRE(session.pair.run(100 * kMillisecond));
      session.check();
      if (lost == 0) frames = count;
    }
    CHECK(frames > 30);
  }
}

TEST_CASE("any run of frames lost in one direction") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (bool leftward : {false, true}) {
      for (int first = 0; first < 20; ++first) {
        for (int length : {2, 3, 7}) {
          CAPTURE(first);
          CAPTURE(length);
          Session session(recovery);
          int count = 0;
          session.pair.on_frame = [&](End& from, Frame&) {
            if ((&from == &session.pair.right) != leftward) return true;
            const int index = count++;
            return index < first || index >= first + length;
          };
          session.post();
          REQUIRE(session.pair.run(100 * kMillisecond));
          session.check();
        }
      }
    }
  }
}

TEST_CASE("every frame repeated later changes nothing; READs and atomics are answered as the first time") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Session session(recovery);
    std::vector<Frame> requests, responses;
    session.pair.on_frame = [&](End& from, Frame& frame) {
      (&from == &session.pair.left ? requests : responses).push_back(frame);
      return true;
    };
    session.post();
    REQUIRE(session.pair.run());
    session.check();
    const std::vector<Frame> old_requests = requests, old_responses = responses;
    std::memset(session.target.data(), 0x5a, kBytes);
    std::memset(session.inbox.data(), 0x5a, kBytes);
    std::memset(session.sink.data(), 0x5a, kBytes);
    session.pair.on_frame = [&](End&, Frame& frame) { return responses.push_back(frame), false; };
    for (int copies = 0; copies < 2; ++copies) {
      for (const Frame& request : old_requests) {
        responses.clear();
        session.pair.deliver(session.pair.right, request);
        session.pair.run(1 * kMillisecond);
        const RequestKind kind = opcode_shape(request.opcode()).kind;
        if (kind == RequestKind::read || kind == RequestKind::atomic) {
          REQUIRE(!responses.empty());
          const size_t due = kind == RequestKind::atomic ? 1 : 6;
          CHECK(responses.size() == due);
          for (const Frame& response : responses) {
            bool seen = false;
            for (const Frame& old : old_responses) {
              const uint32_t data = kBthHeader + extension_length(response.opcode());
              seen = seen || (old.psn() == response.psn() && old.opcode() == response.opcode() &&
                              old.bytes.size() == response.bytes.size() &&
                              std::memcmp(old.packet() + data, response.packet() + data, response.payload()) == 0);
            }
            CHECK(seen);
          }
        } else if (request.bth().ack_request) {
          REQUIRE(responses.size() == 1);
          CHECK(responses[0].syndrome() < kSyndromeRnrNak);
        }
      }
      for (const Frame& response : old_responses) session.pair.deliver(session.pair.left, response);
    }
    CHECK(session.word.words[0] == 42);
    for (const Region* region : {&session.target, &session.inbox, &session.sink}) {
      for (uint32_t i = 0; i < kBytes; ++i) REQUIRE(region->data()[i] == 0x5a);
    }
    CHECK(session.pair.left.completions.empty());
    CHECK(session.pair.right.completions.empty());
    CHECK(session.pair.left.rc.state() == QueuePairState::rts);
    CHECK(session.pair.right.rc.state() == QueuePairState::rts);
  }
}

TEST_CASE("a READ repeated after its region is gone is never answered with data") {
  Session session;
  std::vector<Frame> reads, answers;
  session.pair.on_frame = [&](End& from, Frame& frame) {
    if (frame.opcode() == kOpcodeRcReadRequest) reads.push_back(frame);
    if (&from == &session.pair.right) answers.push_back(frame);
    return true;
  };
  session.post();
  REQUIRE(session.pair.run());
  session.pair.right.memory.remove(session.readable.key);
  answers.clear();
  session.pair.deliver(session.pair.right, reads.at(0));
  session.pair.run(1 * kMillisecond);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].opcode() == kOpcodeRcAcknowledge);
  CHECK(answers[0].syndrome() == kNakRemoteAccess);
  CHECK(session.pair.right.rc.state() == QueuePairState::error);
}

TEST_CASE("a repeated READ for other memory than it was is not answered") {
  Session session;
  std::vector<Frame> reads;
  session.pair.on_frame = [&](End&, Frame& frame) {
    if (frame.opcode() == kOpcodeRcReadRequest) reads.push_back(frame);
    return true;
  };
  session.post();
  REQUIRE(session.pair.run());
  int answers = 0;
  session.pair.on_frame = [&](End&, Frame&) { return ++answers, false; };
  DataHeader header;
  header.opcode = kOpcodeRcReadRequest;
  header.psn = reads.at(0).psn();
  for (const Reth& reth : {Reth{session.readable.address + 8, session.readable.key, kBytes - 8},
                           Reth{session.readable.address, session.readable.key, kBytes + 1},
                           Reth{session.target.address, session.target.key, kBytes}}) {
    header.reth = reth;
    session.pair.deliver(session.pair.right, session.pair.to(session.pair.right, header));
  }
  header.reth = reads[0].reth();
  header.psn = psn_add(header.psn, kPsnMask);  // the atomic before it
  session.pair.deliver(session.pair.right, session.pair.to(session.pair.right, header));
  CHECK(session.pair.run(1 * kMillisecond));
  CHECK(answers == 0);
}

TEST_CASE("a link that is dead: as many tries as agreed on, one ACK timeout apart") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (uint8_t retries : {0, 3, 7}) {
      for (WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::read, WorkOpcode::send}) {
        CAPTURE(retries);
        Session session(recovery);
        session.pair.both([&](QueueAttributes& a) { a.retry_count = retries; });
        session.pair.left.rc.modify(QueuePairState::reset, {});
        session.pair.right.rc.modify(QueuePairState::reset, {});
        session.pair.connect();
        std::vector<Time> tries;
        session.pair.on_frame = [&](End&, Frame& frame) {
          if (frame.psn() == session.pair.left_attributes.send_psn) tries.push_back(session.pair.now);
          return false;
        };
        session.post(opcode, session.source, session.target, kBytes);
        session.post(opcode, session.source, session.target, kBytes);
        CHECK(session.pair.run());
        CHECK(tries.size() == retries + 1u);
        for (size_t i = 1; i < tries.size(); ++i) {
          CHECK(tries[i] - tries[i - 1] >= ack_timeout(8));
          CHECK(tries[i] - tries[i - 1] < ack_timeout(8) * 2);
        }
        const std::vector<Completion> all = session.pair.left.take();
        REQUIRE(all.size() == 2);
        CHECK(all[0].status == WorkStatus::retry_exceeded_error);
        CHECK(all[1].status == WorkStatus::flushed);
        CHECK(session.pair.left.counters.req_transport_retries_exceeded == 1);
        CHECK(session.pair.left.counters.local_ack_timeout_err == retries + 1u);
        CHECK(session.pair.left.rc.state() == QueuePairState::error);
      }
    }
  }
}

TEST_CASE("without an ACK timeout nothing is ever tried again") {
  Session session;
  session.pair.both([](QueueAttributes& a) { a.timeout = 0; });
  session.pair.left.rc.modify(QueuePairState::reset, {});
  session.pair.right.rc.modify(QueuePairState::reset, {});
  session.pair.connect();
  int frames = 0;
  session.pair.on_frame = [&](End&, Frame&) { return ++frames, false; };
  session.post(WorkOpcode::write, session.source, session.target, 8);
  CHECK(session.pair.run());
  CHECK(frames == 1);
  CHECK(session.pair.left.completions.empty());
}

TEST_CASE("go-back-N resumes a WRITE in its middle, without a new RETH") {
  Session session;
  std::vector<uint8_t> opcodes;
  session.pair.on_frame = [&](End& from, Frame& frame) {
    if (&from != &session.pair.left) return true;
    opcodes.push_back(frame.opcode());
    return opcodes.size() != 3;
  };
  session.post(WorkOpcode::write, session.source, session.target, kBytes);
  REQUIRE(session.pair.run());
  CHECK(opcodes == std::vector<uint8_t>{6, 7, 7, 7, 7, 8, 7, 7, 7, 8});
  CHECK(std::memcmp(session.target.data(), session.source.data(), kBytes) == 0);
  CHECK(session.pair.left.counters.packet_seq_err == 1);
  CHECK(session.pair.left.counters.retransmitted == 4);
  CHECK(session.pair.left.counters.local_ack_timeout_err == 0);
}

TEST_CASE("go-back-N needs no timer for losses with others behind them, however many") {
  Session session;
  std::map<uint32_t, int> sent;
  session.pair.on_frame = [&](End& from, Frame& frame) {
    if (&from != &session.pair.left) return true;
    const uint32_t offset = static_cast<uint32_t>(psn_distance(frame.psn(), session.pair.left_attributes.send_psn));
    return offset % 7 != 2 || sent[offset]++ != static_cast<int>(offset / 7);  // a later one each time round
  };
  for (int i = 0; i < 5; ++i) session.post(WorkOpcode::write, session.source, session.target, kBytes);
  REQUIRE(session.pair.run());
  CHECK(session.pair.left.counters.packet_seq_err == 4);
  CHECK(session.pair.left.counters.local_ack_timeout_err == 0);
  CHECK(session.pair.left.take().size() == 5);
}

TEST_CASE("answers that still wait: the packet a NAK asks for takes it back, a repeated one does not") {
  Session session;
  Pair& pair = session.pair;
  DataHeader header;
  header.opcode = kOpcodeRcWriteOnly;
  header.ack_request = true;
  const auto deliver = [&](uint32_t ahead) {
    header.psn = psn_add(pair.right_attributes.receive_psn, ahead);
    pair.deliver(pair.right, pair.to(pair.right, header));
  };
  std::vector<Frame> answers;
  pair.on_frame = [&](End&, Frame& frame) { return answers.push_back(frame), false; };
  deliver(0);
  deliver(2);
  deliver(1);
  pair.run(1 * kMicrosecond);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].syndrome() < kSyndromeRnrNak);
  CHECK(answers[0].psn() == psn_add(pair.right_attributes.receive_psn, 1));
  deliver(3);
  deliver(1);
  pair.run(1 * kMicrosecond);
  REQUIRE(answers.size() == 2);
  CHECK(answers[1].syndrome() == kNakSequence);
  CHECK(answers[1].psn() == psn_add(pair.right_attributes.receive_psn, 2));
}

TEST_CASE("an echo of congestion that waits in a NAK goes with the acknowledgement that takes its place") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Pair pair;
    pair.both([&](QueueAttributes& a) { a.recovery = recovery, a.informs = true; });
    pair.connect();
    DataHeader header;
    header.opcode = kOpcodeRcWriteOnly;
    header.ack_request = true;
    const auto deliver = [&](uint32_t ahead, uint8_t ecn) {
      header.psn = psn_add(pair.right_attributes.receive_psn, ahead);
      Frame frame = pair.to(pair.right, header);
      frame.meta.ecn = ecn;
      pair.deliver(pair.right, frame);
    };
    std::vector<Frame> answers;
    pair.on_frame = [&](End&, Frame& frame) { return answers.push_back(frame), false; };
    deliver(0, 3);
    deliver(2, 2);
    deliver(1, 2);
    pair.run(1 * kMicrosecond);
    // Packet 2 is acknowledged by itself, where it was kept: it was not marked.
    REQUIRE(answers.size() == (recovery == LossRecovery::go_back_n ? 1 : 2));
    for (const Frame& answer : answers) CHECK(answer.syndrome() < kSyndromeRnrNak);
    CHECK(answers[0].bth().becn);
    CHECK(answers.back().bth().becn == (answers.size() == 1));
    deliver(4, 2);
    pair.run(1 * kMicrosecond);
    CHECK_FALSE(answers.back().bth().becn);
  }
}

TEST_CASE("go-back-N never executes a packet ahead of its turn; selective repeat does so only in its turn") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Session session(recovery);
    Pair& pair = session.pair;
    const uint64_t before = session.target.words[0];
    const auto write = [&](uint32_t ahead, uint8_t byte) {
      DataHeader header;
      header.opcode = kOpcodeRcWriteOnly;
      header.psn = psn_add(pair.right_attributes.receive_psn, ahead);
      header.reth = {session.target.address, session.target.key, 8};
      pair.deliver(pair.right, pair.to(pair.right, header, std::vector<uint8_t>(8, byte)));
    };
    for (uint32_t ahead : {1u, 2u, 3u, 255u, 256u, 0x7fffffu}) write(ahead, static_cast<uint8_t>(ahead));
    CHECK(session.target.words[0] == before);
    CHECK(pair.right.counters.out_of_sequence == 6);
    write(0, 0x77);
    const uint8_t last = recovery == LossRecovery::go_back_n ? 0x77 : 3;
    CHECK(session.target.words[0] == 0x0101010101010101 * last);
  }
}

TEST_CASE("selective repeat sends only what is missing") {
  Session session(LossRecovery::selective_repeat);
  std::map<uint32_t, int> sent;
  session.pair.on_frame = [&](End& from, Frame& frame) {
    if (&from != &session.pair.left) return true;
    const uint32_t offset = static_cast<uint32_t>(psn_distance(frame.psn(), session.pair.left_attributes.send_psn));
    return ++sent[offset] > 1 || (offset != 2 && offset != 9);
  };
  for (int i = 0; i < 10; ++i) session.post(WorkOpcode::write, session.source, session.target, kBytes);
  REQUIRE(session.pair.run());
  for (const auto& [offset, times] : sent) {
    const int expected = offset == 2 || offset == 9 ? 2 : 1;
    CHECK(times == expected);
  }
  CHECK(session.pair.left.counters.local_ack_timeout_err == 0);
  CHECK(session.pair.left.take().size() == 10);
}

TEST_CASE("what is sent again keeps to the congestion window, and waits for what is before it") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const uint32_t window : {1u, 3u}) {
      CAPTURE(static_cast<int>(recovery));
      CAPTURE(window);
      Session session(recovery, 1);
      Pair& pair = session.pair;
      bool dead = true;
      uint32_t most = 0;  // packets from the oldest one not acknowledged up to the one sent
      pair.on_frame = [&](End& from, Frame& frame) {
        if (&from != &pair.left) return true;
        const int32_t ahead = psn_distance(frame.psn(), pair.left.rc.acknowledged());
        most = std::max(most, static_cast<uint32_t>(ahead) + 1);
        return !dead;
      };
      for (int i = 0; i < 4; ++i) session.post(WorkOpcode::write, session.source, session.target, kBytes);
      pair.run(500 * kMicrosecond);
      CHECK(most == 24);
      pair.left.rc.limit(window, 0);
      dead = false;
      most = 0;
      REQUIRE(pair.run());
      CHECK(most == window);
      CHECK(pair.left.take().size() == 4);
      CHECK(pair.left.counters.retransmitted == 24);
      CHECK(pair.left.counters.local_ack_timeout_err == 1);
    }
  }
}

TEST_CASE("a READ of more packets than the congestion window goes when it is the oldest, also again") {
  for (LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const bool lost : {false, true}) {
      CAPTURE(static_cast<int>(recovery));
      CAPTURE(lost);
      Session session(recovery, 1);
      Pair& pair = session.pair;
      bool dead = lost;
      pair.on_frame = [&](End&, Frame&) { return !std::exchange(dead, false); };
      pair.left.rc.limit(1, 0);
      session.post();
      REQUIRE(pair.run());
      session.check();
    }
  }
}

TEST_CASE("a READ is taken that its responder restarts with RESPONSE MIDDLE, which has no AETH") {
  Session session;
  Pair& pair = session.pair;
  pair.on_frame = [&](End&, Frame& frame) {
    if (frame.opcode() == kOpcodeRcReadRequest && frame.psn() == pair.left_attributes.send_psn) return true;
    return frame.opcode() == kOpcodeRcReadResponseFirst;  // the rest is lost
  };
  session.post(WorkOpcode::read, session.sink, session.readable, kBytes);
  pair.run(900 * kMicrosecond);
  pair.on_frame = nullptr;
  for (uint32_t packet = 1; packet < 6; ++packet) {
    DataHeader header;
    header.opcode = packet == 5 ? kOpcodeRcReadResponseLast : kOpcodeRcReadResponseMiddle;
    header.psn = psn_add(pair.left_attributes.send_psn, packet);
    header.aeth = {kNoCredits, 1};
    const uint8_t* data = session.readable.data() + packet * kMtu;
    pair.deliver(pair.left, pair.to(pair.left, header, {data, data + std::min(kMtu, kBytes - packet * kMtu)}));
  }
  const std::vector<Completion> all = pair.left.take();
  REQUIRE(all.size() == 1);
  CHECK(all[0].status == WorkStatus::success);
  CHECK(std::memcmp(session.sink.data(), session.readable.data(), kBytes) == 0);
}

}  // namespace
}  // namespace weir
