#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "endpoint/stream_transport.h"

using weir::MessageStreamParameters;
using weir::Operation;
using weir::OutgoingPacket;

namespace {

weir::QueuePairParameters parameters(const MessageStreamParameters& stream) {
  weir::QueuePairParameters all;
  all.remote_qpn = 7;
  all.remote_address = 8;
  all.remote_key = 9;
  all.stream = stream;
  return all;
}

// A stream that sends.
struct MessageStream {
  explicit MessageStream(const MessageStreamParameters& stream)
      : transport(6, parameters(stream),
                  {.bytes = nullptr,
                   .memory = memory,
                   .key = 0,
                   .domain = 0,
                   .counters = counters,
                   .listener = nullptr,
                   .payload = false},
                  by_pair) {}

  bool finished() const { return transport.data_bytes() == 0; }
  OutgoingPacket next() {
    OutgoingPacket packet;
    REQUIRE(transport.data_bytes() > 0);
    const uint32_t bytes = transport.data_bytes();
    REQUIRE(transport.take_data(0, packet));
    CHECK(bytes == weir::packet_length(packet.header.opcode, packet.payload_bytes));
    CHECK(packet.header.destination_qp == 7);
    return packet;
  }

  weir::MemoryTable memory{1};
  weir::TransportCounters counters;
  weir::QpCounters by_pair;
  weir::StreamTransport transport;
};

struct Opcodes {
  uint8_t first, middle, last, only;
};
constexpr Opcodes kWrite{0x06, 0x07, 0x08, 0x0a};
constexpr Opcodes kSend{0x00, 0x01, 0x02, 0x04};

}  // namespace

TEST_CASE("message stream: opcodes and sizes around multiples of the path MTU") {
  for (const Operation operation : {Operation::write, Operation::send}) {
    const Opcodes opcode = operation == Operation::write ? kWrite : kSend;
    for (const uint32_t mtu : {256u, 1'024u, 4'096u}) {
      for (const uint32_t size : {1u, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 7 * mtu + 3}) {
        CAPTURE(mtu);
        CAPTURE(size);
        MessageStream stream({.operation = operation, .path_mtu = mtu, .message_bytes = size, .total_bytes = 0, .first_psn = 5});
        const uint32_t packets = (size + mtu - 1) / mtu;
        uint32_t psn = 5;
        for (int message = 0; message < 2; ++message) {
          uint32_t left = size;
          for (uint32_t i = 0; i < packets; ++i) {
            REQUIRE_FALSE(stream.finished());
            const OutgoingPacket packet = stream.next();
            const bool first = i == 0;
            const bool last = i + 1 == packets;
            const uint8_t expected = first && last ? opcode.only : first ? opcode.first : last ? opcode.last : opcode.middle;
            REQUIRE(packet.header.opcode == expected);
            REQUIRE(packet.header.ack_request == last);
            REQUIRE(packet.header.psn == psn++);
            REQUIRE(packet.payload_bytes == (left < mtu ? left : mtu));
            REQUIRE(packet.header.reth.dma_length == size);
            REQUIRE(packet.header.reth.virtual_address == 8);
            REQUIRE(packet.header.reth.rkey == 9);
            left -= packet.payload_bytes;
          }
          REQUIRE(left == 0);
        }
      }
    }
  }
}

TEST_CASE("message stream: total_bytes cuts the last message") {
  MessageStream stream(
      {.operation = Operation::write, .path_mtu = 1'024, .message_bytes = 3'000, .total_bytes = 7'025, .first_psn = 0});
  std::vector<uint32_t> lengths;
  std::vector<uint8_t> opcodes;
  uint64_t sum = 0;
  while (!stream.finished()) {
    const OutgoingPacket packet = stream.next();
    sum += packet.payload_bytes;
    opcodes.push_back(packet.header.opcode);
    if (packet.header.opcode == kWrite.first) lengths.push_back(packet.header.reth.dma_length);
  }
  CHECK(sum == 7'025);
  CHECK(lengths == std::vector<uint32_t>{3'000, 3'000, 1'025});
  CHECK(opcodes == std::vector<uint8_t>{6, 7, 8, 6, 7, 8, 6, 8});

  MessageStream exact({.operation = Operation::send, .path_mtu = 256, .message_bytes = 256, .total_bytes = 512, .first_psn = 0});
  exact.next();
  CHECK_FALSE(exact.finished());
  exact.next();
  CHECK(exact.finished());

  MessageStream small(
      {.operation = Operation::send, .path_mtu = 256, .message_bytes = 4'000'000, .total_bytes = 1, .first_psn = 0});
  CHECK(small.next().header.opcode == 0x04);
  CHECK(small.finished());
}

TEST_CASE("message stream: totals beyond 32 bits, PSN wrap") {
  MessageStream stream({.operation = Operation::write,
                        .path_mtu = 4'096,
                        .message_bytes = 1u << 31,
                        .total_bytes = (uint64_t{1} << 31) + 4'097,
                        .first_psn = 0xff'fffe});
  CHECK(stream.next().header.psn == 0xff'fffe);
  CHECK(stream.next().header.psn == 0xff'ffff);
  CHECK(stream.next().header.psn == 0);
  uint64_t packets = 3;
  uint64_t bytes = 3 * 4'096;
  while (!stream.finished()) {
    bytes += stream.next().payload_bytes;
    ++packets;
  }
  CHECK(bytes == (uint64_t{1} << 31) + 4'097);
  CHECK(packets == (1u << 19) + 2);
  MessageStream wide({.first_psn = 0xff00'0003});
  CHECK(wide.next().header.psn == 3);
}

TEST_CASE("message sizes: of their own, one after another") {
  const std::vector<uint32_t> sizes = {5, 1u << 30, 1};
  weir::MessageSizes own(sizes);
  for (const uint32_t size : sizes) CHECK(own.next() == size);
  CHECK(own.next() == 0);
  CHECK(own.next() == 0);
  CHECK(weir::MessageSizes(std::span<const uint32_t>()).next() == 0);
  weir::MessageSizes cut(10, 25);
  for (const uint32_t size : {10u, 10u, 5u, 0u, 0u}) CHECK(cut.next() == size);
  weir::MessageSizes endless(3, 0);
  for (int i = 0; i < 1'000; ++i) REQUIRE(endless.next() == 3);
}
