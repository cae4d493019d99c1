#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "test/reference_checksum.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include "wire/offload.h"
#include "wire/segmentation.h"

using namespace weir;
using namespace weir::test;

namespace {

using Bytes = std::vector<uint8_t>;

struct Shape {
  bool udp = false;
  bool ipv6 = false;
  uint32_t tags = 0;
  uint32_t ip_options = 0;  // bytes, IPv4
  uint32_t payload = 100;
};

struct Built {
  Bytes frame;  // with 0 in the checksum field
  uint32_t l3 = 0, l4 = 0;
  uint32_t field = 0;  // offset of the checksum
  uint16_t pseudo = 0;
  uint16_t finished = 0;
};

Built build(const Shape& shape, Random& random) {
  Built built;
  Bytes& f = built.frame;
  f = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
  const auto put = [&](std::initializer_list<uint32_t> bytes) {
    for (const uint32_t byte : bytes) f.push_back(static_cast<uint8_t>(byte));
  };
  for (uint32_t i = 0; i < shape.tags; ++i)
    put({shape.tags == 2 && i == 0 ? 0x88u : 0x81u, shape.tags == 2 && i == 0 ? 0xa8u : 0u, 0x60, 5});
  const uint32_t protocol = shape.udp ? 17 : 6;
  const uint32_t length = (shape.udp ? 8 : 20) + shape.payload;
  if (shape.ipv6) {
    put({0x86, 0xdd});
    built.l3 = static_cast<uint32_t>(f.size());
    put({0x60, 0, 0, 0, length >> 8, length, protocol, 64});
    for (int i = 0; i < 32; ++i) put({static_cast<uint32_t>(random.next() & 0xff)});
  } else {
    put({0x08, 0});
    built.l3 = static_cast<uint32_t>(f.size());
    const uint32_t total = 20 + shape.ip_options + length;
    put({0x45 + shape.ip_options / 4, 0, total >> 8, total, 0, 0, 0x40, 0, 64, protocol, 0, 0});
    for (int i = 0; i < 8; ++i) put({static_cast<uint32_t>(random.next() & 0xff)});
    for (uint32_t i = 0; i < shape.ip_options; ++i) put({1});
  }
  built.l4 = static_cast<uint32_t>(f.size());
  for (uint32_t i = 0; i < length; ++i) put({static_cast<uint32_t>(random.next() & 0xff)});
  if (shape.udp) store_be16(&f[built.l4 + 4], static_cast<uint16_t>(length));
  built.field = built.l4 + (shape.udp ? 6 : 16);
  store_be16(&f[built.field], 0);
  Bytes all = pseudo_header(f, built.l3, built.l4);
  built.pseudo = reference_sum(all);
  all.insert(all.end(), f.begin() + built.l4, f.end());
  built.finished = static_cast<uint16_t>(~reference_sum(all));
  if (built.finished == 0) built.finished = 0xffff;
  return built;
}

bool infer(const Bytes& frame, Offload& offload) {
  const Bytes exact(frame);  // ASan sees the end
  return infer_partial_checksum(exact.data(), static_cast<uint32_t>(exact.size()), offload);
}

Shape random_shape(Random& random) {
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>(random.next() % n); };
  return {below(2) == 0, below(2) == 0, below(3), 4 * below(11), below(1'400)};
}

}  // namespace

TEST_CASE("partial checksum: the kernel's unfinished form is found in every kind of frame, and finished right") {
  Random random(17, 1, 1);
  for (int turn = 0; turn < 3'000; ++turn) {
    CAPTURE(turn);
    const Built built = build(random_shape(random), random);
    Bytes frame = built.frame;
    store_be16(&frame[built.field], built.pseudo);
    Offload offload;
    REQUIRE(infer(frame, offload));
    CHECK(offload.checksum_start == built.l4);
    CHECK(offload.checksum_start + offload.checksum_offset == built.field);
    CHECK(offload.gso == Gso::none);
    REQUIRE(check_offload(frame.data(), static_cast<uint32_t>(frame.size()), offload));
    REQUIRE(complete_checksum(frame.data(), static_cast<uint32_t>(frame.size()), offload));
    REQUIRE(load_be16(&frame[built.field]) == built.finished);
  }
}

TEST_CASE(
    "partial checksum: a finished one is left alone, and one that looks unfinished by chance is not changed by finishing it") {
  Random random(17, 1, 2);
  for (int turn = 0; turn < 3'000; ++turn) {
    CAPTURE(turn);
    const Built built = build(random_shape(random), random);
    Bytes frame = built.frame;
    store_be16(&frame[built.field], built.finished);
    Offload offload;
    REQUIRE(infer(frame, offload) == (built.finished == built.pseudo));

    // The payload's last two bytes are chosen so that the right checksum is the sum of the pseudo header: with it, everything
    // sums up to P + D + C = 0xffff, so D = ~(2 P).
    Shape shape = random_shape(random);
    shape.payload = 2 + 2 * (shape.payload / 2);
    const Built chosen = build(shape, random);
    Bytes alike = chosen.frame;
    uint8_t* last = &alike[alike.size() - 2];
    store_be16(last, 0);
    const uint16_t others = reference_sum(Bytes(alike.begin() + chosen.l4, alike.end()));
    const uint16_t twice = checksum_fold(2u * chosen.pseudo);
    store_be16(last, checksum_fold(static_cast<uint32_t>(static_cast<uint16_t>(~twice)) + static_cast<uint16_t>(~others)));
    store_be16(&alike[chosen.field], chosen.pseudo);
    const Bytes before = alike;
    offload = {};
    REQUIRE(infer(alike, offload));
    REQUIRE(complete_checksum(alike.data(), static_cast<uint32_t>(alike.size()), offload));
    REQUIRE(alike == before);
  }
}

TEST_CASE("partial checksum: what is none, or not for certain one, is left alone") {
  Random random(17, 1, 3);
  const Built udp = build({.udp = true}, random);
  const Built tcp = build({}, random);
  const Built ipv6 = build({.ipv6 = true}, random);
  const auto inferred = [](const Built& built, auto change) {
    Bytes frame = built.frame;
    store_be16(&frame[built.field], built.pseudo);
    change(frame);
    Offload offload;
    const bool found = infer(frame, offload);
    CHECK(offload.pending() == found);
    return found;
  };
  const auto byte = [](size_t at, uint8_t value) { return [at, value](Bytes& frame) { frame[at] = value; }; };
  for (const Built* built : {&udp, &tcp, &ipv6}) CHECK(inferred(*built, [](Bytes&) {}));
  CHECK_FALSE(inferred(udp, [&](Bytes& frame) { store_be16(&frame[udp.field], 0); }));
  CHECK_FALSE(inferred(udp, [&](Bytes& frame) { store_be16(&frame[udp.field], static_cast<uint16_t>(~udp.pseudo)); }));
  CHECK_FALSE(inferred(tcp, byte(20, 0x20)));                            // a fragment
  CHECK_FALSE(inferred(tcp, byte(21, 0x01)));                            // a later one
  CHECK_FALSE(inferred(tcp, byte(14, 0x44)));                            // header length
  CHECK_FALSE(inferred(tcp, byte(14, 0x65)));                            // version
  CHECK_FALSE(inferred(tcp, byte(13, 0x06)));                            // ARP
  CHECK_FALSE(inferred(tcp, byte(23, 132)));                             // SCTP
  CHECK_FALSE(inferred(ipv6, byte(14, 0x40)));                           // version
  CHECK_FALSE(inferred(ipv6, byte(20, 0)));                              // hop-by-hop options
  CHECK_FALSE(inferred(tcp, [](Bytes& frame) { frame.push_back(0); }));  // padded: it has been on a real network
  CHECK_FALSE(inferred(tcp, [](Bytes& frame) { frame.pop_back(); }));
}

TEST_CASE("partial checksum: hostile frames are refused or done within bounds") {
  Random random(17, 1, 4);
  uint32_t found = 0;
  for (int turn = 0; turn < 60'000; ++turn) {
    Shape shape = random_shape(random);
    shape.payload %= 60;
    const Built built = build(shape, random);
    Bytes frame = built.frame;
    store_be16(&frame[built.field], built.pseudo);
    for (uint64_t n = random.next() % 3; n > 0; --n)
      frame[12 + random.next() % (frame.size() - 12)] = static_cast<uint8_t>(random.next());
    if (random.next() % 4 == 0) frame.resize(random.next() % (frame.size() + 1));
    Offload offload;
    if (!infer(frame, offload)) continue;
    ++found;
    REQUIRE(check_offload(frame.data(), static_cast<uint32_t>(frame.size()), offload));
    complete_checksum(frame.data(), static_cast<uint32_t>(frame.size()), offload);
  }
  CHECK(found > 10'000);
}
