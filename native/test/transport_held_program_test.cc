#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "test/linked_program.h"
#include "transport/opcode.h"
#include "wire/telemetry.h"

namespace weir {
namespace {

using namespace test;

// A program's queue pair with congestion control by acknowledgements.
struct Held : Linked {
  explicit Held(uint32_t window = 1) {
    attributes.informs = true;
    connect();
    relayed.limit(window, window);
  }
  void request(uint32_t slot, uint32_t psn, uint8_t opcode = kOpcodeRcWriteOnly) {
    packet(slot) = {.qpn = kQpn, .psn = psn, .opcode = opcode, .reth = {.dma_length = 3 * 1'024}};
    submit(slot);
    take();
  }
  // PSNs of the data that may leave.
  std::vector<uint32_t> leave() {
    std::vector<uint32_t> psns;
    while (relayed.data_bytes() > 0) {
      OutgoingPacket out;
      REQUIRE(relayed.take_data(++now, out));
      CHECK(out.header.ack_request == !is_response(out.header.opcode));
      psns.push_back(out.header.psn);
    }
    return psns;
  }
  Heard answer(uint32_t psn, uint8_t opcode = kOpcodeRcAcknowledge, uint16_t partition_key = 0x8001) {
    DataHeader header;
    header.opcode = opcode;
    header.destination_qp = kQpn;
    header.psn = psn;
    header.partition_key = partition_key;
    header.becn = opcode == kOpcodeRcAcknowledge;
    const test::Frame frame = test::build_frame(RoceTemplate(test::path_between(2, 1)), header, nullptr, 0);
    CHECK(relayed.receive(++now, frame.bytes.data(), frame.meta));
    Heard heard;
    relayed.take_heard(heard);
    return heard;
  }
  Time now = 0;
};
using Psns = std::vector<uint32_t>;

TEST_CASE("requests wait for the window, and what answers the peer does not wait for them") {
  Held h(2);
  for (uint32_t psn = 0; psn < 4; ++psn) h.request(psn, psn);
  CHECK(h.leave() == Psns{0, 1});
  h.request(4, 70, kOpcodeRcReadResponseFirst);
  h.request(5, 71, kOpcodeRcReadResponseLast);
  h.request(6, 72, kOpcodeRcAcknowledge);
  CHECK(h.leave() == Psns{70, 71});
  CHECK(h.relayed.control_waits());
  const Heard heard = h.answer(0);
  CHECK(heard.ack.packets == 1);
  CHECK(heard.ack.marked);
  CHECK(heard.ack.in_flight == 1);
  CHECK(heard.ack.wanted == 4);
  CHECK(heard.ack.sent == 1);
  CHECK(h.leave() == Psns{2});
  // The program drops packets of another partition.
  CHECK(h.answer(2, kOpcodeRcAcknowledge, 0x8002).ack.packets == 0);
  CHECK(h.leave().empty());
  CHECK(h.answer(2).ack.packets == 2);
  CHECK(h.leave() == Psns{3});
  // The queue pair has failed, or was told to.
  h.request(7, 4);
  h.request(8, 5);
  h.relayed.modify(QueuePairState::error, h.attributes);
  CHECK(h.leave() == Psns{4, 5});
}

TEST_CASE("a READ is in flight with all of its responses, and may exceed the window when it is the oldest") {
  Held h(2);
  h.request(0, 0, kOpcodeRcReadRequest);
  h.request(1, 3);
  CHECK(h.leave() == Psns{0});
  h.answer(0, kOpcodeRcReadResponseFirst);
  CHECK(h.leave().empty());
  h.answer(1, kOpcodeRcReadResponseMiddle);
  CHECK(h.leave() == Psns{3});
}

TEST_CASE("a program hears with each frame how much of READs may be expected in flight, and before the first that it is little") {
  Held h(40);
  CHECK(h.memory->watches == 1);
  h.request(0, 0);
  h.leave();
  h.answer(0);
  CHECK(h.memory->frame(0).reads == 2 * 40);
  h.relayed.limit(30, 20);
  h.answer(0);
  CHECK(h.memory->frame(1).reads == 2 * 20);

  Linked unwatched;
  unwatched.connect();
  CHECK(unwatched.memory->watches == 0);
}

TEST_CASE("requests wait for their rate, and what answers the peer does not wait for them, whether a window holds them or not") {
  for (const bool informs : {true, false}) {
    Linked l;
    l.attributes.informs = informs;
    l.connect();
    const auto next = [&] {
      OutgoingPacket out;
      REQUIRE(l.relayed.take_data(1, out));
      return out.header.psn;
    };
    const auto data = [&](uint32_t slot, uint32_t psn, uint8_t opcode) {
      l.packet(slot) = {.qpn = kQpn, .psn = psn, .opcode = opcode};
      l.submit(slot);
      l.take();
    };
    l.relayed.hold_requests(true);
    data(0, 70, kOpcodeRcReadResponseOnly);
    data(1, 0, kOpcodeRcReadRequest);
    CHECK(l.relayed.data_bytes() > 0);
    CHECK(next() == 70);
    CHECK(l.relayed.data_bytes() == 0);
    l.relayed.hold_requests(false);
    CHECK(next() == 0);
  }
}

TEST_CASE("a program that goes back is not held up by what it has submitted before") {
  Held h(2);
  for (uint32_t psn = 0; psn < 6; ++psn) h.request(psn, psn);
  CHECK(h.leave() == Psns{0, 1});
  h.link.publish();
  CHECK(h.returned() == 2);
  h.request(6, 0);  // its timer has run out
  h.link.publish();
  CHECK(h.returned() == 6);
  h.request(7, 1);
  h.request(8, 2);
  CHECK(h.leave() == Psns{0, 1});
  CHECK(h.relayed.next_deadline() != kNever);
  Heard heard;
  REQUIRE(h.relayed.take_heard(heard));
  CHECK(heard.timed_out);
  CHECK(h.relayed.next_deadline() == kNever);
  CHECK(h.answer(1).ack.sent == kNever);
  CHECK(h.leave() == Psns{2});
}

TEST_CASE("requests that are withdrawn give their slots back, what answers the peer stays") {
  Held h;
  for (uint32_t psn = 0; psn < 4; ++psn) h.request(psn, psn);
  CHECK(h.leave() == Psns{0});
  h.request(4, 70, kOpcodeRcReadResponseOnly);
  h.packet(5) = {.qpn = kQpn, .flags = ProgramPacket::kWithdrawal};
  h.submit(5);
  h.take();
  h.link.publish();
  CHECK(h.returned() == 5);
  CHECK(h.leave() == Psns{70});
  CHECK(h.counters.drop_program_packet == 0);
}

TEST_CASE("marks are echoed to the peer where congestion control goes by acknowledgements, and not else") {
  for (const bool informs : {true, false}) {
    Linked l;
    l.attributes.informs = informs;
    l.connect();
    l.packet(0) = {.qpn = kQpn, .opcode = kOpcodeRcAcknowledge, .flags = ProgramPacket::kBecn};
    l.submit(0);
    l.take();
    OutgoingPacket out;
    l.relayed.take_control(out);
    CHECK(out.header.becn == informs);
  }
}

TEST_CASE("telemetry is the NIC's: requests have room for it, acknowledgements bring it back, and the program sees none of it") {
  Linked l;
  l.attributes.informs = l.attributes.telemetry = true;
  l.connect();
  const auto sent = [&](uint8_t opcode) {
    l.packet(0) = {.qpn = kQpn, .payload_bytes = opcode == kOpcodeRcWriteOnly ? 5u : 0u, .psn = l.written, .opcode = opcode};
    l.submit(0);
    l.take();
    OutgoingPacket out;
    if (l.relayed.control_waits()) {
      l.relayed.take_control(out);
    } else {
      const uint32_t bytes = l.relayed.data_bytes();
      REQUIRE(l.relayed.take_data(1, out));
      CHECK(bytes == packet_length(out.header.opcode, out.payload_bytes));
    }
    l.link.publish();
    return out.header;
  };
  CHECK(sent(kOpcodeRcWriteOnly).opcode == (kOpcodeRcWriteOnly | kOpcodeTelemetry));
  CHECK(sent(kOpcodeRcReadRequest).opcode == kOpcodeRcReadRequest);
  CHECK(sent(kOpcodeRcReadResponseOnly).opcode == (kOpcodeRcReadResponseOnly | kOpcodeTelemetry));
  CHECK(sent(kOpcodeRcAcknowledge).opcode == kOpcodeRcAcknowledge);  // there is nothing to echo

  uint8_t telemetry[kTelemetryHeader];
  store_telemetry(telemetry);
  write_hop(telemetry, {.time = 1, .sent = 2, .queue = 640, .rate = 1'000'000'000});
  const uint8_t payload[6] = {1, 2, 3, 4, 5, 6};
  const auto receive = [&](uint8_t opcode, uint32_t bytes) -> const ProgramFrame& {
    DataHeader header;
    header.opcode = opcode | kOpcodeTelemetry;
    header.destination_qp = kQpn;
    header.partition_key = 0x8001;
    header.telemetry = telemetry;
    const test::Frame frame = test::build_frame(RoceTemplate(test::path_between(2, 1)), header, payload, bytes);
    REQUIRE(l.relayed.understands(frame.meta.opcode));
    CHECK(l.relayed.receive(2, frame.bytes.data(), frame.meta));
    return l.memory->frame(l.memory->frames_written - 1);
  };
  const ProgramFrame& request = receive(kOpcodeRcWriteOnlyImmediate, sizeof payload);
  CHECK(request.meta.opcode == kOpcodeRcWriteOnlyImmediate);
  const uint32_t bth = request.meta.bth_offset;
  CHECK(request.bytes()[bth] == kOpcodeRcWriteOnlyImmediate);
  CHECK(request.length == bth + kBthHeader + kRethHeader + kImmediateHeader + 8);
  CHECK(std::memcmp(request.bytes() + bth + kBthHeader + kRethHeader + kImmediateHeader, payload, sizeof payload) == 0);
  const DataHeader echo = sent(kOpcodeRcAcknowledge);
  CHECK(echo.opcode == (kOpcodeRcAcknowledge | kOpcodeTelemetry));
  CHECK(std::memcmp(echo.telemetry, telemetry, kTelemetryHeader) == 0);
  CHECK(sent(kOpcodeRcAcknowledge).opcode == kOpcodeRcAcknowledge);

  CHECK(receive(kOpcodeRcAcknowledge, 0).length == bth + kBthHeader + kAethHeader);
  Heard heard;
  REQUIRE(l.relayed.take_heard(heard));
  REQUIRE(heard.ack.telemetry != nullptr);
  CHECK(heard.ack.telemetry->hops == 1);
  CHECK(heard.ack.telemetry->hop[0].queue == 640);
  CHECK(l.counters.rx_telemetry == 1);
  // A program that writes such opcodes itself is refused.
  l.packet(0) = {.qpn = kQpn, .opcode = kOpcodeRcWriteOnly | kOpcodeTelemetry};
  l.submit(0);
  l.take();
  CHECK(l.counters.drop_program_packet == 1);
}

}  // namespace
}  // namespace weir
