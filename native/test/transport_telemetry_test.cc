// Telemetry through a reliable connection: in which packets it is, what acknowledgements echo of it, and what the sender is told.
#include <doctest/doctest.h>

#include <vector>

#include "test/transport_harness.h"
#include "wire/telemetry.h"

namespace weir::test {
namespace {

constexpr uint32_t kMtu = 1'024;

struct Talk {
  explicit Talk(LossRecovery recovery = LossRecovery::go_back_n) {
    pair.both([&](QueueAttributes& a) {
      a.path_mtu = kMtu;
      a.recovery = recovery;
      a.informs = a.telemetry = true;
    });
    pair.connect();
    // A switch on the way writes into what asks for it.
    pair.on_frame = [this](End&, Frame& frame) {
      opcodes.push_back(frame.opcode());
      if (!has_telemetry(frame.opcode())) return true;
      uint8_t* const at = frame.bytes.data() + frame.meta.bth_offset + telemetry_offset(frame.opcode());
      if (plain_opcode(frame.opcode()) == kOpcodeRcAcknowledge) {
        Telemetry echoed;
        REQUIRE(load_telemetry(at, echoed));
        echoes.push_back(echoed.hops == 1 ? echoed.hop[0].sent : 0);
        return true;
      }
      if (malformed) {
        at[0] = 0xff;
      } else {
        write_hop(at, {.time = 7, .sent = ++passed, .queue = 640, .rate = 10'000'000'000});
      }
      return true;
    };
  }
  void post(WorkOpcode opcode, uint32_t packets) {
    source = pair.left.make_region(packets * kMtu, 1);
    target = pair.right.make_region(packets * kMtu);
    SendWork work;
    work.opcode = opcode;
    work.length = packets * kMtu;
    work.flags = kSignaled;
    work.local_address = source.address;
    work.local_key = source.key;
    work.remote_address = target.address;
    work.remote_key = target.key;
    pair.left.rc.post_send(work);
  }
  bool arrived() const { return std::memcmp(source.data(), target.data(), source.length) == 0; }

  Pair pair;
  Region source;
  Region target;
  std::vector<uint8_t> opcodes;
  std::vector<uint32_t> echoes;
  uint32_t passed = 0;
  bool malformed = false;
};

}  // namespace

TEST_CASE("telemetry: it is in each packet of a message, echoed by its acknowledgement, and told with it") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Talk talk(recovery);
    talk.post(WorkOpcode::write, 4);
    REQUIRE(talk.pair.run());
    CHECK(talk.arrived());
    for (const uint8_t opcode : talk.opcodes) CHECK(has_telemetry(opcode));
    CHECK(talk.passed == 4);
    REQUIRE_FALSE(talk.echoes.empty());
    CHECK(talk.echoes.back() == 4);
    Heard heard;
    REQUIRE(talk.pair.left.rc.take_heard(heard));
    REQUIRE(heard.ack.telemetry != nullptr);
    CHECK(heard.ack.telemetry->hops == 1);
    CHECK(heard.ack.telemetry->hop[0].sent == 4);
    CHECK(heard.ack.telemetry->hop[0].queue == 640);
    CHECK_FALSE(talk.pair.left.rc.take_heard(heard));
  }
}

TEST_CASE("telemetry: what is asked for by a READ brings that of its own way to who asked, and the request has none") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Talk talk(recovery);
    talk.post(WorkOpcode::read, 3);
    REQUIRE(talk.pair.run());
    CHECK(talk.arrived());
    REQUIRE(talk.opcodes.size() == 4);
    CHECK_FALSE(has_telemetry(talk.opcodes[0]));
    for (size_t i = 1; i < 4; ++i) CHECK(has_telemetry(talk.opcodes[i]));
    Heard heard;
    REQUIRE(talk.pair.left.rc.take_heard(heard));
    CHECK(heard.ack.packets == 3);
    REQUIRE(heard.ack.telemetry != nullptr);
    CHECK(heard.ack.telemetry->hop[0].sent == 3);
    CHECK(talk.pair.left.counters.rx_telemetry == 3);
  }
}

TEST_CASE("telemetry: a header that is not of its form is counted, echoed by nobody, and its data taken") {
  Talk talk;
  talk.malformed = true;
  talk.post(WorkOpcode::write, 4);
  REQUIRE(talk.pair.run());
  CHECK(talk.arrived());
  CHECK(talk.echoes.empty());
  CHECK(talk.pair.right.counters.rx_telemetry_malformed == 4);
  Heard heard;
  REQUIRE(talk.pair.left.rc.take_heard(heard));
  CHECK(heard.ack.packets == 4);
  CHECK(heard.ack.telemetry == nullptr);
}

TEST_CASE("telemetry: the sender counts what comes back, and of that what no switch has written, and what had no room") {
  Talk talk;
  const auto written = talk.pair.on_frame;
  talk.pair.on_frame = [&, written](End& end, Frame& frame) { return frame.psn() % 2 == 0 || written(end, frame); };
  talk.post(WorkOpcode::write, 4);
  REQUIRE(talk.pair.run());
  const TransportCounters& counters = talk.pair.left.counters;
  CHECK(counters.rx_telemetry == counters.rx_acks);
  CHECK(counters.rx_telemetry_unwritten > 0);
  CHECK(counters.rx_telemetry_unwritten < counters.rx_telemetry);
  CHECK(counters.rx_telemetry_overflowed == 0);

  Talk far;
  far.pair.on_frame = [](End&, Frame& frame) {
    if (plain_opcode(frame.opcode()) == kOpcodeRcAcknowledge) return true;
    uint8_t* const at = frame.bytes.data() + frame.meta.bth_offset + telemetry_offset(frame.opcode());
    for (uint32_t hop = 0; hop <= kMostHops; ++hop) write_hop(at, {.time = hop, .rate = 10'000'000'000});
    return true;
  };
  far.post(WorkOpcode::write, 4);
  REQUIRE(far.pair.run());
  CHECK(far.pair.left.counters.rx_telemetry > 0);
  CHECK(far.pair.left.counters.rx_telemetry_overflowed == far.pair.left.counters.rx_telemetry);
  CHECK(far.pair.left.counters.rx_telemetry_unwritten == 0);
}

TEST_CASE("telemetry: messages arrive through loss and reordering as they do without it") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    Talk talk(recovery);
    uint32_t count = 0;
    const auto pass = talk.pair.on_frame;
    talk.pair.on_frame = [&, pass](End& end, Frame& frame) { return pass(end, frame) && ++count % 5 != 0; };
    talk.post(WorkOpcode::write, 60);
    REQUIRE(talk.pair.run());
    CHECK(talk.arrived());
  }
}

TEST_CASE("telemetry: a queue pair that has not been told of it takes no packets with it") {
  Pair pair;
  pair.connect();
  for (uint32_t opcode = kOpcodeTelemetry; opcode < 256; ++opcode)
    CHECK_FALSE(pair.left.rc.understands(static_cast<uint8_t>(opcode)));
  Talk talk;
  CHECK(talk.pair.left.rc.understands(kOpcodeTelemetry | kOpcodeRcWriteOnly));
  CHECK_FALSE(talk.pair.left.rc.understands(kOpcodeTelemetry | kOpcodeRcReadRequest));
}

}  // namespace weir::test
