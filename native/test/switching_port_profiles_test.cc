#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "switching/shared_buffer.h"
#include "test/switch_harness.h"

using namespace weir;
using namespace weir::test;

namespace {

constexpr uint8_t kLossless = 1 << 3;

PortBuffer usual(const BufferParameters& p) {
  return {.headroom = p.headroom,
          .beta = p.beta,
          .fixed_threshold = p.fixed_threshold,
          .xon_offset = p.xon_offset,
          .lossy_alpha = p.lossy_alpha};
}

}  // namespace

TEST_CASE("port profiles: a port's own threshold and headroom, and what is left for all") {
  BufferParameters p;
  SharedBuffer buffer(p, 4, kLossless);
  CHECK(buffer.shared_size() == 12'000'000 - 8 * 4 * 22'400);
  PortBuffer own = usual(p);
  own.headroom = 100'000;
  own.beta = 2;
  std::vector<std::optional<PortBuffer>> ports(4);
  ports[1] = own;
  buffer.reconfigure(p, kLossless, ports);
  CHECK(buffer.shared_size() == 12'000'000 - 8 * (3 * 22'400 + 100'000));
  CHECK(buffer.headroom_size(0) == 22'400);
  CHECK(buffer.headroom_size(1) == 100'000);
  CHECK(buffer.pfc_threshold(0) == buffer.shared_size());
  CHECK(buffer.pfc_threshold(1) == buffer.shared_size() / 4);

  // Port 1 is stopped at a fifth of what is shared, where port 0 would not be.
  while (!buffer.above_xoff(1, 3)) REQUIRE(buffer.admit(1, 2, 3, 1'000) == Admission::admitted);
  CHECK(buffer.ingress_bytes(1, 3) == doctest::Approx(static_cast<double>(buffer.shared_size()) / 5).epsilon(0.01));
  CHECK_FALSE(buffer.above_xoff(0, 3));
  // It takes 100 KB after that, not 22.4.
  while (buffer.admit(1, 2, 3, 1'000) == Admission::admitted) {
  }
  CHECK(buffer.headroom_bytes(1, 3) == 100'000);

  buffer.reconfigure(p, kLossless, {});
  CHECK(buffer.headroom_size(1) == 22'400);
  CHECK(buffer.pfc_threshold(1) == buffer.pfc_threshold(0));
}

TEST_CASE("port profiles: a lossy queue has the share of the port that it leaves by") {
  BufferParameters p;
  p.priorities = 1;
  SharedBuffer buffer(p, 3, kLossless);
  PortBuffer own = usual(p);
  own.lossy_alpha = 0.25;
  buffer.reconfigure(p, kLossless, {std::nullopt, own, std::nullopt});
  const auto fill = [&buffer](int egress) {
    int64_t frames = 0;
    while (buffer.admit(0, egress, 0, 1'000) == Admission::admitted) ++frames;
    for (int64_t i = 0; i < frames; ++i) buffer.release(0, egress, 0, 1'000);
    return static_cast<double>(frames) * 1'000;
  };
  const auto shared = static_cast<double>(buffer.shared_size());
  CHECK(fill(2) == doctest::Approx(shared / 2).epsilon(0.01));  // alpha 1
  CHECK(fill(1) == doctest::Approx(shared / 5).epsilon(0.01));
}

TEST_CASE("port profiles: queues are marked by their port's thresholds, and by others from a reconfiguration on") {
  SwitchParameters p = switch_parameters(4);
  p.ecn_priorities = kLossless;
  p.red = {.kmin = 5'000, .kmax = 5'000};
  p.ports[3].red = RedParameters{.kmin = 50'000, .kmax = 50'000};
  SwitchHarness h(p);
  const auto marked_at = [&h](uint16_t port) {
    const uint64_t before = h.device.counters(port, 3).wred_ecn_marked_packets;
    for (int i = 0; i < 100; ++i) h.send(h.device.now(), 0, port);
    h.run(h.device.now() + kSecond);
    return h.device.counters(port, 3).wred_ecn_marked_packets - before;
  };
  const uint64_t low = marked_at(2);
  const uint64_t high = marked_at(3);
  CHECK(low > high + 40);  // 45 frames of 1,000 bytes lie between the two
  CHECK(high > 0);
  p.ports[3].red.reset();
  h.device.reconfigure(p);
  CHECK(marked_at(3) == low);
}
