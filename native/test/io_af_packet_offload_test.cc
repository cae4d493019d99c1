// Live: super-frames and partial checksums through real packet sockets, in network namespaces that end with the case. The
// judge of our segmentation is the kernel's own: the same super-frame is sent on a veth that cannot segment.
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "base/random.h"
#include "io/af_packet.h"
#include "test/live_wire.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/segmentation.h"

using namespace weir;
using namespace weir::test;

namespace {

using Bytes = std::vector<uint8_t>;

struct Shape {
  bool udp;
  bool ipv6;
  bool tagged;
  uint32_t payload;
  uint16_t segment;
  uint8_t flags;  // TCP
};

// A frame as a host's stack hands it to an interface: the checksum field holds the sum of the pseudo header.
Bytes make(const Shape& shape, Offload& offload) {
  Random random(3, shape.payload, shape.flags);
  Bytes f = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
  const auto put16 = [&](uint32_t v) {
    f.push_back(static_cast<uint8_t>(v >> 8));
    f.push_back(static_cast<uint8_t>(v));
  };
  if (shape.tagged) {
    put16(0x8100);
    put16(0x6005);
  }
  put16(shape.ipv6 ? 0x86dd : 0x0800);
  const size_t l3 = f.size();
  const uint32_t header = shape.udp ? 8 : 32;
  const uint32_t length = header + shape.payload;
  const uint8_t protocol = shape.udp ? 17 : 6;
  if (shape.ipv6) {
    f.insert(f.end(), {0x60, 0, 0, 0});
    put16(length);
    f.insert(f.end(), {protocol, 64});
    for (int i = 0; i < 32; ++i) f.push_back(i == 0 || i == 16 ? 0xfd : static_cast<uint8_t>(i));
  } else {
    f.insert(f.end(), {0x45, 0x02});
    put16(20 + length);
    f.insert(f.end(), {0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6});
    store_be16(&f[l3 + 10], internet_checksum(&f[l3], 20));
  }
  const size_t l4 = f.size();
  const size_t addresses = shape.ipv6 ? 32 : 8;
  const uint16_t seed = checksum_fold(checksum_add(length + protocol, &f[l4 - addresses], addresses));
  for (const uint32_t word : {40'000u, 5'001u}) put16(word);
  if (shape.udp) {
    put16(length);
    put16(seed);
  } else {
    f.insert(f.end(), {0xff, 0xff, 0xf0, 0, 1, 2, 3, 4, 0x80, shape.flags, 1, 0});
    put16(seed);
    f.insert(f.end(), {0, 0, 1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8});  // timestamps
  }
  for (uint32_t i = 0; i < shape.payload; ++i) f.push_back(static_cast<uint8_t>(random.next()));
  offload = {.checksum_start = static_cast<uint16_t>(l4),
             .checksum_offset = static_cast<uint16_t>(shape.udp ? 6 : 16),
             .segment_size = shape.segment,
             .gso = shape.segment == 0 ? Gso::none
                    : shape.udp        ? Gso::udp
                    : shape.ipv6       ? Gso::tcp6
                                       : Gso::tcp4,
             .ecn = shape.segment != 0 && (shape.flags & 0x80) != 0,
             .needs_checksum = true};
  REQUIRE(check_offload(f.data(), static_cast<uint32_t>(f.size()), offload));
  return f;
}

size_t send(PacketPort& port, const Bytes& bytes, const Offload& offload) {
  const TxFrame frame{bytes.data(), static_cast<uint32_t>(bytes.size()), offload};
  return port.transmit({&frame, 1}).sent;
}

constexpr uint8_t kAck = 0x10;
const std::array<Shape, 8> kShapes = {{{false, false, false, 20'000, 1'448, kAck | 0x09},  // PSH, FIN
                                       {false, false, true, 64'000, 1'448, kAck},
                                       {false, true, false, 30'000, 1'428, kAck | 0x08},
                                       {false, true, true, 5'000, 1'000, kAck},
                                       {false, false, false, 9'001, 999, kAck | 0xc8},  // CWR, ECE, PSH
                                       {true, false, false, 14'001, 1'400, 0},
                                       {true, true, false, 6'000, 1'200, 0},
                                       {true, false, true, 3'001, 1'000, 0}}};

}  // namespace

TEST_CASE("af_packet offloads: our segments are the kernel's, byte for byte") {
  live([](Wire& wire) {
    REQUIRE(no_offloads("near0"));
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0", .offloads = true}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far}, clock);
    for (const Shape& shape : kShapes) {
      CAPTURE(shape.payload);
      Offload offload;
      const Bytes frame = make(shape, offload);
      const uint32_t length = static_cast<uint32_t>(frame.size());
      const uint32_t count = segment_count(length, offload);
      REQUIRE(send(near, frame, offload) == 1);
      std::array<RxFrame, 128> frames;
      REQUIRE(receive_all(far, frames, count) == count);
      for (uint32_t i = 0; i < count; ++i) {
        CAPTURE(i);
        Bytes ours(length);
        ours.resize(write_segment(frame.data(), length, offload, i, ours.data()));
        if (shape.tagged) {
          REQUIRE(frames[i].vlan_tci == 0x6005);
          ours.erase(ours.begin() + 12, ours.begin() + 16);
        }
        CHECK(same(frames[i], ours));
      }
      far.release(count);
    }
    for (const bool udp : {false, true}) {  // and an ordinary frame's checksum is finished as by the kernel
      Offload offload;
      Bytes frame = make({udp, udp, false, 777, 0, kAck}, offload);
      REQUIRE(send(near, frame, offload) == 1);
      std::array<RxFrame, 2> frames;
      REQUIRE(receive_all(far, frames, 1) == 1);
      REQUIRE(complete_checksum(frame.data(), static_cast<uint32_t>(frame.size()), offload));
      CHECK(same(frames[0], frame));
      far.release(1);
    }
    CHECK(near.losses().transmit_errors == 0);
  });
}

TEST_CASE("af_packet offloads: frames of all lengths arrive whole, in order, with what is left to do on them") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0", .offloads = true}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .slot_bytes = 600, .receive_slots = 128, .offloads = true},
                     clock);
    std::array<RxFrame, 32> frames;
    for (uint32_t turn = 0; turn < 60; ++turn) {
      std::vector<Bytes> sent;
      std::vector<Offload> offloads;
      for (uint32_t i = 0; i < 12; ++i) {
        Offload offload;
        Shape shape = kShapes[(turn + i) % kShapes.size()];
        if (i % 3 == 1) {  // an ordinary frame, at times longer than a slot
          shape.payload = 100 + 97 * i;
          shape.segment = 0;
        }
        sent.push_back(make(shape, offload));
        if (i == 4) offload = {};
        offloads.push_back(offload);
        REQUIRE(send(near, sent.back(), offload) == 1);
      }
      REQUIRE(receive_all(far, frames, sent.size()) == sent.size());
      for (size_t i = 0; i < sent.size(); ++i) {
        CAPTURE(i);
        const uint16_t tag = frames[i].vlan_stripped ? 4 : 0;
        if (tag != 0) sent[i].erase(sent[i].begin() + 12, sent[i].begin() + 16);
        CHECK(same(frames[i], sent[i]));
        const Offload& got = frames[i].offload;
        CHECK(got.gso == offloads[i].gso);
        CHECK(got.ecn == offloads[i].ecn);
        CHECK(got.needs_checksum == offloads[i].needs_checksum);
        CHECK(got.segment_size == offloads[i].segment_size);
        CHECK(got.checksum_offset == offloads[i].checksum_offset);
        if (got.needs_checksum) CHECK(got.checksum_start == offloads[i].checksum_start - tag);
      }
      far.release(sent.size());
    }
    CHECK(far.losses().receive_truncated + far.losses().receive_overrun + near.losses().transmit_errors == 0);
  });
}

TEST_CASE("af_packet offloads: long frames that are held back or find no room are waited for or counted") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    AfPacketPort near({.interface = "near0", .offloads = true}, clock);
    AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .receive_slots = 512, .offloads = true}, clock);
    constexpr uint32_t kSent = 300;
    std::vector<Bytes> sent(kSent);
    for (uint32_t i = 0; i < kSent; ++i) {
      Offload offload;
      sent[i] = make({false, false, false, 60'000 + i, 1'448, kAck}, offload);
      REQUIRE(send(near, sent[i], offload) == 1);
    }
    std::array<RxFrame, 512> frames;
    size_t next = 0;
    size_t received = 0;
    wait_until([&] {
      const size_t got = far.receive(frames);
      CHECK(got <= 64);  // no more are lent at a time
      CHECK(far.receive(std::span(frames).subspan(got)) == 0);
      for (size_t i = 0; i < got; ++i) {
        while (next < kSent && !same(frames[i], sent[next])) ++next;  // in order, whole, with gaps at most
        REQUIRE(next++ < kSent);
      }
      received += got;
      far.release(got);
      return received + far.losses().receive_truncated == kSent;
    });
    CHECK(received >= 1);
    CHECK(received + far.losses().receive_truncated == kSent);
    CHECK(far.losses().receive_overrun == 0);
  });
}

TEST_CASE("af_packet offloads: long frames are fetched into packets of the caller's pool while it has some") {
  live([](Wire& wire) {
    const PortClock clock = clock_now();
    constexpr uint32_t kLong = 5;
    PacketMemory memory({.count = 8, .stride = 2048, .long_count = kLong});
    PacketPool pool(memory);
    AfPacketPort near({.interface = "near0", .offloads = true}, clock);
    uint32_t kept = 0, elsewhere = 0;
    {
      AfPacketPort far({.interface = "far0", .namespace_fd = wire.far, .receive_slots = 128, .offloads = true}, clock, &pool);
      std::array<RxFrame, 32> frames;
      for (uint32_t turn = 0; turn < 20; ++turn) {
        std::vector<Bytes> sent(9);
        for (uint32_t i = 0; i < sent.size(); ++i) {
          Offload offload;
          sent[i] = make({false, i % 2 == 1, i == 4, 20'000 + 1000 * i, 1'448, kAck}, offload);
          REQUIRE(send(near, sent[i], offload) == 1);
        }
        REQUIRE(receive_all(far, frames, sent.size()) == sent.size());
        for (uint32_t i = 0; i < sent.size(); ++i) {
          CAPTURE(i);
          if (frames[i].vlan_stripped) sent[i].erase(sent[i].begin() + 12, sent[i].begin() + 16);
          CHECK(same(frames[i], sent[i]));
          CHECK(frames[i].offload.gso == (i % 2 == 1 ? Gso::tcp6 : Gso::tcp4));
          if (frames[i].packet == nullptr) {
            ++elsewhere;
          } else {
            CHECK(!frames[i].vlan_stripped);
            CHECK(pool.data(*frames[i].packet) == frames[i].data);
            if (i % 2 == 0) {
              pool.free(take(frames[i]));
              ++kept;
            }
          }
        }
        if (turn != 19) far.release(sent.size());  // the last are lent still when the port ends
      }
    }
    CHECK(kept > 0);
    CHECK(elsewhere > 0);
    CHECK(pool.available() == 8);
    for (uint32_t i = 0; i < kLong; ++i) CHECK(pool.allocate(kMaxSuperFrame) != kNoPacket);
    CHECK(pool.allocate(kMaxSuperFrame) == kNoPacket);
  });
}
