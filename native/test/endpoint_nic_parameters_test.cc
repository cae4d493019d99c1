// Parameters that a NIC cannot run with: refused when it is made, and when it runs, which then goes on as it was.
#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "test/nic_harness.h"
#include "test/refusal.h"

using namespace weir;
using namespace weir::test;

namespace {

struct Case {
  const char* what;
  std::function<void(NicParameters&)> change;
};

const Case kCases[] = {
    {"no timer for alpha", [](NicParameters& p) { dcqcn(p).dce_tcp_rtt = 0; }},
    {"slots without length",
     [](NicParameters& p) {
       dcqcn(p).form = DcqcnParameters::Form::slotted;
       dcqcn(p).rate_reduce_monitor_period = 0;
     }},
    {"a rate timer that goes back", [](NicParameters& p) { dcqcn(p).rpg_time_reset = -1; }},
    {"g of 0", [](NicParameters& p) { dcqcn(p).g = 0; }},
    {"g that is no number", [](NicParameters& p) { dcqcn(p).g = std::numeric_limits<double>::quiet_NaN(); }},
    {"a byte counter beyond 32 bits", [](NicParameters& p) { qcn(p).rpg_byte_reset = uint64_t{1} << 40; }},
    {"a jitter of more than the cycle", [](NicParameters& p) { qcn(p).jitter = 1.5; }},
    {"a token bucket without ticks", [](NicParameters& p) { p.grouping.token_bucket.tick = 0; }},
    {"a token bucket without depth", [](NicParameters& p) { p.grouping.token_bucket.depth = 0; }},
    {"no window", [](NicParameters& p) { dctcp(p).min_window = 0; }},
    {"no window at the start", [](NicParameters& p) { dctcp(p).initial_window = 0; }},
    {"alpha above 1", [](NicParameters& p) { dctcp(p).alpha_on_init = 2; }},
    {"CNPs at no priority", [](NicParameters& p) { p.cnp_priority = 8; }},
    {"CNPs with a DSCP of 7 bits", [](NicParameters& p) { p.cnp_dscp = 64; }},
    {"a window of CNPs that ends before it begins", [](NicParameters& p) { p.cnp_interval = -1; }},
    {"a negative rate at the start", [](NicParameters& p) { p.initial_rate = -1; }},
    {"a weight of 0", [](NicParameters& p) { p.scheduler.weights[2] = 0; }},
    {"a weight that overflows", [](NicParameters& p) { p.scheduler.weights[2] = 1u << 24; }},
    {"a DSCP of no priority", [](NicParameters& p) { p.priority_map.dscp[26] = 8; }},
    {"a PCP of no priority", [](NicParameters& p) { p.priority_map.pcp[7] = 255; }},
    {"no priority for the rest", [](NicParameters& p) { p.priority_map.fallback = 8; }},
};

NicParameters limited_parameters(const CongestionParameters& congestion_control) {
  NicParameters p = nic_parameters(1'000'000'000);
  p.congestion = congestion_control;
  p.grouping.limiter = Limiter::token_bucket;
  return p;
}

}  // namespace

TEST_CASE("nic parameters: what a NIC cannot run with is refused, and one that runs stays as it was") {
  for (const CongestionParameters& control : std::initializer_list<CongestionParameters>{DcqcnParameters{}, QcnParameters{}}) {
    const NicParameters good = limited_parameters(control);
    const std::vector<QueuePairParameters> pairs = {sender(), sender(0x22)};
    for (const Case& one : kCases) {
      CAPTURE(one.what);
      NicParameters bad = good;
      one.change(bad);
      CHECK(refusal([&] { NicHarness h(bad, pairs); }) == "INVALID_CONFIG");
      NicHarness alone(good, pairs);
      NicHarness asked(good, pairs);
      for (NicHarness* h : {&alone, &asked}) {
        h->run(kMillisecond);
        h->receive(kMillisecond, h->cnp());
        if (h == &asked) CHECK(refusal([&] { h->nic.reconfigure(bad, pairs); }) == "INVALID_CONFIG");
        h->receive(kMillisecond, h->data(0, 3));
        h->run(2 * kMillisecond);
      }
      REQUIRE(alone.frames.size() > 100);
      REQUIRE(alone.frames.size() == asked.frames.size());
      for (size_t i = 0; i < alone.frames.size(); ++i) {
        REQUIRE((alone.frames[i].at == asked.frames[i].at && alone.frames[i].bytes == asked.frames[i].bytes));
      }
    }
  }
}

TEST_CASE("nic parameters: what only making a NIC settles is refused there") {
  const auto made = [](const std::function<void(NicParameters&)>& change) {
    NicParameters p = nic_parameters();
    change(p);
    return refusal([&] { NicHarness h(p, {sender()}); });
  };
  CHECK(made([](NicParameters&) {}) == "");
  CHECK(made([](NicParameters& p) { p.rate = 0; }) == "INVALID_CONFIG");
  CHECK(made([](NicParameters& p) { p.verbs_queue_pairs = (1u << 15) + 1; }) == "INVALID_CONFIG");
  CHECK(made([](NicParameters& p) { p.memory_regions = UINT32_MAX; }) == "INVALID_CONFIG");
  CHECK(made([](NicParameters& p) { p.receive_buffer = {.size = -1, .drain = 1, .xoff = 0, .xon = 0}; }) == "INVALID_CONFIG");
  CHECK(made([](NicParameters& p) { p.receive_buffer = {.size = 1'000, .drain = -1, .xoff = 0, .xon = 0}; }) == "INVALID_CONFIG");
  CHECK(made([](NicParameters& p) { p.receive_buffer = {.size = 1'000, .drain = 1, .xoff = 1, .xon = 2}; }) == "INVALID_CONFIG");
}

TEST_CASE("nic parameters: queue pairs of no priority, or with packets that there is no room for, are refused") {
  const NicParameters good = nic_parameters();
  const auto made = [&](const std::function<void(QueuePairParameters&)>& change) {
    QueuePairParameters qp = sender();
    change(qp);
    return refusal([&] { NicHarness h(good, {qp}); });
  };
  CHECK(made([](QueuePairParameters&) {}) == "");
  CHECK(made([](QueuePairParameters& qp) { qp.priority = 8; }) == "INVALID_CONFIG");
  CHECK(made([](QueuePairParameters& qp) { qp.rate_cap = -1; }) == "INVALID_CONFIG");
  CHECK(made([](QueuePairParameters& qp) { qp.stream.path_mtu = 0; }) == "INVALID_CONFIG");
  CHECK(made([](QueuePairParameters& qp) { qp.stream.path_mtu = 4'097; }) == "INVALID_CONFIG");
  PacketPool small(16, kMaxHeaders + 1'024);
  QueuePairParameters qp = sender();
  qp.stream.path_mtu = 1'024;
  CHECK(refusal([&] { WireNic nic(good, {qp}, small); }) == "");
  qp.stream.path_mtu = 2'048;
  CHECK(refusal([&] { WireNic nic(good, {qp}, small); }) == "INVALID_CONFIG");
  NicHarness h(good, {sender()});
  CHECK(refusal([&] { h.nic.reconfigure(good, {}); }) == "INVALID_CONFIG");
  CHECK(refusal([&] { h.nic.reconfigure(good, {sender(), sender()}); }) == "INVALID_CONFIG");
}

TEST_CASE("nic parameters: applications get no queue pair of no priority either, or with longer packets than there is room for") {
  struct Nobody final : CompletionSink {
    void complete(const Completion&) override {}
  } nobody;
  NicParameters p = nic_parameters();
  p.verbs_queue_pairs = 4;
  PacketPool small(16, kMaxHeaders + 1'024);
  WireNic nic(p, {}, small, &nobody);
  const uint32_t qpn = nic.applications().create({});
  REQUIRE(qpn != 0);
  QueueAttributes attributes;
  attributes.path_mtu = 1'024;
  const RocePath path = path_to(kPeerMac, kNicMac);
  const auto modify = [&](QueuePairState to, uint8_t priority, Rate cap) {
    return refusal([&] { nic.applications().modify(qpn, to, attributes, path, priority, cap); });
  };
  CHECK(modify(QueuePairState::init, 3, 0) == "");
  CHECK(modify(QueuePairState::rtr, 8, 0) == "INVALID_CONFIG");
  CHECK(modify(QueuePairState::rtr, 3, -1) == "INVALID_CONFIG");
  attributes.path_mtu = 2'048;
  CHECK(modify(QueuePairState::rtr, 3, 0) == "INVALID_CONFIG");
  attributes.path_mtu = 1'024;
  CHECK(modify(QueuePairState::rtr, 3, 0) == "");
  CHECK(modify(QueuePairState::rts, 3, 0) == "");
}
