#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>

#include "base/native_error.h"
#include "test/linked_program.h"
#include "transport/opcode.h"
#include "transport/program_link.h"

namespace weir {
namespace {

using namespace test;

TEST_CASE("a program's packets leave in order, and whose they are and to whom is not its to say") {
  Linked l;
  l.connect();
  l.submit_write(7);
  l.submit_write(3);
  CHECK(l.take() == std::vector<uint32_t>{kQpn});
  for (uint32_t slot : {7u, 3u}) {
    CHECK(l.relayed.data_bytes() == kBthHeader + kRethHeader + 8 + kIcrc);
    OutgoingPacket out;
    REQUIRE(l.relayed.take_data(0, out));
    CHECK(out.header.psn == slot);
    CHECK(out.header.destination_qp == kPeer);
    CHECK(out.header.partition_key == 0x8001);
    CHECK(out.payload[0] == slot);
    CHECK(out.payload_bytes == 5);
  }
  CHECK(l.relayed.data_bytes() == 0);
  // Their slots are the program's again once the frames have been made.
  CHECK(l.returned() == 0);
  l.link.publish();
  CHECK(l.returned() == 2);
  CHECK(l.memory->returned[0] == 7);
  CHECK(l.memory->returned[1] == 3);
}

TEST_CASE("acknowledgements go ahead of data, and data that calls itself one has no room for any") {
  Linked l;
  l.connect();
  l.submit_write(0);
  l.packet(1) = {.qpn = kQpn, .opcode = kOpcodeRcAcknowledge};
  l.submit(1);
  l.packet(2) = {.qpn = kQpn, .payload_bytes = 1'024, .opcode = kOpcodeRcAcknowledge};
  l.submit(2);
  l.take();
  CHECK(l.counters.drop_program_packet == 1);
  REQUIRE(l.relayed.control_waits());
  OutgoingPacket out;
  l.relayed.take_control(out);
  CHECK(out.header.opcode == kOpcodeRcAcknowledge);
  CHECK_FALSE(l.relayed.control_waits());
  CHECK(l.relayed.data_bytes() > 0);
}

// A requester that gets an answer takes it that all before it have been answered (IBTA volume 1, 9.7.5.1.5).
TEST_CASE("answers leave in order: an acknowledgement waits for READ responses before it, not for requests") {
  Linked l;
  l.connect();
  OutgoingPacket out;
  const auto submit = [&](uint32_t slot, uint8_t opcode) {
    l.packet(slot) = {.qpn = kQpn, .psn = slot, .opcode = opcode};
    l.submit(slot);
  };
  const auto next = [&] {
    out = {};
    if (l.relayed.control_waits()) {
      l.relayed.take_control(out);
    } else {
      REQUIRE(l.relayed.take_data(0, out));
    }
    return out.header.psn;
  };
  submit(0, kOpcodeRcAcknowledge);
  l.submit_write(1);
  submit(2, kOpcodeRcReadResponseFirst);
  submit(3, kOpcodeRcReadResponseLast);
  submit(4, kOpcodeRcAcknowledge);
  submit(5, kOpcodeRcAtomicAcknowledge);
  l.submit_write(6);
  submit(7, kOpcodeRcReadResponseOnly);
  submit(8, kOpcodeRcAcknowledge);
  l.take();
  for (const uint32_t psn : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u}) CHECK(next() == psn);

  // A queue pair that is reset waits for nothing.
  submit(9, kOpcodeRcReadResponseOnly);
  l.take();
  l.relayed.modify(QueuePairState::reset, l.attributes);
  l.connect();
  submit(10, kOpcodeRcAcknowledge);
  l.take();
  CHECK(l.relayed.control_waits());
}

TEST_CASE("what a queue pair may not send is refused and counted, and its slot given back") {
  Linked l;
  const auto refused = [&] {
    const uint64_t before = l.counters.drop_program_packet;
    CHECK(l.take().empty());
    l.link.publish();
    return l.counters.drop_program_packet - before;
  };
  l.submit_write(0);  // in RESET
  CHECK(refused() == 1);
  CHECK(l.returned() == 1);
  l.connect();
  l.submit_write(0, kQpn + 1);  // from another queue pair
  CHECK(refused() == 1);
  l.packet(0) = {.qpn = kQpn, .payload_bytes = 1'025, .opcode = kOpcodeRcSendOnly};  // longer than the path MTU
  l.submit(0);
  CHECK(refused() == 1);
  for (uint8_t opcode : {kOpcodeUdSendOnly, uint8_t{0x81}, uint8_t{0x1f}, uint8_t{0x20}}) {  // opcodes of no reliable connection
    CAPTURE(static_cast<int>(opcode));
    l.packet(0) = {.qpn = kQpn, .opcode = opcode};
    l.submit(0);
    CHECK(refused() == 1);
  }
  CHECK(l.returned() == 7);
  l.submit(kProgramPackets);  // no slot
  CHECK(refused() == 1);
  CHECK(l.returned() == 7);
}

TEST_CASE("a slot that is submitted twice is taken once, and an index that runs ahead is not followed") {
  Linked l;
  l.connect();
  l.submit_write(5);
  l.submit(5);
  l.take();
  CHECK(l.counters.drop_program_packet == 1);
  l.memory->submitted_written = l.written += 1'000'000;
  CHECK(l.take().empty());
  CHECK(l.counters.drop_program_packet == 2);
  CHECK_FALSE(l.link.waiting());
  l.submit_write(6);
  CHECK(l.take().size() == 1);
}

TEST_CASE("what was submitted is not changed by what the program writes afterwards") {
  Linked l;
  l.connect();
  l.submit_write(0);
  l.take();
  l.packet(0).payload_bytes = 1u << 31;
  l.packet(0).opcode = 0xff;
  CHECK(l.relayed.data_bytes() == kBthHeader + kRethHeader + 8 + kIcrc);
  OutgoingPacket out;
  REQUIRE(l.relayed.take_data(0, out));
  CHECK(out.payload_bytes == 5);
  CHECK(out.header.opcode == kOpcodeRcWriteOnly);
}

TEST_CASE("datagrams are from their own queue pair, whatever the program writes, and go where its handles lead") {
  Linked l(Linked::Service::datagram);
  l.connect();
  const uint32_t handle = l.addresses.add(test::path_between(1, 2));
  l.packet(0) = {.qpn = kQpn, .destination_qp = 77, .address_handle = handle, .queue_key = 9, .opcode = kOpcodeUdSendOnly};
  l.submit(0);
  l.packet(1) = {.qpn = kQpn, .destination_qp = 77, .address_handle = handle + 1, .opcode = kOpcodeUdSendOnly};
  l.submit(1);
  l.take();
  OutgoingPacket out;
  REQUIRE(l.relayed.take_data(0, out));
  CHECK(out.headers == l.addresses.find(handle));
  CHECK(out.header.destination_qp == 77);
  CHECK(out.header.deth.source_qp == kQpn);
  CHECK_FALSE(l.relayed.take_data(0, out));
  CHECK(l.counters.drop_program_packet == 1);
}

// SENDs of so many bytes to the program's queue pair.
test::Frame sent(uint32_t bytes) {
  DataHeader header;
  header.opcode = kOpcodeRcSendOnly;
  header.destination_qp = kQpn;
  const std::vector<uint8_t> payload(bytes, 0x5a);
  return test::build_frame(RoceTemplate(test::path_between(2, 1)), header, payload.data(), bytes);
}

TEST_CASE("frames come to the program as they are, up to the pad, until it takes none") {
  Linked l;
  l.connect();
  const test::Frame frame = sent(5);
  for (uint32_t i = 0; i < kProgramFrames; ++i) REQUIRE(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  CHECK(l.memory->frames_written == kProgramFrames);
  CHECK(l.memory->frame(0).length == frame.bytes.size() - kIcrc);
  CHECK(std::memcmp(l.memory->frame(0).bytes(), frame.bytes.data(), frame.bytes.size() - kIcrc) == 0);
  CHECK_FALSE(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  CHECK(l.counters.drop_program_busy == 1);
  l.memory->frames_read = 1;
  CHECK(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  CHECK(l.relayed.received().packets == kProgramFrames + 1);
  // One that says it has read what was never written gets nothing more, until it is sensible again.
  l.memory->frames_read = kProgramFrames + 100;
  CHECK_FALSE(l.relayed.receive(0, frame.bytes.data(), frame.meta));
}

TEST_CASE("what eight connections may have in flight finds room, whatever their path MTU") {
  for (const uint32_t mtu : {256u, 512u, 1'024u, 2'048u, 4'096u}) {
    CAPTURE(mtu);
    Linked l;
    l.attributes.path_mtu = mtu;
    l.connect();
    const test::Frame frame = sent(mtu);
    QueueAttributes attributes;
    attributes.path_mtu = mtu;
    for (uint32_t i = 0; i < 8 * packets_in_flight(attributes); ++i) {
      REQUIRE(l.relayed.receive(0, frame.bytes.data(), frame.meta));
    }
    CHECK(l.counters.drop_program_busy == 0);
  }
}

TEST_CASE("frames of any length keep their bytes round after round, and begin anew where none waits") {
  Linked l;
  l.attributes.path_mtu = 4'096;
  l.connect();
  std::mt19937 draw(3);
  std::vector<uint32_t> lengths;  // lengths of those that wait
  uint32_t read = 0;
  uint64_t bytes = 0;
  while (bytes < 5 * uint64_t{kProgramRoom}) {
    const test::Frame frame = sent(draw() % 4'097);
    if (l.relayed.receive(0, frame.bytes.data(), frame.meta)) {
      lengths.push_back(static_cast<uint32_t>(frame.bytes.size()) - kIcrc);
      bytes += frame.bytes.size();
    } else {
      REQUIRE(lengths.size() > 1'000);
    }
    // It takes as many as have come, on average, and fewer than there are, so that they go round.
    for (uint32_t takes = lengths.size() < 2'000 ? 0 : draw() % 3; takes > 0; --takes) {
      const ProgramFrame& taken = l.memory->frame(read);
      REQUIRE(taken.length == lengths.front());
      if (taken.meta.payload_length > 0) REQUIRE(taken.bytes()[taken.length - 1 - taken.meta.pad_count] == 0x5a);
      lengths.erase(lengths.begin());
      l.memory->frames_read = ++read;
    }
  }
  l.memory->frames_read = l.memory->frames_written.load();
  const test::Frame frame = sent(1);
  CHECK(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  CHECK(&l.memory->frame(l.memory->frames_written - 1) == reinterpret_cast<ProgramFrame*>(l.memory->room));
}

TEST_CASE("a program is crowded from half of its room on until a quarter is left, and for as long as it takes anything") {
  Linked l;
  l.attributes.path_mtu = 4'096;
  l.connect();
  const test::Frame frame = sent(4'096);
  uint32_t frames = 0;
  const auto fill = [&](Time now) {
    while (!l.relayed.crowded(now)) {
      REQUIRE(l.relayed.receive(now, frame.bytes.data(), frame.meta));
      ++frames;
    }
  };
  fill(1);
  CHECK(frames > kProgramRoom / 2 / 4'500);
  CHECK(frames < kProgramRoom / 2 / 4'096);
  CHECK(l.memory->holds == 1);
  uint32_t read = 0;
  while (l.relayed.crowded(2)) l.memory->frames_read = ++read;
  CHECK(read > frames / 2 - 4);
  CHECK(read < frames / 2 + 4);
  CHECK(l.memory->holds == 0);
  // It takes nothing any more.
  fill(3);
  CHECK(l.relayed.crowded(100 * kMillisecond));
  CHECK_FALSE(l.relayed.crowded(101 * kMillisecond));
  l.memory->frames_read = l.memory->frames_read + 1;
  CHECK(l.relayed.crowded(5 * kSecond));
  // Nor is there anything to wait for with one that says that it has read what was never written.
  l.memory->frames_read = l.memory->frames_written + 1;
  CHECK_FALSE(l.relayed.crowded(5 * kSecond));
}

TEST_CASE("datagrams with keys of management are refused, also from a queue pair that has such a key") {
  Linked l(Linked::Service::datagram);
  l.attributes.queue_key = 0x80010000;
  l.connect();
  const uint32_t handle = l.addresses.add(test::path_between(1, 2));
  for (const uint32_t key : {0x80010000u, 0xffffffffu, 0x80000000u, 0x7fffffffu}) {
    l.packet(0) = {.qpn = kQpn, .destination_qp = 1, .address_handle = handle, .queue_key = key, .opcode = kOpcodeUdSendOnly};
    l.submit(0);
    l.take();
    CHECK((l.relayed.data_bytes() > 0) == (key == 0x7fffffff));
    l.link.publish();
  }
  CHECK(l.counters.drop_program_packet == 3);
}

TEST_CASE("a program is woken only when it sleeps and something has come") {
  Linked l;
  l.connect();
  l.memory->program_sleeps = 1;
  CHECK_FALSE(l.link.take_wake());
  l.submit_write(0);
  l.take();
  l.relayed.modify(QueuePairState::reset, l.attributes);
  l.link.publish();
  CHECK(l.link.take_wake());
  CHECK_FALSE(l.link.take_wake());
}

TEST_CASE("what a program has counted is the NIC's too, and no more of anything than frames and packets have passed") {
  Linked l;
  l.connect();
  const auto says = [&](int which, uint64_t count) {
    l.memory->counted[which] = count;
    l.link.count(l.counters);
    return l.counters.words()[which];
  };
  CHECK(says(0, 5) == 0);
  const test::Frame frame = sent(5);
  for (int i = 0; i < 15; ++i) REQUIRE(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  for (uint32_t slot = 0; slot < 5; ++slot) l.submit_write(slot);
  l.take();
  CHECK(says(0, 5) == 0);
  CHECK(says(0, 12) == 7);
  CHECK(says(0, 3) == 7);
  CHECK(says(0, 4) == 8);
  CHECK(says(0, UINT64_MAX / 2) == 20);
  CHECK(says(0, UINT64_MAX) == 20);
  CHECK(says(1, 19) == 19);
  REQUIRE(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  CHECK(says(1, 100) == 21);
}

TEST_CASE("frames that a program has not taken are counted when it is no more, and never more than there is room for") {
  Linked l;
  l.connect();
  const RoceTemplate headers(test::path_between(2, 1));
  DataHeader header;
  header.opcode = kOpcodeRcSendOnly;
  header.destination_qp = kQpn;
  const test::Frame frame = test::build_frame(headers, header, nullptr, 0);
  for (int i = 0; i < 5; ++i) REQUIRE(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  l.memory->frames_read = 2;
  l.link.drop_frames(l.counters);
  CHECK(l.counters.drop_program_busy == 3);
  l.memory->frames_read = 77;
  l.link.drop_frames(l.counters);
  CHECK(l.counters.drop_program_busy == 3 + kProgramFrames);
}

TEST_CASE("a sleeping program is not woken for slots before the one that it waits for, but for any frame") {
  Linked l;
  l.connect();
  l.memory->program_sleeps = 1;
  l.memory->returned_wanted = 3;
  for (uint32_t slot = 0; slot < 3; ++slot) {
    l.submit_write(slot);
    l.take();
    OutgoingPacket out;
    REQUIRE(l.relayed.take_data(0, out));
    l.link.publish();
    CHECK(l.link.take_wake() == (slot == 2));
  }
  l.memory->returned_wanted = 1'000;
  const RoceTemplate headers(test::path_between(2, 1));
  DataHeader header;
  header.opcode = kOpcodeRcSendOnly;
  header.destination_qp = kQpn;
  const test::Frame frame = test::build_frame(headers, header, nullptr, 0);
  CHECK(l.relayed.receive(0, frame.bytes.data(), frame.meta));
  CHECK(l.link.take_wake());
}

TEST_CASE("nothing that a program writes upsets the daemon, and no slot is ever in two places") {
  std::mt19937 random(7);
  const auto draw = [&] { return static_cast<uint32_t>(random()); };
  for (int round = 0; round < 200; ++round) {
    Linked l(static_cast<Linked::Service>(round % 3));
    l.attributes.informs = round % 2 == 0;
    l.connect();
    l.relayed.limit(draw() % 600, draw() % 600);
    const uint32_t handle = l.addresses.add(test::path_between(1, 2));
    uint32_t taken = 0;
    for (int step = 0; step < 200; ++step) {
      const uint32_t slot = draw() % (kProgramPackets + 2);
      if (slot < kProgramPackets) {
        l.packet(slot) = {.qpn = draw() % 8 == 0 ? draw() : kQpn,
                          .payload_bytes = draw() % 8 == 0 ? draw() : draw() % 1'100,
                          .destination_qp = draw(),
                          .address_handle = draw() % 2 == 0 ? handle : draw(),
                          .psn = draw(),
                          .opcode = static_cast<uint8_t>(draw()),
                          .flags = static_cast<uint8_t>(draw()),
                          .reth = {.dma_length = static_cast<uint32_t>(draw())}};
      }
      l.submit(slot);
      if (draw() % 50 == 0) l.memory->submitted_written = l.written = draw();
      if (draw() % 4 != 0) continue;
      l.take();
      while (l.relayed.control_waits()) {
        OutgoingPacket out;
        l.relayed.take_control(out);
        ++taken;
      }
      while (l.relayed.data_bytes() > 0) {
        OutgoingPacket out;
        CHECK(l.relayed.data_bytes() <= kBthHeader + 28 + 1'024 + kIcrc);
        if (l.relayed.take_data(0, out)) CHECK(out.payload_bytes <= 1'024);
        ++taken;
      }
      l.link.publish();
    }
    CHECK(taken <= l.returned());
  }
}

}  // namespace
}  // namespace weir
