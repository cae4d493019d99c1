// Parameters that a switch cannot run with: refused when it is made, and when it runs, which then goes on as it was.
#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "test/refusal.h"
#include "test/switch_harness.h"
#include "wire/qcn.h"

using namespace weir;
using namespace weir::test;

namespace {

struct Case {
  const char* what;
  std::function<void(SwitchParameters&)> change;
};

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

const Case kCases[] = {
    {"a weight of 0", [](SwitchParameters& p) { p.scheduler.weights[1] = 0; }},
    {"a weight that overflows", [](SwitchParameters& p) { p.scheduler.weights[1] = UINT32_MAX; }},
    {"a DSCP of no priority", [](SwitchParameters& p) { p.priority_map.dscp[3] = 8; }},
    {"a PCP of no priority", [](SwitchParameters& p) { p.priority_map.pcp[0] = 9; }},
    {"no priority for the rest", [](SwitchParameters& p) { p.priority_map.fallback = 200; }},
    {"thresholds in the wrong order", [](SwitchParameters& p) { p.red.kmin = p.red.kmax + 1; }},
    {"more than every frame marked", [](SwitchParameters& p) { p.red.pmax = 1.1; }},
    {"an average without weight", [](SwitchParameters& p) { p.red.weight = 0; }},
    {"a probability that is no number", [](SwitchParameters& p) { p.red.pmax = kNoNumber; }},
    {"headroom of no priorities", [](SwitchParameters& p) { p.buffer.priorities = 0; }},
    {"headroom of nine priorities", [](SwitchParameters& p) { p.buffer.priorities = 9; }},
    {"negative headroom", [](SwitchParameters& p) { p.buffer.headroom = -1; }},
    {"a buffer that overflows", [](SwitchParameters& p) { p.buffer.total = INT64_MAX; }},
    {"a negative share of the buffer", [](SwitchParameters& p) { p.buffer.beta = -1; }},
    {"a share that is no number", [](SwitchParameters& p) { p.buffer.lossy_alpha = kNoNumber; }},
    {"samples of no bytes", [](SwitchParameters& p) { p.qcn.cp_sample_base = 0; }},
    {"a set point of 0", [](SwitchParameters& p) { p.qcn.cp_queue_set_point = 0; }},
    {"a weight of 2^1000", [](SwitchParameters& p) { p.qcn.cp_weight = 1'000; }},
    {"CNMs at no priority", [](SwitchParameters& p) { p.cnm_priority = 8; }},
    {"no priority that is no CNPV", [](SwitchParameters& p) { p.cn_priorities = 0xff; }},
    {"more of a frame than a CNM holds", [](SwitchParameters& p) { p.cp_min_header_octets = 65; }},
    {"an alternate priority that is none",
     [](SwitchParameters& p) {
       p.ports[0].cn_defence[3] = CnDefence::edge;
       p.ports[0].cn_alternate_priority[3] = 8;
     }},
    {"an alternate priority that is a CNPV",
     [](SwitchParameters& p) {
       p.ports[0].cn_defence[3] = CnDefence::edge;
       p.ports[0].cn_alternate_priority[3] = 3;
     }},
    {"addresses that age at once", [](SwitchParameters& p) { p.ageing = 0; }},
    {"a negative rate", [](SwitchParameters& p) { p.ports[1].rate = -1; }},
    {"a negative limit to a rate", [](SwitchParameters& p) { p.ports[1].priority_rates[3] = -1; }},
    {"a negative limit to a queue", [](SwitchParameters& p) { p.ports[1].queue_limits[3] = -1; }},
    {"an MTU that overflows", [](SwitchParameters& p) { p.ports[1].mtu = UINT32_MAX; }},
};

}  // namespace

TEST_CASE("switch parameters: what a switch cannot run with is refused, and one that runs stays as it was") {
  SwitchParameters good = switch_parameters(3);
  good.cn_priorities = 1 << 3;
  good.red = {.kmin = 1'000, .kmax = 20'000, .pmax = 0.5};
  for (const Case& one : kCases) {
    CAPTURE(one.what);
    SwitchParameters bad = good;
    one.change(bad);
    CHECK(refusal([&] { SwitchHarness h(bad); }) == "INVALID_CONFIG");
    SwitchHarness alone(good), asked(good);
    for (int i = 0; i < 400; ++i) {
      const Time at = i * 5'000;
      for (SwitchHarness* h : {&alone, &asked}) {
        h->run(at);
        if (i == 100 && h == &asked) CHECK(refusal([&] { h->device.reconfigure(bad); }) == "INVALID_CONFIG");
        h->send(at, static_cast<uint16_t>(i % 2 * 2), 1, static_cast<uint8_t>(i % 3 + 1));
      }
    }
    for (SwitchHarness* h : {&alone, &asked}) {
      h->run(kSecond);
      h->check_drained();
    }
    CHECK(alone.departures == asked.departures);
  }
}

TEST_CASE("switch parameters: the number of ports stays") {
  SwitchHarness h(switch_parameters(3));
  CHECK(refusal([&] { h.device.reconfigure(switch_parameters(2)); }) == "INVALID_CONFIG");
  CHECK(refusal([&] { h.device.reconfigure(switch_parameters(4)); }) == "INVALID_CONFIG");
  CHECK(refusal([&] { h.device.reconfigure(switch_parameters(3)); }) == "");
  SwitchParameters many = switch_parameters(1);
  many.ports.resize(1u << 15, many.ports[0]);
  CHECK(refusal([&] { check(many); }) == "INVALID_CONFIG");
}
