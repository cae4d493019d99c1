// Live: RoCEv2 packets that a packet socket joins to super-frames, as a peer that takes them whole has them, and as one that has
// the kernel cut them before.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "io/af_packet.h"
#include "test/live_wire.h"
#include "test/rig/frames.h"
#include "test/wire_fixtures.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/roce_builder.h"
#include "wire/super_frame.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint32_t kMtu = 1'500;

// One packet with each payload.
std::vector<Bytes> packets_of(uint8_t version, const std::vector<uint32_t>& payloads) {
  RocePath path = path_to(0x020000000002, 0x020000000001);
  path.ip_version = version;
  std::vector<Bytes> all;
  for (uint32_t i = 0; i < payloads.size(); ++i) {
    RoceFrame frame = roce(kOpcodeRcSendOnly).on(path).to(0x11).psn(i).identification(i);
    all.push_back(frame.payload(payloads[i], static_cast<uint8_t>(i)).bytes());
  }
  return all;
}

// The last of each message is shorter.
std::vector<Bytes> packets(uint8_t version, uint32_t count, uint32_t payload, uint32_t message = 10) {
  std::vector<uint32_t> payloads(count, payload);
  for (uint32_t i = message; i <= count; i += message) payloads[i - 1] = payload / 2;
  return packets_of(version, payloads);
}

// Packets are as long as those of RDMA WRITEs: each message's first has an RETH more.
std::vector<Bytes> writes(uint32_t count, uint32_t payload, uint32_t message) {
  std::vector<uint32_t> payloads(count, payload);
  for (uint32_t i = 0; i < count; i += message) payloads[i] += 16;
  return packets_of(4, payloads);
}

void send(PacketPort& port, const std::vector<Bytes>& all) {
  std::vector<TxFrame> frames;
  for (const Bytes& one : all) frames.push_back({.data = one.data(), .length = static_cast<uint32_t>(one.size())});
  size_t sent = 0;
  wait_until([&] {
    sent += port.transmit(std::span(frames).subspan(sent)).sent;
    return sent == frames.size();
  });
}

// Frames that have come, as packets, without UDP checksums, which a kernel that cuts may write.
std::vector<Bytes> receive(PacketPort& port, size_t count, bool& whole) {
  std::vector<Bytes> got;
  std::array<RxFrame, 64> frames;
  whole = false;
  wait_until([&] {
    const size_t some = port.receive(frames);
    for (size_t i = 0; i < some; ++i) {
      Offload offload = frames[i].offload;
      Bytes bytes(frames[i].data, frames[i].data + frames[i].length);
      REQUIRE(check_offload(bytes.data(), frames[i].length, offload));
      if (offload.gso == Gso::none) {
        PacketMeta meta;
        REQUIRE(classify(bytes.data(), frames[i].length, meta) == Refusal::none);
        store_be16(&bytes[meta.bth_offset - 2u], 0);
        got.push_back(bytes);
        continue;
      }
      whole = true;
      REQUIRE(is_roce_super_frame(bytes.data(), offload));
      SuperFrameSlices slices(bytes.data(), frames[i].length, offload);
      uint32_t length = 0;
      for (const uint8_t* slice = slices.next(length); slice != nullptr; slice = slices.next(length)) {
        got.emplace_back(slice, slice + length);
      }
    }
    port.release(some);
    return got.size() >= count;
  });
  return got;
}

}  // namespace

TEST_CASE("super-frames live: packets that are joined arrive as they were, whole or cut by the kernel") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    for (const bool kernel_cuts : {false, true}) {
      if (kernel_cuts) REQUIRE(no_offloads("near0"));
      AfPacketPort near({.interface = "near0", .offloads = true, .join = 64}, clock);
      AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .receive_slots = 512, .offloads = true}, clock);
      for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
        CAPTURE(kernel_cuts);
        CAPTURE(version);
        const std::vector<Bytes> sent = packets(version, 100, 1'024);
        const uint64_t before = near.losses().super_frames_sent;
        send(near, sent);
        bool whole = false;
        const std::vector<Bytes> got = receive(far, sent.size(), whole);
        CHECK(near.losses().super_frames_sent - before >= 10);
        CHECK(whole == !kernel_cuts);
        CHECK(got == sent);
        for (const Bytes& one : got) {
          PacketMeta meta;
          REQUIRE(classify(one.data(), static_cast<uint32_t>(one.size()), meta) == Refusal::none);
          CHECK(icrc_ok(one.data(), meta));
        }
      }
      CHECK((far.losses().super_frames_received > 0) == !kernel_cuts);
    }
  });
}

TEST_CASE("super-frames live: none is cut because the frames of a system call end in it") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0", .offloads = true, .join = 64}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .receive_slots = 512, .offloads = true}, clock);
    // Behind the headers a packet has 1040 bytes, of which 62 times as many are one datagram. A call takes 128 packets.
    const std::vector<Bytes> sent = packets(4, 5 * 62, 1'024, 1'000);
    send(near, sent);
    bool whole = false;
    CHECK(receive(far, sent.size(), whole) == sent);
    CHECK(near.losses().super_frames_sent == 5);
    CHECK(far.losses().super_frames_received == 5);
  });
}

TEST_CASE("super-frames live: what follows the longer first packet of a message goes together, unless that takes one more") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0", .offloads = true, .join = 64}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .receive_slots = 512, .offloads = true}, clock);
    struct Message {
      uint32_t payload;
      uint32_t packets;
      uint64_t super_frames;
    };
    // 62 packets of 1040 bytes are one datagram: with 63 behind the first packet, one of them goes with that.
    for (const Message& message : {Message{1'024, 16, 1}, Message{1'024, 64, 2}, Message{1'024, 2, 1}, Message{64, 64, 1}}) {
      CAPTURE(message.packets);
      CAPTURE(message.payload);
      const std::vector<Bytes> sent = writes(message.packets, message.payload, message.packets);
      const PortLosses before = near.losses();
      send(near, sent);
      bool whole = false;
      CHECK(receive(far, sent.size(), whole) == sent);
      CHECK(near.losses().super_frames_sent - before.super_frames_sent == message.super_frames);
    }
    // Two messages behind one another.
    const std::vector<Bytes> sent = writes(32, 1'024, 16);
    const uint64_t before = near.losses().super_frames_sent;
    send(near, sent);
    bool whole = false;
    CHECK(receive(far, sent.size(), whole) == sent);
    CHECK(near.losses().super_frames_sent - before == 2);
  });
}

TEST_CASE("super-frames live: packets longer than the MTU are refused one by one, as they would be alone") {
  live([](Wire&) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0", .offloads = true, .join = 64}, clock);
    REQUIRE(near.mtu() == kMtu);
    const std::vector<Bytes> sent = packets(4, 2, 2'048);
    const TxFrame frames[] = {{.data = sent[0].data(), .length = static_cast<uint32_t>(sent[0].size())},
                              {.data = sent[1].data(), .length = static_cast<uint32_t>(sent[1].size())}};
    const Transmitted done = near.transmit(frames);
    CHECK(done.sent == 0);
    CHECK(done.refused);
    CHECK(near.losses().super_frames_sent == 0);
  });
}
