#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "base/native_error.h"
#include "engine/impairment_port.h"
#include "test/rig/port.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint32_t kLength = 100;

// The first bytes number it.
std::vector<uint8_t> numbered(uint32_t number, bool tagged) {
  std::vector<uint8_t> bytes(kLength, static_cast<uint8_t>(number));
  if (tagged) bytes[12] = 0x81, bytes[13] = 0;
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

struct Bench {
  explicit Bench(const ImpairmentParameters& parameters, const ImpairmentOptions& options = {.seed = 1})
      : port(std::make_unique<ScriptedPort>(source), parameters, options, clock) {
    source.wait_descriptor = 17;
    source.losses = {1, 2, 3};
  }

  void offer(uint32_t count, bool tagged = false) {
    for (uint32_t i = 0; i < count; ++i) offer_at(clock.now, tagged);
  }
  void offer_at(Time stamp, bool tagged = false) { source.give_tagged(stamp, numbered(offered++, tagged), 0x6000); }
  struct Out {
    uint32_t number;
    Time stamp;
    std::vector<uint8_t> bytes;
    bool operator==(const Out&) const = default;
  };
  // Takes what is there, `batch` at a time, and checks that no frame has gone unaccounted for.
  std::vector<Out> take(size_t batch = 32) {
    std::vector<Out> out;
    std::vector<RxFrame> frames(batch);
    for (size_t count = 1; count > 0;) {
      count = port.receive(frames);
      for (size_t i = 0; i < count; ++i) {
        Out o{0, frames[i].stamp, {frames[i].data, frames[i].data + frames[i].length}};
        std::memcpy(&o.number, frames[i].data, sizeof o.number);
        CHECK(frames[i].vlan_tci == 0x6000);
        CHECK(frames[i].vlan_stripped);
        CHECK(frames[i].stamp <= std::max(clock.now, o.stamp));
        out.push_back(std::move(o));
      }
      port.release(count);
    }
    taken += out.size();
    const ImpairmentCounters& c = port.counters();
    REQUIRE(offered + c.duplicated == taken + c.lost + c.overflow + port.held());
    return out;
  }

  PortClock clock{1'000'000, 0};
  PortScript source;
  ImpairmentPort port;
  uint32_t offered = 0;
  uint64_t taken = 0;
};

int bits_changed(const std::vector<uint8_t>& bytes, uint32_t number, bool tagged, size_t* where = nullptr) {
  const std::vector<uint8_t> offered = numbered(number, tagged);
  int changed = 0;
  for (size_t i = 0; i < kLength; ++i) {
    const int bits = std::popcount(static_cast<unsigned>(bytes[i] ^ offered[i]));
    if (bits > 0 && where != nullptr) *where = i;
    changed += bits;
  }
  return changed;
}

// Six standard deviations of a binomial distribution: wrong once in 5e8.
bool plausible(uint64_t hits, uint64_t trials, double p) {
  const double n = static_cast<double>(trials);
  return std::abs(static_cast<double>(hits) - n * p) <= 6 * std::sqrt(n * p * (1 - p));
}

}  // namespace

TEST_CASE("impairment: without any, frames are lent on uncopied and handed back in order") {
  Bench bench({});
  bench.offer(3);
  std::array<RxFrame, 8> frames;
  REQUIRE(bench.port.receive(frames) == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(frames[i].data == bench.source.arriving[i].bytes.data());
    CHECK(frames[i].stamp == bench.clock.now);
  }
  bench.port.release(2);
  CHECK(bench.source.arriving.size() == 1);
  CHECK(frames[2].data[0] == 2);
  bench.port.release(1);
  CHECK(bench.source.arriving.size() == 0);
  CHECK(bench.port.next_deadline() == kNever);
  CHECK(bench.port.wait_descriptor() == 17);
  CHECK(bench.port.losses().receive_truncated == 2);
  bench.source.deadline = 55;
  CHECK(bench.port.next_deadline() == 55);
}

TEST_CASE("impairment: each kind happens as often as asked") {
  constexpr uint32_t kFrames = 20'000;
  constexpr double kP = 0.1;
  const ImpairmentParameters all{.loss = kP, .duplicate = kP, .corrupt = kP, .reorder = kP, .reorder_delay = 3000};
  Bench bench(all);
  for (uint32_t i = 0; i < kFrames / 20; ++i) {
    bench.offer(20);
    bench.take();
    bench.clock.now += 1000;
  }
  bench.clock.now += 10'000;
  bench.take();
  const ImpairmentCounters& c = bench.port.counters();
  CHECK(plausible(c.lost, kFrames, kP));
  const uint64_t survived = kFrames - c.lost;
  CHECK(plausible(c.duplicated, survived, kP));
  CHECK(plausible(c.corrupted, survived, kP));
  CHECK(plausible(c.reordered, survived, kP));
  CHECK(c.delayed == 0);
  CHECK(c.overflow == 0);
  CHECK(bench.port.held() == 0);
  CHECK(bench.source.arriving.size() == 0);
}

TEST_CASE("impairment: probabilities of 1 and of 0 are certain") {
  Bench bench({.loss = 1});
  bench.offer(500);
  CHECK(bench.take().empty());
  CHECK(bench.port.counters().lost == 500);
  CHECK(bench.source.arriving.size() == 0);  // handed back although nothing was lent on

  Bench twice({.duplicate = 1});
  twice.offer(5);
  std::vector<uint32_t> numbers;
  for (const auto& out : twice.take(1)) numbers.push_back(out.number);
  CHECK(numbers == std::vector<uint32_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4});
}

TEST_CASE("impairment: corruption flips one bit, anywhere behind the Ethernet header") {
  for (const bool tagged : {false, true}) {
    Bench bench({.corrupt = 1});
    std::map<size_t, int> places;
    for (int turn = 0; turn < 400; ++turn) {
      bench.offer(10, tagged);
      for (const auto& out : bench.take()) {
        size_t where = 0;
        REQUIRE(bits_changed(out.bytes, out.number, tagged, &where) == 1);
        ++places[where];
      }
    }
    CHECK(places.begin()->first == (tagged ? 18 : 14));
    CHECK(places.rbegin()->first == kLength - 1);
    CHECK(places.size() == kLength - (tagged ? 18 : 14));
  }
}

TEST_CASE("impairment: changed frames keep their place, also when stamps are ahead of the worker's clock") {
  Bench bench({.duplicate = 0.3, .corrupt = 0.5});
  for (uint32_t i = 0; i < 300; ++i) bench.offer_at(bench.clock.now + i);
  const auto out = bench.take(7);
  CHECK(out.size() > 300);
  CHECK(std::is_sorted(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.number < b.number; }));
  CHECK(bench.port.held() == 0);
}

TEST_CASE("impairment: the same seed gives the same run, another seed or link another") {
  const ImpairmentParameters all{
      .loss = 0.1, .duplicate = 0.1, .corrupt = 0.1, .reorder = 0.1, .delay = 500, .jitter = 2000, .reorder_delay = 3000};
  const auto run = [&](ImpairmentOptions options, size_t batch) {
    Bench bench(all, options);
    std::vector<Bench::Out> out;
    for (int i = 0; i < 300; ++i) {
      bench.offer(3);
      bench.clock.now += 700;
      for (auto& o : bench.take(batch)) out.push_back(std::move(o));
    }
    return out;
  };
  const auto first = run({.seed = 7, .component = 3}, 32);
  CHECK(first.size() > 500);
  CHECK(first == run({.seed = 7, .component = 3}, 32));
  CHECK(first == run({.seed = 7, .component = 3}, 1));  // whatever the caller's burst
  CHECK(first != run({.seed = 8, .component = 3}, 32));
  CHECK(first != run({.seed = 7, .component = 4}, 32));
}

TEST_CASE("impairment: adding one kind does not shift the decisions of another") {
  const auto run = [](const ImpairmentParameters& parameters) {
    Bench bench(parameters);
    bench.offer(2000);
    bench.clock.now += 1'000'000;
    std::map<uint32_t, std::vector<uint8_t>> out;
    std::vector<Bench::Out> frames = bench.take();
    bench.clock.now += 1'000'000;
    for (auto& o : bench.take()) frames.push_back(o);
    for (auto& o : frames) out[o.number] = o.bytes;
    return out;
  };
  const auto lossy = run({.loss = 0.2});
  const auto corrupt = run({.corrupt = 0.2});
  const auto both = run({.loss = 0.2, .corrupt = 0.2, .reorder = 0.1, .jitter = 50, .reorder_delay = 100});
  REQUIRE(both.size() == lossy.size());
  size_t changed = 0;
  for (const auto& [number, bytes] : both) {
    REQUIRE(lossy.count(number) == 1);
    REQUIRE(bytes == corrupt.at(number));
    changed += bytes != lossy.at(number);
  }
  CHECK(changed > 200);
}

TEST_CASE("impairment: a delay is exact in virtual time, and next_deadline tells it") {
  Bench bench({.delay = 5000});
  bench.offer(1);
  bench.clock.now += 300;
  bench.offer(1);
  CHECK(bench.take().empty());
  CHECK(bench.port.counters().delayed == 2);
  CHECK(bench.port.held() == 2);
  CHECK(bench.source.arriving.size() == 0);  // copied: the inner port has its frames back
  CHECK(bench.port.next_deadline() == 1'005'000);
  bench.clock.now = 1'004'999;
  CHECK(bench.take().empty());
  bench.clock.now = 1'005'000;
  auto out = bench.take();
  REQUIRE(out.size() == 1);
  CHECK(out[0].stamp == 1'005'000);
  CHECK(out[0].number == 0);
  CHECK(bits_changed(out[0].bytes, 0, false) == 0);
  CHECK(bench.port.next_deadline() == 1'005'300);
  bench.clock.now = 9'000'000;  // late: the stamp is not
  CHECK(bench.port.next_deadline() == 9'000'000);
  out = bench.take();
  REQUIRE(out.size() == 1);
  CHECK(out[0].stamp == 1'005'300);
}

TEST_CASE("impairment: a held frame is not early because a stamp is ahead of the worker's clock") {
  Bench bench({.delay = 1000});
  bench.offer(1);
  CHECK(bench.take().empty());
  bench.offer_at(bench.clock.now + 5000);
  CHECK(bench.take().empty());
  bench.clock.now += 1000;
  CHECK(bench.take().size() == 1);
}

TEST_CASE("impairment: jitter reaches both ends of its range") {
  Bench bench({.jitter = 1});
  std::map<Time, int> extra;
  for (int i = 0; i < 200; ++i) {
    bench.offer(1);
    const Time sent = bench.clock.now;
    bench.clock.now += 10;
    for (const auto& out : bench.take()) ++extra[out.stamp - sent];
  }
  CHECK(extra.size() == 2);
  CHECK(plausible(static_cast<uint64_t>(extra[1]), 200, 0.5));
}

TEST_CASE("impairment: jitter is uniform, added to the delay, and keeps the order") {
  Bench bench({.delay = 10'000, .jitter = 1000});
  std::map<uint32_t, Time> sent;
  std::vector<Bench::Out> out;
  for (uint32_t i = 0; i < 4000; ++i) {
    bench.offer(1);
    sent[i] = bench.clock.now;
    bench.clock.now += i < 2000 ? 2000 : 300;  // first too far apart to meet, then close
    for (auto& o : bench.take()) out.push_back(std::move(o));
  }
  bench.clock.now += 20'000;
  for (auto& o : bench.take()) out.push_back(std::move(o));
  REQUIRE(out.size() == 4000);
  double sum = 0;
  Time least = kNever;
  Time most = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    REQUIRE(out[i].number == i);
    const Time extra = out[i].stamp - sent[i] - 10'000;
    REQUIRE(extra >= 0);
    REQUIRE(extra <= 1000);
    if (i > 0) REQUIRE(out[i].stamp >= out[i - 1].stamp);
    if (i >= 2000) continue;
    least = std::min(least, extra);
    most = std::max(most, extra);
    sum += static_cast<double>(extra);
  }
  CHECK(least < 10);
  CHECK(most > 990);
  CHECK(std::abs(sum / 2000 - 500) < 6 * 1000 / std::sqrt(12.0 * 2000));
}

TEST_CASE("impairment: a reordered frame is overtaken by those of the next reorder_delay, and by no others") {
  Bench bench({.reorder = 0.05, .reorder_delay = 10'000});
  std::vector<Bench::Out> out;
  std::map<uint32_t, Time> sent;
  for (uint32_t i = 0; i < 3000; ++i) {
    sent[i] = bench.clock.now;
    bench.offer(1);
    for (auto& o : bench.take()) out.push_back(std::move(o));
    bench.clock.now += 1000;
  }
  bench.clock.now += 20'000;
  for (auto& o : bench.take()) out.push_back(std::move(o));
  REQUIRE(out.size() == 3000);
  uint64_t late = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const Time extra = out[i].stamp - sent[out[i].number];
    REQUIRE((extra == 0 || extra == 10'000));
    late += extra != 0;
    if (i > 0) REQUIRE(out[i].stamp >= out[i - 1].stamp);  // received in the order of the stamps
  }
  CHECK(late == bench.port.counters().reordered);
  CHECK(plausible(late, 3000, 0.05));
}

TEST_CASE("impairment: what does not fit its memory is lost and counted") {
  Bench bench({.delay = 1000}, {.seed = 1, .pool_frames = 4, .slot_bytes = kLength});
  bench.offer(10);
  CHECK(bench.take().empty());
  CHECK(bench.port.held() == 4);
  CHECK(bench.port.counters().overflow == 6);
  CHECK(bench.port.counters().delayed == 4);
  bench.clock.now += 1000;
  CHECK(bench.take().size() == 4);
  bench.offer(4);  // the slots are free again
  bench.clock.now += 1000;
  bench.take();
  CHECK(bench.port.counters().overflow == 6);

  Bench small({.delay = 1000}, {.seed = 1, .slot_bytes = kLength - 1});
  small.offer(3);
  small.take();
  CHECK(small.port.counters().overflow == 3);
}

TEST_CASE("impairment: borrowed frames of both kinds stay as they are until released, in any mixture") {
  Bench bench({.loss = 0.2, .duplicate = 0.2, .corrupt = 0.2}, {.seed = 5, .pool_frames = 64});
  std::deque<std::pair<RxFrame, std::vector<uint8_t>>> borrowed;
  std::array<RxFrame, 9> frames;
  for (uint32_t turn = 0; turn < 2000; ++turn) {
    bench.offer(turn % 5);
    const size_t count = bench.port.receive({frames.data(), 1 + turn % 9});
    for (size_t i = 0; i < count; ++i) {
      borrowed.push_back({frames[i], {frames[i].data, frames[i].data + frames[i].length}});
    }
    const size_t back = std::min<size_t>(borrowed.size(), turn % 4);
    for (size_t i = 0; i < back; ++i) {
      const auto& [frame, bytes] = borrowed.front();
      REQUIRE(std::memcmp(frame.data, bytes.data(), bytes.size()) == 0);
      borrowed.pop_front();
    }
    bench.port.release(back);
    if (borrowed.size() > 40) {
      bench.port.release(borrowed.size());
      borrowed.clear();
    }
  }
  bench.port.release(borrowed.size());
  while (const size_t count = bench.port.receive(frames)) bench.port.release(count);
  CHECK(bench.source.arriving.size() == 0);
  CHECK(bench.port.held() == 0);
}

TEST_CASE("impairment: parameters out of range are refused") {
  const auto refused = [](const ImpairmentParameters& parameters) {
    try {
      Bench bench(parameters);
      return false;
    } catch (const NativeError& error) {
      return error.code == "INVALID_CONFIG";
    }
  };
  CHECK(refused({.loss = -0.1}));
  CHECK(refused({.duplicate = 1.1}));
  CHECK(refused({.corrupt = std::numeric_limits<double>::quiet_NaN()}));
  CHECK(refused({.reorder = 0.1}));
  CHECK(refused({.delay = -1}));
  CHECK(refused({.jitter = 3601 * kSecond}));
  CHECK_FALSE(refused({.loss = 1, .delay = 3600 * kSecond}));
}
