// DCTCP over a simulated switch: what the analysis of its paper says of N flows through one port that marks beyond K.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "test/histogram_figures.h"
#include "test/simulation_harness.h"
#include "wire/bth.h"

namespace weir::test {
namespace {

constexpr Rate kRate = 10 * kGigabit;
constexpr Time kWarm = 20 * kMillisecond;
constexpr Time kEnd = 80 * kMillisecond;

SimulationConfig under_dctcp(uint32_t senders, uint32_t threshold) {
  SimulationConfig config = star(senders + 1, kRate);
  for (SimulatedNic& nic : config.nics) nic.parameters.congestion = DctcpParameters{};
  SwitchParameters& p = config.switches[0].parameters;
  p.ecn_priorities = 1 << 3;
  p.red = {.kmin = threshold, .kmax = threshold, .pmax = 1};
  for (uint32_t i = 0; i < senders; ++i) {
    config.flows.push_back(flow(i, senders, static_cast<uint16_t>(i)));
    config.flows[i].reliable = true;
    config.flows[i].stream.message_bytes = 1 << 20;
    config.flows[i].start = static_cast<Time>(i) * 10 * kMicrosecond;
  }
  config.transport.window = 2'048;
  config.sampled_queues = {{0, static_cast<uint16_t>(senders), 3}};
  config.reset_after = kWarm;
  return config;
}

// Section 3.3 of the paper, in packets: Qmax = K + N, and the queue swings by A = 1/2 sqrt(2 N (C RTT + K)) while the windows
// grow from W* (1 - alpha / 2) back to W*.
TEST_CASE("simulation: under DCTCP the queue of N flows swings below K + N, and the link stays full") {
  for (const uint32_t senders : {2u, 10u, 20u}) {
    CAPTURE(senders);
    constexpr uint32_t kThreshold = 65;  // packets, as in the paper at 10 Gb/s
    SimulationConfig config = under_dctcp(senders, kThreshold * kFrame);
    Simulation simulation(config);
    finish(simulation, kWarm);
    const auto received = [&] {
      uint64_t sum = 0;
      for (uint32_t i = 0; i < senders; ++i) sum += simulation.counters(simulation.receiver(i)).rx_wire_bytes;
      return static_cast<double>(sum);
    };
    const double before = received();
    finish(simulation, kEnd);
    const Histogram& queue = simulation.queue_lengths().front().lengths;
    const auto packets = [](uint64_t bytes) { return static_cast<double>(bytes) / kFrame; };
    // There and back: a data frame is stored and forwarded, so is its acknowledgement, over two cables each.
    const double rtt = 4e-9 * kCable + 16.0 * (wire_bytes(kFrame) + wire_bytes(kAckFrame)) / static_cast<double>(kRate);
    const double pipe = static_cast<double>(kRate) * rtt / 8 / wire_bytes(kFrame);
    const double amplitude = 0.5 * std::sqrt(2.0 * senders * (pipe + kThreshold));
    CAPTURE(packets(queue.max()));
    CAPTURE(packets(percentile(queue, 0.01)));
    CAPTURE(amplitude);
    // The model has no packets and no frame on the link.
    CHECK(packets(queue.max()) <= kThreshold + senders + 3);
    CHECK(packets(queue.max()) >= kThreshold);
    // The queue lies between Qmax - A and Qmax, half way up; a little lower, as flows are not all in step.
    CHECK(packets(percentile(queue, 0.5)) >= kThreshold + senders - 0.75 * amplitude - 1);
    CHECK(packets(percentile(queue, 0.5)) <= kThreshold + senders - 0.25 * amplitude + 1);
    CHECK(packets(percentile(queue, 0.01)) >= kThreshold + senders - 1.5 * amplitude - 1);
    const double capacity = static_cast<double>(kRate) / 8 * static_cast<double>(kEnd - kWarm) / 1e9;
    CHECK(received() - before > 0.999 * capacity);
    simulation.settle();
    CHECK(dropped(simulation) == 0);
    for (uint32_t i = 0; i < senders; ++i) {
      CHECK(simulation.counters(simulation.sender(i)).cnp_handled == 0);
      CHECK(simulation.counters(simulation.receiver(i)).cnp_sent == 0);
      CHECK(simulation.counters(simulation.receiver(i)).duplicate == 0);
    }
  }
}

TEST_CASE("simulation: acknowledgements of marked packets carry the echo, and only under DCTCP") {
  for (const bool dctcp : {true, false}) {
    CAPTURE(dctcp);
    SimulationConfig config = under_dctcp(3, 20 * kFrame);
    if (!dctcp) without_congestion_control(config);
    config.taps = {{4, 0}};  // frames that the receiver sends
    Simulation simulation(config);
    finish(simulation, 2 * kMillisecond);
    uint64_t echoes = 0, acknowledgements = 0;
    for (const Traced& frame : read_trace(simulation.fabric().take_trace())) {
      constexpr uint32_t kLower = 42;  // Ethernet, IPv4, UDP
      REQUIRE(frame.bytes.size() >= kLower + kBthHeader);
      const Bth bth = load_bth(frame.bytes.data() + kLower);
      CHECK(bth.opcode == kOpcodeRcAcknowledge);
      ++acknowledgements;
      echoes += bth.becn;
    }
    uint64_t marked = 0, packets = 0;
    for (uint32_t i = 0; i < 3; ++i) {
      marked += simulation.counters(simulation.receiver(i)).ecn_marked;
      packets += simulation.counters(simulation.receiver(i)).rx_packets;
    }
    CHECK(marked > 0);
    CAPTURE(packets);
    if (dctcp) {
      // One for each packet, but for those that wait at the end.
      CHECK(acknowledgements + 3 >= packets);
      CHECK(echoes <= marked);
      CHECK(echoes + 3 >= marked);
    } else {
      CHECK(acknowledgements < packets / 16);
      CHECK(echoes == 0);
    }
  }
}

// Watches the one flow of a sending NIC, a few hundred ns at a time: less than from one acknowledgement to the next.
class Watch {
 public:
  // `marks`: echoes cut the window, too.
  Watch(SoftNic& nic, bool marks) : nic_(nic), marks_(marks) {}

  uint64_t timeouts = 0, halved = 0;

  void look() {
    const DctcpSender* dctcp = nic_.observation().flow_at(0, nic_.now()).controller.as<DctcpSender>();
    REQUIRE(dctcp != nullptr);
    if (nic_.allowed_rate(nic_.queue_pairs()[0]) == 0) return;  // has not begun, or has ended
    const TransportCounters& heard = nic_.transport_counters();
    const uint64_t sent = nic_.queue_pairs()[0].counters.tx_packets;
    const uint32_t window = dctcp->window();
    if (heard.local_ack_timeout_err > timeouts) {
      timeouts = heard.local_ack_timeout_err;
      CHECK(window == 1);
      alone_ = true;
      acks_ = heard.rx_acks;
      sent_ = before_;
    } else if (window < window_ && !marks_) {
      ++halved;
      // The window has what an acknowledgement added just before, and fractions.
      CHECK(window >= std::max(window_ / 2, 2u));
      CHECK(window <= std::max((window_ + 2) / 2, 2u));
    }
    if (heard.rx_acks > acks_) alone_ = false;
    if (alone_) CHECK(sent <= sent_ + 1);
    window_ = window;
    before_ = sent;
  }

 private:
  SoftNic& nic_;
  bool marks_;
  uint32_t window_ = 0;
  uint64_t before_ = 0;  // packets sent up to the last look
  // True from a timeout to the next acknowledgement.
  bool alone_ = false;
  uint64_t acks_ = 0, sent_ = 0;
};

TEST_CASE("simulation: under DCTCP a loss halves the window, a timeout leaves one packet, and everything arrives") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const bool marks : {false, true}) {
      CAPTURE(static_cast<int>(recovery));
      CAPTURE(marks);
      SimulationConfig config = under_dctcp(2, (marks ? 20 : 1'000) * kFrame);
      config.transport.recovery = recovery;
      config.transport.window = 256;
      config.transport.timeout = 8;
      for (SimulatedLink& link : config.links) {
        // Selective repeat finds all but what is lost twice without its timer.
        link.impairment.emplace().loss = recovery == LossRecovery::go_back_n ? 0.02 : 0.05;
      }
      for (NetworkFlow& f : config.flows) f.stream.total_bytes = 4 << 20;
      Simulation simulation(config);
      Watch watches[] = {{simulation.fabric().nic_at(0), marks}, {simulation.fabric().nic_at(1), marks}};
      for (Time at = 0; simulation.flows_ended() < 2; at += 200) {
        REQUIRE(at < 2 * kSecond);
        finish(simulation, at);
        for (Watch& watch : watches) watch.look();
      }
      for (const Watch& watch : watches) {
        CHECK(watch.timeouts > 2);
        if (!marks) CHECK(watch.halved > 5);
      }
      for (uint32_t i = 0; i < 2; ++i) CHECK(simulation.counters(simulation.receiver(i)).rx_bytes == 4 << 20);
    }
  }
}

TEST_CASE("simulation: a sample of a flow under DCTCP has its window and alpha") {
  SimulationConfig config = under_dctcp(2, 20 * kFrame);
  config.flows[1].start = 5 * kMillisecond;
  Simulation simulation(config);
  finish(simulation, 4 * kMillisecond);
  SoftNic& busy = simulation.fabric().nic_at(0);
  const NicObservation::SenderSample sample = busy.observation().sender_sample(0, busy.now());
  CHECK(sample.rate == busy.line_rate());
  CHECK(sample.target_rate == busy.line_rate());
  const DctcpSender* dctcp = busy.observation().flow_at(0, busy.now()).controller.as<DctcpSender>();
  CHECK(sample.window == dctcp->window());
  CHECK(sample.alpha == dctcp->alpha());
  SoftNic& idle = simulation.fabric().nic_at(1);
  CHECK(idle.observation().sender_sample(0, idle.now()).rate == 0);
  CHECK(idle.observation().sender_sample(0, idle.now()).window == 0);
}

}  // namespace
}  // namespace weir::test
