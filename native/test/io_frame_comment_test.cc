#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "io/memory_port.h"
#include "io/packet_blocks.h"
#include "test/wire_fixtures.h"
#include "wire/mac_control.h"
#include "wire/qcn.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr CommentRate k40Meant{40'000'000'000, true};

// Hands over one frame.
struct OneFrame final : PacketPort {
  RxFrame frame;
  size_t receive(std::span<RxFrame> frames) override {
    frames[0] = frame;
    return 1;
  }
  void release(size_t) override {}
  Transmitted transmit(std::span<const TxFrame> frames) override { return {frames.size()}; }
  PortLosses losses() override { return {}; }
};

// What a capture says to a frame that comes in.
std::string comment_of(std::span<const uint8_t> bytes, const CommentRate& rate = {}, const CaptureOptions& options = {},
                       const Offload& offload = {}) {
  ExactFrame exact(bytes);
  PortClock clock;
  auto inner = std::make_unique<OneFrame>();
  inner->frame.data = exact.data();
  inner->frame.length = exact.length();
  inner->frame.offload = offload;
  CaptureOptions small = options;  // many are made
  small.snap_length = std::min(small.snap_length, uint32_t{2048});
  small.ring_bytes = 8192;
  const auto capture = std::make_shared<Capture>(small, 1);
  CapturePort port(std::move(inner), capture, 0, clock);
  RxFrame frame;
  port.receive({&frame, 1});
  Capture::Waiting waiting;
  if (!capture->peek(waiting)) return "(none)";
  Bytes captured;
  for (const auto piece : waiting.bytes) captured.insert(captured.end(), piece.begin(), piece.end());
  ExactFrame kept(captured);
  std::array<char, kLongestComment> out;
  return std::string(comment_on(waiting.frame, {kept.data(), kept.length()}, rate, out));
}

std::string pfc_comment(const PfcFrame& pfc, const CommentRate& rate) {
  Bytes frame(60);
  build_pfc(frame.data(), 0x020000000001, pfc);
  return comment_of(frame, rate);
}

uint32_t word(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("frame comment: PFC says which priorities pause for how long, and which may send") {
  CHECK(pfc_comment({.enable = 0x08, .quanta = {0, 0, 0, 65'535}}, k40Meant) ==
        "PFC: priority 3 paused for 65535 quanta = 838.8 us at 40 Gb/s (meant)");
  CHECK(pfc_comment({.enable = 0x08, .quanta = {0, 0, 0, 65'535}}, {1'000'000'000, false}) ==
        "PFC: priority 3 paused for 65535 quanta = 33.55 ms at 1 Gb/s");
  CHECK(pfc_comment({.enable = 0x08, .quanta = {0, 0, 0, 65'535}}, {}) == "PFC: priority 3 paused for 65535 quanta");
  CHECK(pfc_comment({.enable = 0x08, .quanta = {7, 7, 7, 0, 7}}, k40Meant) == "PFC: priority 3 may send");
  CHECK(pfc_comment({.enable = 0x5a, .quanta = {0, 1, 0, 1, 0, 0, 0}}, {100'000'000'000, false}) ==
        "PFC: priorities 1, 3 paused for 1 quanta = 5.12 ns at 100 Gb/s, priorities 4, 6 may send");
  CHECK(pfc_comment({.enable = 0}, k40Meant) == "PFC: no priority");
  // The longest there is, eight times another pause, is all there.
  const std::string longest = pfc_comment(
      {.enable = 0xff, .quanta = {65'527, 65'528, 65'529, 65'530, 65'531, 65'532, 65'533, 65'534}}, {123'456'789'123, true});
  CHECK(longest.size() < kLongestComment - 1);
  CHECK(longest.ends_with("priority 7 paused for 65534 quanta = 271.8 us at 123.5 Gb/s (meant)"));
}

TEST_CASE("frame comment: PAUSE, and MAC control of another kind") {
  Bytes frame(60);
  build_pause(frame.data(), 0x020000000001, 100);
  CHECK(comment_of(frame, {100'000'000, false}) == "PAUSE: the link paused for 100 quanta = 512 us at 100 Mb/s");
  build_pause(frame.data(), 0x020000000001, 0);
  CHECK(comment_of(frame, {100'000'000, false}) == "PAUSE: the link may send");
  frame[15] = 9;
  CHECK(comment_of(frame) == "MAC control of an unknown kind");
}

TEST_CASE("frame comment: CNMs tell feedback, queue and congestion point") {
  Bytes frame(kCnmMaxLength);
  const CongestionNotification cnm{.quantized_feedback = 23,
                                   .priority = 3,
                                   .congestion_point = 0x0011223344556677,
                                   .queue_offset = 6400,
                                   .queue_delta = -128,
                                   .destination_mac = 0x020000000002};
  frame.resize(build_cnm(frame.data(), {.destination_mac = 0x020000000001, .source_mac = 0x020000000002}, cnm));
  CHECK(comment_of(frame) ==
        "CNM for priority 3: fb 23 of 63 (reaction point cuts), queue 6400 B above its set point, 128 B less than at the "
        "sample before, congestion point 0011223344556677");
}

TEST_CASE("frame comment: RoCEv2 of other stacks: ECT, CE, CNPs") {
  const auto comments = [](const std::string& capture) {
    std::vector<std::string> all;
    for (const Bytes& frame : read_capture(capture)) all.push_back(comment_of(frame));
    return all;
  };
  const auto has = [](const std::vector<std::string>& all, const std::string& text) {
    return std::ranges::find(all, text) != all.end();
  };
  CHECK(has(comments("ce_marked"), "CE: congestion experienced"));
  CHECK(std::ranges::any_of(comments("cnp_injected"), [](const std::string& text) {
    return text.starts_with("CNP for QP 0x") && text.ends_with(" (reaction point cuts)");
  }));
}

TEST_CASE("frame comment: refused frames and unfinished work of senders are told") {
  Bytes frame(40);
  frame[12] = 0x08;
  CHECK(comment_of(frame) == "not understood: bad_ip_header");
  CHECK(comment_of(Bytes(5)) == "not understood: runt");
  CHECK(comment_of(Bytes(60), {}, {}, {.needs_checksum = true}) == "checksum left to the interface");
  CHECK(comment_of(Bytes(60), {}, {}, {.segment_size = 1448, .gso = Gso::tcp4, .needs_checksum = true}) ==
        "super-frame: the interface cuts it into segments of 1448 bytes");
}

TEST_CASE("frame comment: a frame cut by the snap length is known by all of its bytes") {
  for (const Bytes& frame : read_capture("ce_marked")) {
    const std::string whole = comment_of(frame);
    for (const uint32_t snap : {0u, 20u, 64u}) CHECK(comment_of(frame, {}, {.snap_length = snap}) == whole);
  }
  Bytes pfc(60);
  build_pfc(pfc.data(), 1, {.enable = 1, .quanta = {1}});
  CHECK(comment_of(pfc, {}, {.snap_length = 33}).empty());
  CHECK(comment_of(pfc, {}, {.snap_length = kPfcLength}) == "PFC: priority 0 paused for 1 quanta");
}

TEST_CASE("frame comment: chosen kinds") {
  Bytes pfc(60);
  build_pfc(pfc.data(), 1, {.enable = 1, .quanta = {1}});
  CHECK(comment_of(pfc, {}, {.kinds = kCaptureCnp | kCaptureCe}) == "(none)");
  CHECK(comment_of(pfc, {}, {.kinds = kCapturePfc}) != "(none)");
  size_t marked = 0;
  size_t plain = 0;
  for (const char* capture : {"ce_marked", "ops_rc"}) {
    for (const Bytes& frame : read_capture(capture)) {
      const std::string all = comment_of(frame);
      const bool is_marked = all == "CE: congestion experienced";
      (is_marked ? marked : plain) += 1;
      CHECK(comment_of(frame, {}, {.kinds = kCaptureCe}) == (is_marked ? all : "(none)"));
    }
  }
  CHECK(marked > 0);
  CHECK(plain > 0);
}

TEST_CASE("frame comment: any bytes give short plain text") {
  Random random(1, 2, 3);
  for (int round = 0; round < 20'000; ++round) {
    Bytes frame(static_cast<size_t>(random.uniform() * 130));
    for (uint8_t& byte : frame) byte = static_cast<uint8_t>(random.uniform() * 256);
    // Often enough MAC control or a CNM.
    if (round % 3 == 0 && frame.size() > 16) {
      frame[12] = round % 2 == 0 ? 0x88 : 0x22;
      frame[13] = round % 2 == 0 ? 0x08 : 0xe7;
      frame[14] &= 0x01;
      frame[15] &= 0x01;
    }
    const std::string text = comment_of(frame, k40Meant, {.snap_length = static_cast<uint32_t>(random.uniform() * 130)});
    CHECK(text.size() < kLongestComment);
    CHECK(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
  }
}

TEST_CASE("packet blocks: every length of frame, in as many pieces as the target has room for") {
  PortClock clock{.now = 0x1'2345'6789'abcd, .realtime_offset = 0};
  auto [left, right] = make_memory_pair({256, 2048}, clock, clock);
  const auto capture = std::make_shared<Capture>(CaptureOptions{.snap_length = 1000, .ring_bytes = 512 * 1024}, 3);
  CapturePort port(std::move(right), capture, 2, clock);
  std::vector<Bytes> frames;
  for (uint32_t i = 0; i < 200; ++i) {
    frames.emplace_back(14 + i * 7, static_cast<uint8_t>(i));
    const TxFrame frame{frames.back().data(), static_cast<uint32_t>(frames.back().size())};
    REQUIRE(port.transmit({&frame, 1}).sent == 1);
  }
  const std::array<CommentRate, 3> rates{};
  Bytes target(4096, 0xee);
  size_t number = 0;
  int calls = 0;
  for (size_t bytes = 0; (bytes = drain_blocks(*capture, rates, target)) > 0; ++calls) {
    for (size_t at = 0; at < bytes; ++number) {
      const uint8_t* block = target.data() + at;
      const Bytes& frame = frames.at(number);
      const uint32_t kept = std::min<uint32_t>(1000, static_cast<uint32_t>(frame.size()));
      REQUIRE(bytes - at >= 32);
      CHECK(word(block) == 6);
      const uint32_t length = word(block + 4);
      REQUIRE(length <= bytes - at);
      CHECK(length % 4 == 0);
      CHECK(word(block + length - 4) == length);
      CHECK(word(block + 8) == 2);
      CHECK((uint64_t{word(block + 12)} << 32 | word(block + 16)) == 0x1'2345'6789'abcd);
      CHECK(word(block + 20) == kept);
      CHECK(word(block + 24) == frame.size());
      CHECK(std::equal(frame.begin(), frame.begin() + kept, block + 28));
      const uint8_t* options = block + 28 + (kept + 3) / 4 * 4;
      CHECK(std::all_of(block + 28 + kept, options, [](uint8_t byte) { return byte == 0; }));
      CHECK(word(options) == (4u << 16 | 2));
      CHECK(word(options + 4) == 2);  // outbound
      // Some of these frames are refused, which their comment says; then the options end.
      const uint32_t comment = word(options + 8) >> 16;
      const uint8_t* end = options + 8 + (comment > 0 ? 4 + (comment + 3) / 4 * 4 : 0);
      CHECK(word(end) == 0);
      CHECK(end + 8 == block + length);
      at += length;
    }
  }
  CHECK(number == frames.size());
  CHECK(calls > 10);
}
