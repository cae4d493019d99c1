// Contents of a trace: headers that parse, and that say what was sent.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "test/simulation_harness.h"
#include "wire/checksum.h"
#include "wire/classify.h"
#include "wire/icrc.h"
#include "wire/mac_control.h"

namespace weir::test {
namespace {

// The frame with its payload as zeros.
std::vector<uint8_t> whole(const Traced& frame) {
  std::vector<uint8_t> bytes = frame.bytes;
  bytes.resize(frame.length);
  return bytes;
}

// Two senders into one port, over a link that loses: marks, CNPs, pauses, acknowledgements good and bad.
SimulationConfig congested(LossRecovery recovery) {
  SimulationConfig config = star(3, 40 * kGigabit);
  config.transport.recovery = recovery;
  config.switches[0].parameters.red = {.kmin = 3'000, .kmax = 20'000, .pmax = 0.5};
  config.switches[0].parameters.buffer.fixed_threshold = 8'000;
  config.switches[0].parameters.buffer.threshold = BufferParameters::Threshold::fixed;
  for (uint32_t i = 0; i < 2; ++i) {
    config.flows.push_back(flow(i, 2, static_cast<uint16_t>(i)));
    config.flows[i].reliable = i == 1;
    config.flows[i].stream.operation = i == 1 ? Operation::write : Operation::send;
    config.flows[i].stream.message_bytes = 5'001;
    config.flows[i].stream.total_bytes = 2'000'000;
    config.flows[i].stream.first_psn = 0xfffff0;
  }
  config.links[1].impairment.emplace().loss = 0.005;
  config.transport.timeout = 5;
  for (uint16_t i = 0; i < 3; ++i) config.taps.push_back({1u + i, 0});
  for (uint16_t i = 0; i < 3; ++i) config.taps.push_back({0, i});
  return config;
}

struct Count {
  uint64_t frames = 0, data = 0, marked = 0, cnps = 0, acks = 0, naks = 0, pfc = 0, bytes = 0, spoilt = 0;
};

void check_pfc(const Traced& frame, const SimulationConfig& config) {
  PfcFrame pfc;
  REQUIRE(frame.bytes.size() == kMinimumFrame);
  CHECK(frame.length == kMinimumFrame);
  REQUIRE(parse_pfc(frame.bytes.data(), kMinimumFrame, pfc));
  CHECK(pfc.enable == 1 << 3);
  CHECK((pfc.quanta[3] == 0 || pfc.quanta[3] == 0xffff));
  for (int p = 0; p < kPriorities; ++p) CHECK((p == 3 || pfc.quanta[p] == 0));
  PacketMeta meta;
  CHECK(classify(frame.bytes.data(), kMinimumFrame, meta) == Refusal::none);
  CHECK(meta.kind == FrameKind::pfc);
  CHECK(meta.destination_mac == kMacControlAddress);
  REQUIRE(frame.tap >= 3);
  CHECK(meta.source_mac == config.switches[0].parameters.ports[frame.tap - 3].mac);
}

void check_frame(const Traced& frame, const SimulationConfig& config, Count& count) {
  ++count.frames;
  count.bytes += wire_bytes(frame.length);
  if (load_be16(frame.bytes.data() + 12) == kEthertypeMacControl) {
    ++count.pfc;
    return check_pfc(frame, config);
  }
  const std::vector<uint8_t> bytes = whole(frame);
  PacketMeta meta;
  REQUIRE(classify(bytes.data(), frame.length, meta) == Refusal::none);
  const Bth bth = load_bth(bytes.data() + meta.bth_offset);
  // The tap and port tell which of the two flows it is, and in which direction.
  const uint32_t from = frame.tap < 3 ? frame.tap : 3;
  REQUIRE((meta.udp_source_port == 0xc000 || meta.udp_source_port == 0xc001));
  const uint32_t number = meta.udp_source_port - 0xc000u;
  const bool forth = meta.source_mac == config.nics[number].parameters.mac;
  const SimulatedNic& source = config.nics[forth ? number : 2];
  const SimulatedNic& destination = config.nics[forth ? 2 : number];
  CHECK((from == 3 || from == (forth ? number : 2)));
  CHECK(meta.source_mac == source.parameters.mac);
  CHECK(meta.destination_mac == destination.parameters.mac);
  CHECK(std::equal(source.ip, source.ip + 4, bytes.data() + 26));
  CHECK(std::equal(destination.ip, destination.ip + 4, bytes.data() + 30));
  CHECK(meta.destination_qp == 0x11 + (forth ? number : 0));
  if (meta.kind == FrameKind::cnp) {
    ++count.cnps;
    CHECK(meta.dscp == 48);
    CHECK(meta.ecn == 0);
    CHECK(bth.becn);
    CHECK(frame.bytes.size() == frame.length);
    CHECK(icrc_ok(bytes.data(), meta));
    return;
  }
  CHECK(meta.dscp == 26);
  count.marked += meta.ecn == 3;
  CHECK((meta.ecn == 2 || (meta.ecn == 3 && frame.tap >= 3)));
  if (bth.opcode == kOpcodeRcAcknowledge) {
    CHECK_FALSE(forth);
    const bool nak = meta.payload_length > 0 || bytes[meta.bth_offset + kBthHeader] >= 0x60;
    ++(nak ? count.naks : count.acks);
    // The captured part of an acknowledgement is right to its end, or ends before the wrong part.
    CHECK(frame.bytes.size() >= meta.bth_offset + kBthHeader + 4u);
    if (frame.bytes.size() == frame.length) count.spoilt += !icrc_ok(frame.bytes.data(), meta);
    return;
  }
  ++count.data;
  CHECK(forth);
  const uint32_t headers = meta.bth_offset + kBthHeader + extension_length(bth.opcode);
  CHECK(frame.bytes.size() == headers);
  CHECK(frame.length == headers + meta.payload_length + meta.pad_count + kIcrc);
  CHECK(meta.pad_count == (-meta.payload_length & 3));
  const bool last = meta.payload_length < 1'024;
  if (last) CHECK(bth.ack_request);
  const uint8_t expected[2][3] = {{kOpcodeRcSendFirst, kOpcodeRcSendMiddle, kOpcodeRcSendLast},
                                  {kOpcodeRcWriteFirst, kOpcodeRcWriteMiddle, kOpcodeRcWriteLast}};
  CHECK(std::find(expected[number], expected[number] + 3, bth.opcode) != expected[number] + 3);
  CHECK(last == (bth.opcode == expected[number][2]));
  if (bth.opcode == kOpcodeRcWriteFirst)
    CHECK(load_reth(bytes.data() + meta.bth_offset + kBthHeader).dma_length >= 2'000'000 % 5'001);
}

TEST_CASE("simulation: traced headers parse and agree with what was sent and counted") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    CAPTURE(static_cast<int>(recovery));
    const SimulationConfig config = congested(recovery);
    Simulation simulation(config);
    finish(simulation, 20 * kMillisecond);
    CHECK(simulation.flows_ended() >= 1);
    const std::vector<Traced> frames = read_trace(simulation.fabric().take_trace());
    Count at[6];
    Time last[6] = {};
    for (const Traced& frame : frames) {
      REQUIRE(frame.tap < 6);
      CHECK(frame.at > last[frame.tap]);
      last[frame.tap] = frame.at;
      check_frame(frame, config, at[frame.tap]);
    }
    Fabric& fabric = simulation.fabric();
    SoftSwitch& device = fabric.switch_at(0);
    for (uint16_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      for (const size_t side : {0, 1}) {
        const LinkCounters& link = fabric.link_counters(i, side);
        CHECK(at[3 * side + i].frames == link.frames);
        CHECK(at[3 * side + i].bytes == link.wire_bytes);
      }
      CHECK(at[i].frames == fabric.nic_at(i).counters().tx_packets);
      CHECK(at[i].spoilt + at[3 + i].spoilt == 0);
      CHECK(at[3 + i].pfc == device.counters(i).tx_pfc_frames);
      CHECK(at[3 + i].frames == device.counters(i).tx_packets + device.counters(i).tx_pfc_frames);
      CHECK(at[i].marked == 0);
      CHECK(at[3 + i].marked == device.counters(i, 3).wred_ecn_marked_packets);
      CHECK(at[i].cnps == fabric.nic_at(i).counters().np_cnp_sent);
      CHECK(at[i].acks == fabric.nic_at(i).transport_counters().tx_acks);
      CHECK(at[i].naks == fabric.nic_at(i).transport_counters().tx_naks);
    }
    CHECK(at[5].marked > 3);
    CHECK(at[5].marked < at[5].data);
    CHECK(at[3].pfc > 1);
    CHECK(at[2].cnps > 2);
    CHECK(at[2].acks > 50);
    CHECK(at[2].naks > 0);
  }
}

TEST_CASE("simulation: a trace has what leaves the tapped ports, and no others") {
  SimulationConfig config = congested(LossRecovery::go_back_n);
  config.taps = {{0, 2}};
  Simulation simulation(config);
  finish(simulation, kMillisecond);
  const std::vector<Traced> first = read_trace(simulation.fabric().take_trace());
  simulation.fabric().take_trace().clear();
  finish(simulation, 20 * kMillisecond);
  const std::vector<Traced> second = read_trace(simulation.fabric().take_trace());
  CHECK(first.size() + second.size() == simulation.fabric().link_counters(2, 1).frames);
  CHECK(first.back().at < second.front().at);
  CHECK(std::all_of(first.begin(), first.end(), [](const Traced& frame) { return frame.tap == 0; }));
}

}  // namespace
}  // namespace weir::test
