// Super-frames are cut and checksums finished; the judge is a straightforward second formulation over whole datagrams.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "test/reference_checksum.h"
#include "wire/bytes.h"
#include "wire/segmentation.h"

using namespace weir;
using namespace weir::test;

namespace {

using Bytes = std::vector<uint8_t>;

struct Shape {
  bool udp = false;
  bool ipv6 = false;
  uint32_t tags = 0;        // 802.1Q
  uint32_t ip_options = 0;  // bytes, IPv4
  uint32_t extension = 0;   // bytes of destination options, IPv6
  uint32_t tcp_options = 0;
  uint32_t payload = 5'000;
  uint16_t segment = 1'448;
  uint16_t id = 0xfffe;
  uint32_t sequence = 0xfffff000;
  uint8_t flags = 0x18;  // ACK, PSH
};

// The frame as a host hands it over: checksum field holds the folded pseudo header.
Bytes make(const Shape& shape, Offload& offload, Random& random) {
  Bytes f = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
  const auto put16 = [&](uint32_t v) {
    f.push_back(static_cast<uint8_t>(v >> 8));
    f.push_back(static_cast<uint8_t>(v));
  };
  for (uint32_t i = 0; i < shape.tags; ++i) {
    put16(shape.tags == 2 && i == 0 ? 0x88a8 : 0x8100);
    put16(0x6005);
  }
  put16(shape.ipv6 ? 0x86dd : 0x0800);
  const uint32_t l3 = static_cast<uint32_t>(f.size());
  const uint32_t l4_header = shape.udp ? 8 : 20 + shape.tcp_options;
  const uint8_t protocol = shape.udp ? 17 : 6;
  if (shape.ipv6) {
    f.insert(f.end(), {0x6a, 0x21, 0x22, 0x23});
    put16(shape.extension + l4_header + shape.payload);
    f.push_back(shape.extension > 0 ? 60 : protocol);
    f.push_back(63);
    for (int i = 0; i < 32; ++i) f.push_back(static_cast<uint8_t>(random.next()));
    if (shape.extension > 0) {
      f.insert(f.end(), {protocol, static_cast<uint8_t>(shape.extension / 8 - 1), 1, static_cast<uint8_t>(shape.extension - 4)});
      f.resize(f.size() + shape.extension - 4);
    }
  } else {
    f.insert(f.end(), {static_cast<uint8_t>(0x45 + shape.ip_options / 4), 2});
    put16(20 + shape.ip_options + l4_header + shape.payload);
    put16(shape.id);
    f.insert(f.end(), {0x40, 0, 63, protocol, 0, 0});
    for (int i = 0; i < 8; ++i) f.push_back(static_cast<uint8_t>(random.next()));
    for (uint32_t i = 0; i < shape.ip_options; ++i) f.push_back(1);
    const uint16_t sum = static_cast<uint16_t>(~reference_sum(Bytes(f.begin() + l3, f.end())));
    store_be16(&f[l3 + 10], sum);
  }
  const uint32_t l4 = static_cast<uint32_t>(f.size());
  put16(40'000);
  put16(5'001);
  if (shape.udp) {
    put16(8 + shape.payload);
    put16(0);
  } else {
    put16(shape.sequence >> 16);
    put16(shape.sequence & 0xffff);
    f.insert(f.end(), {1, 2, 3, 4, static_cast<uint8_t>(l4_header << 2), shape.flags, 0x10, 0, 0, 0, 0, 0});
    for (uint32_t i = 0; i < shape.tcp_options; ++i) f.push_back(static_cast<uint8_t>(random.next()));
  }
  for (uint32_t i = 0; i < shape.payload; ++i) f.push_back(static_cast<uint8_t>(random.next()));
  offload = {.checksum_start = static_cast<uint16_t>(l4),
             .checksum_offset = static_cast<uint16_t>(shape.udp ? 6 : 16),
             .segment_size = shape.segment,
             .gso = shape.udp    ? Gso::udp
                    : shape.ipv6 ? Gso::tcp6
                                 : Gso::tcp4,
             .needs_checksum = true};
  store_be16(&f[l4 + offload.checksum_offset], reference_sum(pseudo_header(f, l3, l4)));
  return f;
}

// Everything that RFC 791, 8200, 768 and 9293 say of the segments of one frame.
void check_segments(const Shape& shape, const Bytes& frame, const Offload& offload) {
  const uint32_t length = static_cast<uint32_t>(frame.size());
  const uint32_t l3 = 14 + 4 * shape.tags;
  const uint32_t l4 = offload.checksum_start;
  const uint32_t count = segment_count(length, offload);
  REQUIRE(count == (shape.payload + shape.segment - 1u) / shape.segment);
  Bytes joined;
  for (uint32_t i = 0; i < count; ++i) {
    CAPTURE(i);
    const bool last = i + 1 == count;
    Bytes out(offload.largest_segment(length));  // not a byte more: ASan watches
    out.resize(write_segment(frame.data(), length, offload, i, out.data()));
    const uint32_t payload = last ? shape.payload - i * shape.segment : shape.segment;
    REQUIRE(out.size() == offload.header_length + payload);
    joined.insert(joined.end(), out.begin() + offload.header_length, out.end());
    Bytes datagram = pseudo_header(out, l3, l4);
    datagram.insert(datagram.end(), out.begin() + l4, out.end());
    CHECK(reference_sum(datagram) == 0xffff);
    if (shape.ipv6) {
      CHECK(load_be16(&out[l3 + 4]) == out.size() - l3 - 40);
    } else {
      CHECK(reference_sum(Bytes(out.begin() + l3, out.begin() + l4)) == 0xffff);
      CHECK(load_be16(&out[l3 + 2]) == out.size() - l3);
      CHECK(load_be16(&out[l3 + 4]) == static_cast<uint16_t>(shape.id + i));
    }
    // This must not change: all headers but lengths, identification, checksums, sequence number and flags.
    Bytes a(frame.begin(), frame.begin() + offload.header_length);
    Bytes b(out.begin(), out.begin() + offload.header_length);
    if (shape.udp) {
      CHECK(load_be16(&out[l4 + 4]) == 8 + payload);
      CHECK(load_be16(&out[l4 + 6]) != 0);
      std::memset(&a[l4 + 4], 0, 4);
      std::memset(&b[l4 + 4], 0, 4);
    } else {
      CHECK(load_be32(&out[l4 + 4]) == shape.sequence + i * shape.segment);
      uint8_t flags = shape.flags;
      if (!last) flags = flags & ~0x09;
      if (i > 0) flags = flags & ~0x80;
      CHECK(out[l4 + 13] == flags);
      for (Bytes* h : {&a, &b}) {
        std::memset(&(*h)[l4 + 4], 0, 4);
        (*h)[l4 + 13] = 0;
        std::memset(&(*h)[l4 + 16], 0, 2);
      }
    }
    for (Bytes* h : {&a, &b}) {
      std::memset(&(*h)[l3 + (shape.ipv6 ? 4 : 2)], 0, shape.ipv6 ? 2 : 4);
      if (!shape.ipv6) std::memset(&(*h)[l3 + 10], 0, 2);
    }
    CHECK(a == b);
  }
  CHECK(joined == Bytes(frame.begin() + offload.header_length, frame.end()));
}

}  // namespace

TEST_CASE("segmentation: every segment is a whole, right datagram, whatever the shape of the super-frame") {
  Random random(7, 1, 1);
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>(random.next() % n); };
  for (int turn = 0; turn < 1'500; ++turn) {
    Shape shape;
    shape.udp = below(3) == 0;
    shape.ipv6 = below(2) == 0;
    shape.tags = below(3);
    shape.ip_options = 4 * below(11);
    shape.extension = below(4) == 0 ? 8 * (1 + below(4)) : 0;
    shape.tcp_options = 4 * below(11);
    shape.segment = static_cast<uint16_t>(8 + below(below(2) == 0 ? 100 : 9'000));
    shape.payload = 1 + below(turn % 50 == 0 ? 65'300 : 20'000);
    shape.id = static_cast<uint16_t>(random.next());
    shape.sequence = static_cast<uint32_t>(random.next());
    shape.flags = static_cast<uint8_t>(random.next());
    Offload offload;
    const Bytes frame = make(shape, offload, random);
    CAPTURE(turn);
    REQUIRE(check_offload(frame.data(), static_cast<uint32_t>(frame.size()), offload));
    check_segments(shape, frame, offload);
  }
}

TEST_CASE("segmentation: a partial checksum is finished, and a UDP one is never 0") {
  Random random(7, 1, 2);
  for (int turn = 0; turn < 400; ++turn) {
    Shape shape;
    shape.udp = turn % 2 == 0;
    shape.ipv6 = turn % 4 < 2;
    shape.payload = 2 + static_cast<uint32_t>(random.next() % 1'400);
    Offload offload;
    Bytes frame = make(shape, offload, random);
    offload.gso = Gso::none;
    if (turn % 8 == 0) {  // makes the sum come out as 0
      store_be16(&frame[offload.checksum_start + 8], 0);
      const Bytes covered(frame.begin() + offload.checksum_start, frame.end());
      store_be16(&frame[offload.checksum_start + 8], static_cast<uint16_t>(~reference_sum(covered)));
    }
    REQUIRE(check_offload(frame.data(), static_cast<uint32_t>(frame.size()), offload));
    REQUIRE(complete_checksum(frame.data(), static_cast<uint32_t>(frame.size()), offload));
    Bytes datagram = pseudo_header(frame, 14, offload.checksum_start);
    datagram.insert(datagram.end(), frame.begin() + offload.checksum_start, frame.end());
    CHECK(reference_sum(datagram) == 0xffff);
    const uint16_t field = load_be16(&frame[offload.checksum_start + offload.checksum_offset]);
    CHECK(field != 0);
    if (turn % 8 == 0) CHECK(field == 0xffff);
  }
}

TEST_CASE("segmentation: an SCTP checksum, which is a CRC, is left alone") {
  Bytes frame(200, 7);
  const Bytes before = frame;
  Offload offload{.checksum_start = 34, .checksum_offset = 8, .needs_checksum = true};
  REQUIRE(check_offload(frame.data(), 200, offload));
  CHECK_FALSE(complete_checksum(frame.data(), 200, offload));
  CHECK(frame == before);
}

TEST_CASE("offload: what does not fit the frame is refused") {
  Random random(7, 1, 3);
  Offload good;
  const Bytes frame = make({}, good, random);
  const uint32_t length = static_cast<uint32_t>(frame.size());
  const auto accepted = [&](const Bytes& bytes, Offload offload) {
    return check_offload(bytes.data(), static_cast<uint32_t>(bytes.size()), offload);
  };
  const auto with_offload = [&](auto change) {
    Offload offload = good;
    change(offload);
    return accepted(frame, offload);
  };
  const auto with_byte = [&](size_t at, uint8_t value) {
    Bytes bytes = frame;
    bytes[at] = value;
    return accepted(bytes, good);
  };
  REQUIRE(accepted(frame, good));
  CHECK(accepted(frame, {}));
  CHECK_FALSE(with_offload([](Offload& o) { o.gso = Gso::unsupported; }));
  CHECK_FALSE(with_offload([](Offload& o) { o.gso = Gso::tcp6; }));
  CHECK_FALSE(with_offload([](Offload& o) { o.gso = Gso::udp; }));
  CHECK_FALSE(with_offload([](Offload& o) { o.needs_checksum = false; }));
  CHECK_FALSE(with_offload([](Offload& o) { o.segment_size = 0; }));
  CHECK_FALSE(with_offload([](Offload& o) { o.segment_size = 7; }));
  CHECK(with_offload([](Offload& o) { o.segment_size = 8; }));
  CHECK(with_offload([](Offload& o) { o.segment_size = 65'535; }));  // a super-frame of one
  CHECK_FALSE(with_offload([](Offload& o) { o.checksum_start = 33; }));
  CHECK_FALSE(with_offload([](Offload& o) { o.checksum_offset = 6; }));
  CHECK_FALSE(with_byte(14, 0x46));                                 // header length
  CHECK_FALSE(with_byte(14, 0x65));                                 // version
  CHECK_FALSE(with_byte(17, static_cast<uint8_t>(frame[17] + 1)));  // total length
  CHECK_FALSE(with_byte(20, 0x20));                                 // more fragments
  CHECK_FALSE(with_byte(23, 17));                                   // protocol
  CHECK_FALSE(with_byte(34 + 12, 0x40));                            // data offset below 5
  CHECK_FALSE(accepted(Bytes(frame.begin(), frame.end() - 1), good));
  Bytes bare(frame.begin(), frame.begin() + 54);  // headers only
  store_be16(&bare[16], 40);
  CHECK_FALSE(accepted(bare, good));

  good.gso = Gso::none;
  CHECK_FALSE(with_offload([](Offload& o) { o.checksum_start = 13; }));
  CHECK_FALSE(with_offload([&](Offload& o) { o.checksum_offset = static_cast<uint16_t>(length - o.checksum_start - 1); }));
  CHECK(with_offload([&](Offload& o) { o.checksum_offset = static_cast<uint16_t>(length - o.checksum_start - 2); }));
  CHECK_FALSE(with_offload([](Offload& o) { o.checksum_start = o.checksum_offset = 0xffff; }));
}

TEST_CASE("offload: hostile headers and frames are refused or done within bounds") {
  Random random(7, 1, 4);
  uint32_t accepted = 0;
  for (int turn = 0; turn < 60'000; ++turn) {
    Shape shape;
    shape.udp = random.next() % 2 == 0;
    shape.ipv6 = random.next() % 2 == 0;
    shape.payload = 1 + static_cast<uint32_t>(random.next() % 200);
    shape.segment = static_cast<uint16_t>(8 + random.next() % 100);
    Offload offload;
    Bytes frame = make(shape, offload, random);
    std::array<uint8_t, kOffloadHeader> header;
    store_offload(header.data(), offload);
    for (uint64_t n = random.next() % 3; n > 0; --n) header[random.next() % header.size()] = static_cast<uint8_t>(random.next());
    for (uint64_t n = random.next() % 3; n > 0; --n) frame[12 + random.next() % 60] = static_cast<uint8_t>(random.next());
    if (random.next() % 3 == 0) frame.resize(14 + random.next() % (frame.size() - 13));
    frame.shrink_to_fit();  // ASan sees the end
    offload = load_offload(header.data());
    const uint32_t length = static_cast<uint32_t>(frame.size());
    if (!check_offload(frame.data(), length, offload)) continue;
    ++accepted;
    if (offload.gso == Gso::none) {
      if (offload.needs_checksum) complete_checksum(frame.data(), length, offload);
      continue;
    }
    Bytes out(offload.largest_segment(length));
    const uint32_t count = segment_count(length, offload);
    REQUIRE(count > 0);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t size = write_segment(frame.data(), length, offload, i, out.data());
      REQUIRE(size > offload.header_length);
      REQUIRE(size <= out.size());
    }
  }
  CHECK(accepted > 10'000);
}

TEST_CASE("offload: the header in front of a frame says the same when written and read") {
  Random random(7, 1, 5);
  for (const Gso gso : {Gso::none, Gso::tcp4, Gso::tcp6, Gso::udp}) {
    for (const bool ecn : {false, true}) {
      Offload offload{.checksum_start = 54, .checksum_offset = 16, .gso = gso, .needs_checksum = true};
      if (gso != Gso::none) {
        offload.segment_size = 1'428;
        offload.ecn = ecn;
      }
      std::array<uint8_t, kOffloadHeader> header;
      store_offload(header.data(), offload);
      const Offload back = load_offload(header.data());
      CHECK(back.gso == gso);
      CHECK(back.ecn == offload.ecn);
      CHECK(back.needs_checksum);
      CHECK(back.checksum_start == 54);
      CHECK(back.checksum_offset == 16);
      CHECK(back.segment_size == offload.segment_size);
    }
  }
  // virtio 1.2, section 5.1.6: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset.
  const std::array<uint8_t, kOffloadHeader> tso = {1, 0x81, 66, 0, 0xa8, 0x05, 34, 0, 16, 0};
  const Offload read = load_offload(tso.data());
  CHECK(read.gso == Gso::tcp4);
  CHECK(read.ecn);
  CHECK(read.segment_size == 1'448);
  CHECK(read.checksum_start == 34);
  const std::array<uint8_t, kOffloadHeader> fragments = {1, 3, 42, 0, 0xa8, 0x05, 34, 0, 6, 0};  // UFO
  CHECK(load_offload(fragments.data()).gso == Gso::unsupported);
}
