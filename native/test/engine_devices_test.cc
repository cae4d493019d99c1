#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "engine/nic_device.h"
#include "engine/switch_device.h"
#include "test/nic_harness.h"
#include "test/reference_checksum.h"
#include "test/rig/port.h"
#include "wire/checksum.h"

using namespace weir;
using namespace weir::test;

namespace {

using Bytes = std::vector<uint8_t>;

Bytes send_only(uint64_t to, uint64_t from, uint32_t qpn, uint32_t psn, uint8_t ecn = 2) {
  return roce(kOpcodeRcSendOnly).on(path_to(to, from)).ecn(ecn).to(qpn).psn(psn).payload(1'000).bytes();
}

struct SwitchRig {
  explicit SwitchRig(SwitchParameters parameters = {}, bool tells_checksums = true) : pool(256, 2'048), punted(16) {
    parameters.ports = {{1'000'000'000, 1'500, 0x025753000000}, {1'000'000'000, 1'500, 0x025753000001}};
    parameters.priority_map.dscp[26] = 3;
    config.name = "sw";
    config.ports.resize(2);
    for (PortConfig& port : config.ports) port.offloads = true;
    for (PortScript& port : ports) port.capabilities.tells_checksums = tells_checksums;
    config.parameters = parameters;
    config.routes = {{kNicMac, {0}}, {kPeerMac, {1}}};
    std::vector<WirePort> wires;
    for (auto& port : ports) wires.emplace_back(std::make_unique<ScriptedPort>(port), 1'000'000'000, 0, 128);
    device = std::make_unique<SwitchDevice>(config, uint16_t{0}, std::move(wires), pool, punted);
  }
  void turn(Time at) { device->turn(at, at); }

  PacketPool pool;
  FrameRing punted;
  SwitchDeviceConfig config;
  PortScript ports[2];
  std::unique_ptr<SwitchDevice> device;
};

Bytes lldpdu() {
  Bytes frame(60);
  store_ethernet(frame.data(), {.destination_mac = kLldpAddress, .source_mac = kNicMac}, kEthertypeLldp);
  return frame;
}

PacketMeta parsed(const Bytes& bytes) {
  PacketMeta meta;
  CHECK(classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none);
  return meta;
}

}  // namespace

TEST_CASE("switch device: frames pass unchanged, a tag that the kernel took out is back in place") {
  SwitchRig rig;
  const Bytes plain = send_only(kPeerMac, kNicMac, 1, 0);
  rig.ports[0].give(10'000, plain);
  rig.ports[0].give_tagged(11'000, plain, 0x6064);
  rig.turn(kMillisecond);
  REQUIRE(rig.ports[1].sent.size() == 2);
  CHECK(rig.ports[1].sent[0].bytes == plain);
  Bytes tagged = plain;
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x60, 0x64});
  CHECK(rig.ports[1].sent[1].bytes == tagged);
  CHECK(rig.ports[0].released == 2);
  CHECK(rig.pool.available() == rig.pool.size());
}

TEST_CASE("switch device: a checksum that the sender left unfinished is finished where the port does not tell of it") {
  const Bytes finished = send_only(kPeerMac, kNicMac, 1, 0);
  const PacketMeta meta = parsed(finished);
  const uint32_t udp = meta.bth_offset - 8u;
  const uint32_t length = static_cast<uint32_t>(finished.size()) - udp;
  Bytes unfinished = finished;
  store_be16(&unfinished[udp + 6], checksum_fold(checksum_add(length + 17, &unfinished[udp - 8], 8)));
  for (const bool tells : {true, false}) {
    SwitchRig rig({}, tells);
    rig.ports[0].give(10'000, unfinished);
    rig.ports[0].give_tagged(50'000, unfinished, 0x6064);
    rig.turn(kMillisecond);
    REQUIRE(rig.ports[1].sent.size() == 2);
    for (const auto& [sent, offload] : rig.ports[1].sent) {
      const PacketMeta got = parsed(sent);
      CHECK(udp_checksum_ok(sent.data(), got) == !tells);
      CHECK(load_be16(&sent[got.bth_offset - 2u]) != 0);
    }
  }
}

TEST_CASE("switch device: a mark is written with a right checksum, tagged or not, and leaves the ICRC valid") {
  SwitchParameters parameters;
  parameters.red.kmin = parameters.red.kmax = 0;
  SwitchRig rig(parameters);
  for (uint32_t i = 0; i < 3; ++i) rig.ports[0].give(10'000, send_only(kPeerMac, kNicMac, 1, i));
  for (uint32_t i = 3; i < 6; ++i) rig.ports[0].give_tagged(10'000, send_only(kPeerMac, kNicMac, 1, i), 0x6064);
  rig.device->turn(10'000, kMillisecond);
  // Frames cross the link one after the other, so the queue is empty for each. A pause fills it.
  CHECK(rig.device->soft_switch().counters(1, 3).wred_ecn_marked_packets == 0);
  std::array<uint16_t, 8> quanta;
  quanta.fill(65'535);
  rig.device->soft_switch().pauses().receive_pfc(10'000, 1, 1 << 3, quanta);
  rig.turn(kMillisecond);
  quanta.fill(0);
  rig.device->soft_switch().pauses().receive_pfc(kMillisecond, 1, 1 << 3, quanta);
  rig.turn(2 * kMillisecond);
  REQUIRE(rig.ports[1].sent.size() == 6);
  uint64_t marked = 0;
  for (const auto& [bytes, offload] : rig.ports[1].sent) {
    const PacketMeta meta = parsed(bytes);
    CHECK(icrc_ok(bytes.data(), meta));
    CHECK(internet_checksum(bytes.data() + meta.l3_offset, 20) == 0);
    marked += meta.ecn == 3 ? 1 : 0;
  }
  CHECK(marked >= 4);
  CHECK(marked == rig.device->soft_switch().counters(1, 3).wred_ecn_marked_packets);
}

TEST_CASE("switch device: its PFC frames parse, and those of a peer are obeyed and not forwarded") {
  SwitchParameters parameters;
  parameters.buffer.threshold = BufferParameters::Threshold::fixed;
  parameters.buffer.fixed_threshold = 2'000;
  SwitchRig rig(parameters);
  PfcFrame stop;
  stop.enable = 1 << 3;
  stop.quanta[3] = 65'535;
  Bytes bytes(kMinimumFrame);
  build_pfc(bytes.data(), kPeerMac, stop);
  rig.ports[1].give(1'000, bytes);
  for (uint32_t i = 0; i < 5; ++i) rig.ports[0].give(10'000, send_only(kPeerMac, kNicMac, 1, i));
  rig.turn(kMillisecond);
  CHECK(rig.ports[1].sent.empty());
  CHECK(rig.device->soft_switch().counters(1).rx_pfc_frames == 1);
  REQUIRE(rig.ports[0].sent.size() == 1);
  PfcFrame got;
  REQUIRE(parse_pfc(rig.ports[0].sent[0].bytes.data(), static_cast<uint32_t>(rig.ports[0].sent[0].bytes.size()), got));
  CHECK(got.enable == 1 << 3);
  CHECK(got.quanta[3] == 65'535);
  CHECK(parsed(rig.ports[0].sent[0].bytes).source_mac == 0x025753000000);
  SpscRing<Record> records(64);
  rig.device->sample(kMillisecond, records);
  bool stopped = false;
  for (Record record; records.pop(record);) stopped = stopped || (record.kind == Record::Kind::pause && record.values[1] == 1);
  CHECK(stopped);
  stop.quanta[3] = 0;
  build_pfc(bytes.data(), kPeerMac, stop);
  rig.ports[1].give(2 * kMillisecond, bytes);
  rig.turn(3 * kMillisecond);
  CHECK(rig.ports[1].sent.size() == 5);
  REQUIRE(rig.ports[0].sent.size() == 2);
  REQUIRE(parse_pfc(rig.ports[0].sent[1].bytes.data(), static_cast<uint32_t>(rig.ports[0].sent[1].bytes.size()), got));
  CHECK(got.quanta[3] == 0);
  CHECK(rig.pool.available() == rig.pool.size());
}

TEST_CASE("switch device: arrivals of all ports are taken in time order, nothing before its time") {
  SwitchRig rig;
  rig.config.parameters.learning = false;
  for (uint32_t i = 0; i < 5; ++i) {
    rig.ports[0].give(10'000 + i * 20'000, send_only(kPeerMac, kNicMac, 1, i));
    rig.ports[1].give(20'000 + i * 20'000, send_only(kNicMac, kPeerMac, 1, i));
  }
  rig.turn(45'000);
  CHECK(rig.device->soft_switch().counters(0).rx_packets == 2);
  CHECK(rig.device->soft_switch().counters(1).rx_packets == 2);
  CHECK(rig.device->next_deadline() == 40'000 + (1'058 + 24) * 8);  // the last frame leaves before the next arrives at 50 000
  rig.turn(kMillisecond);
  CHECK(rig.ports[0].sent.size() == 5);
  CHECK(rig.ports[1].sent.size() == 5);
  for (uint16_t p = 0; p < 2; ++p) CHECK(rig.device->soft_switch().counters(p).stragglers == 0);
  rig.ports[0].give(500'000, send_only(kPeerMac, kNicMac, 1, 9));
  rig.turn(2 * kMillisecond);
  CHECK(rig.device->soft_switch().counters(0).stragglers == 1);
}

TEST_CASE("switch device: runts, giants and unknown MAC control are counted; LLDP is not forwarded") {
  SwitchRig rig;
  rig.ports[0].give(1'000, Bytes(13));
  rig.ports[0].give(2'000, Bytes(2'045));
  Bytes control(60);
  build_pfc(control.data(), kPeerMac, {});
  control[15] = 7;
  rig.ports[0].give(3'000, control);
  rig.ports[0].give(4'000, lldpdu());
  rig.turn(kMillisecond);
  SwitchPortCounters& counters = rig.device->soft_switch().counters(0);
  CHECK(counters.drop_runt == 1);
  CHECK(counters.drop_no_descriptor == 1);
  CHECK(counters.rx_mac_control_unknown == 1);
  CHECK(counters.drop_reserved_address == 1);
  CHECK(counters.rx_packets == 3);  // MAC control apart
  CHECK(rig.punted.empty());
  CHECK(rig.ports[1].sent.empty());
  CHECK(rig.pool.available() == rig.pool.size());
}

TEST_CASE("switch device: LLDP goes to the slow path where that is asked for; what it has no room for is counted") {
  SwitchRig rig;
  rig.config.lldp = true;
  rig.device->reconfigure(rig.config);
  constexpr uint64_t kRoom = 16;  // frames
  for (uint64_t i = 0; i < kRoom + 3; ++i) rig.ports[1].give(static_cast<Time>(1'000 * i), lldpdu());
  Bytes nearest_customer_bridge = lldpdu(), stp = lldpdu();
  nearest_customer_bridge[5] = 0;
  store_be16(stp.data() + 12, 38);
  rig.ports[1].give(100'000, nearest_customer_bridge);
  rig.ports[1].give(101'000, stp);
  rig.turn(kMillisecond);
  SwitchPortCounters& counters = rig.device->soft_switch().counters(1);
  CHECK(counters.rx_packets == kRoom + 5);
  CHECK(counters.rx_bytes == 60 * (kRoom + 5));
  CHECK(counters.rx_punted == kRoom);
  CHECK(counters.drop_punt_full == 3);
  CHECK(counters.drop_reserved_address == 2);
  PuntedFrame frame;
  REQUIRE(rig.punted.pop(frame));
  CHECK(frame.port == 1);
  CHECK(Bytes(frame.bytes, frame.bytes + frame.length) == lldpdu());
  CHECK(rig.ports[0].sent.empty());
  CHECK(rig.pool.available() == rig.pool.size());
}

TEST_CASE("switch device: a change that is refused leaves routes and parameters as they were") {
  SwitchRig rig;
  const SwitchDeviceConfig before = rig.config;
  // Does as its worker does, which checks while the device goes on.
  const auto refusal = [&](const SwitchDeviceConfig& config) {
    try {
      check(config);
      rig.device->reconfigure(config);
    } catch (const NativeError& e) {
      return e.code;
    }
    return std::string();
  };
  const auto passes = [&] {
    const size_t sent = rig.ports[1].sent.size();
    const Time at = (static_cast<Time>(sent) + 1) * kMillisecond;
    rig.ports[0].give(at, send_only(kPeerMac, kNicMac, 1, 0));
    rig.turn(at + kMillisecond / 2);
    return rig.ports[1].sent.size() == sent + 1;
  };
  CHECK(passes());
  SwitchDeviceConfig config = before;
  config.parameters.red.kmax = 123'456;
  SUBCASE("a route by a port that there is none of") {
    config.routes[1].ports = {2};
    CHECK(refusal(config) == "INVALID_CONFIG");
  }
  SUBCASE("a pin to a port that there is none of") {
    config.pins = {{kNicMac, kPeerMac, 2}};
    CHECK(refusal(config) == "INVALID_CONFIG");
  }
  SUBCASE("a route by no port") {
    config.routes[1].ports.clear();
    CHECK(refusal(config) == "FDB_FULL");
  }
  SUBCASE("more routes than there is room for") {
    config.routes.clear();
    for (uint64_t i = 0; i < 100'000; ++i) config.routes.push_back({kPeerMac + 10 + i, {1}});
    CHECK(refusal(config) == "FDB_FULL");
  }
  SUBCASE("another number of ports") {
    config.ports.resize(3);
    config.parameters.ports.resize(3);
    CHECK(refusal(config) == "INVALID_CONFIG");
  }
  CHECK(rig.device->soft_switch().parameters().red.kmax == before.parameters.red.kmax);
  CHECK(rig.device->config().routes.size() == before.routes.size());
  CHECK(passes());
  CHECK(refusal(before) == "");
  CHECK(passes());
}

TEST_CASE("nic device: queue pairs as deep as no number of 32 bits can say are refused") {
  PacketPool pool(64, 4'096 + 128);
  FrameRing punted(16);
  SpscRing<Record> records(16);
  PortScript wire;
  NicDeviceConfig config;
  config.parameters = nic_parameters(1'000'000'000);
  config.parameters.verbs_queue_pairs = 2;
  NicDevice nic(config, 0, WirePort(std::make_unique<ScriptedPort>(wire), 1'000'000'000, 0, 64), pool, punted, records, 0);
  CHECK_THROWS_AS(nic.applications()->create_queue_pair({.send_depth = UINT32_MAX, .receive_depth = 1}), NativeError);
  CHECK_THROWS_AS(nic.applications()->create_queue_pair({.send_depth = WorkBudget::kMost, .receive_depth = 1}), NativeError);
  CHECK(nic.applications()->create_queue_pair({.send_depth = 16, .receive_depth = 16}) != 0);
}

TEST_CASE("nic device: CNP for a marked frame, PFC obeyed, late turns send no more than the arrears") {
  PacketPool pool(64, 2'048);
  FrameRing punted(16);
  SpscRing<Record> records(16);
  PortScript wire;
  NicDeviceConfig config;
  config.name = "h1";
  config.parameters = nic_parameters(1'000'000'000);
  config.arrears = 50 * kMicrosecond;
  config.queue_pairs = {sender(), receiver()};
  config.queue_pair_settings = {{"a"}, {"b"}};
  NicDevice nic(config, 0, WirePort(std::make_unique<ScriptedPort>(wire), 1'000'000'000, 0, 64), pool, punted, records,
                5'000'000);
  nic.turn(5'000'000, 5'000'000);
  CHECK(wire.sent.empty());
  CHECK(nic.next_deadline() == 5'000'000 + 8'976);  // the first WRITE packet carries a RETH
  for (Time t = 5'000'000; t <= 6'000'000; t += 25'000) nic.turn(t, t);
  const size_t before = wire.sent.size();
  CHECK(before >= 112);
  CHECK(before <= 113);
  // 10 ms late, the time between passed in boundaries of 20 us, as with samples: the arrears count once.
  for (Time t = 6'020'000; t < 16'000'000; t += 20'000) nic.turn(t, 16'000'000);
  nic.turn(16'000'000, 16'000'000);
  CHECK(wire.sent.size() - before <= 50'000 / 8'848 + 3);
  PfcFrame stop;
  stop.enable = 1 << 3;
  stop.quanta[3] = 65'535;
  Bytes bytes(kMinimumFrame);
  build_pfc(bytes.data(), kPeerMac, stop);
  wire.give(16'000'000, bytes);
  wire.give(16'010'000, send_only(kNicMac, kPeerMac, kFirstQpn + 1, 0, 3));
  Bytes arp(60);
  store_ethernet(arp.data(), {.destination_mac = 0xffffffffffff, .source_mac = kPeerMac}, 0x0806);
  wire.give(16'020'000, arp);
  for (Time t = 16'025'000; t <= 17'000'000; t += 25'000) nic.turn(t, t);
  CHECK(parsed(wire.sent.back().bytes).kind == FrameKind::cnp);
  CHECK(nic.soft_nic().counters().rx_pfc_frames == 1);
  PuntedFrame frame;
  REQUIRE(punted.pop(frame));
  CHECK(frame.at == 16'020'000);
  CHECK(wire.released == 3);
  nic.stop_traffic(17'000'000);
  nic.turn(kSecond, kSecond);
  nic.turn(2 * kSecond, 2 * kSecond);
  CHECK(pool.available() == pool.size());
}

namespace {

// Programs on a NIC, played by the test: what they write to the memory that they share with it.
struct ProgramRig {
  explicit ProgramRig(uint32_t places) : pool(256, 2'048), punted(16), records(16) {
    config.name = "h1";
    config.parameters = nic_parameters(1'000'000'000);
    config.parameters.verbs_queue_pairs = places;
    config.arrears = kMillisecond;
    WirePort port(std::make_unique<ScriptedPort>(wire), 1'000'000'000, 0, 64);
    device = std::make_unique<NicDevice>(config, uint16_t{0}, std::move(port), pool, punted, records, 0);
  }
  // A connection to `remote_qpn`.
  uint32_t connect(uint32_t program, uint32_t remote_qpn) {
    const uint32_t qpn = device->applications()->create_queue_pair({.program = program});
    QueueAttributes a;
    a.remote_qpn = remote_qpn;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      device->soft_nic().applications().modify(qpn, to, a, path_to(kPeerMac, kNicMac), 3, 0);
    }
    return qpn;
  }
  void turns(Time from, Time to) {
    for (Time t = from; t <= to; t += 20 * kMicrosecond) device->turn(t, t);
  }
  // Counts frames to the queue pair of that number at the peer, from a frame on.
  long sent_to(uint32_t remote_qpn, size_t from = 0) const {
    return std::count_if(wire.sent.begin() + static_cast<long>(from), wire.sent.end(),
                         [=](const PortScript::Sent& one) { return parsed(one.bytes).destination_qp == remote_qpn; });
  }

  PacketPool pool;
  FrameRing punted;
  SpscRing<Record> records;
  PortScript wire;
  NicDeviceConfig config;
  std::unique_ptr<NicDevice> device;
};

struct Mapped {
  explicit Mapped(int descriptor)
      : memory(static_cast<ProgramMemory*>(
            ::mmap(nullptr, sizeof(ProgramMemory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0))) {}
  ~Mapped() { ::munmap(memory, sizeof *memory); }
  ProgramMemory* memory;
};

void submit(ProgramMemory& memory, uint32_t qpn, uint32_t packets) {
  for (uint32_t slot = 0; slot < packets; ++slot) {
    ProgramPacket& packet = memory.packets[slot].packet;
    packet = {};
    packet.qpn = qpn;
    packet.payload_bytes = 1'000;
    packet.psn = slot;
    packet.opcode = kOpcodeRcSendOnly;
    memory.submitted[slot] = slot;
  }
  memory.submitted_written = packets;
}

}  // namespace

TEST_CASE("nic device: programs that have something to send share the line by turns, whoever has more and came first") {
  ProgramRig rig(4);
  const ProgramOpening first = rig.device->applications()->open_program();
  const ProgramOpening second = rig.device->applications()->open_program();
  const Mapped one(first.memory), other(second.memory);
  const uint32_t qpn[] = {rig.connect(first.number, 0x100), rig.connect(second.number, 0x200)};
  submit(*one.memory, qpn[0], 400);
  rig.turns(0, kMillisecond);
  const size_t alone = rig.wire.sent.size();
  CHECK(rig.sent_to(0x100) == static_cast<long>(alone));
  submit(*other.memory, qpn[1], 100);
  rig.turns(kMillisecond, 2 * kMillisecond);
  const auto together = static_cast<long>(rig.wire.sent.size() - alone);
  CHECK(together > 100);
  CHECK(std::abs(2 * rig.sent_to(0x200) - together) <= 2);
}

TEST_CASE("nic device: what a program leaves behind tells its peer, counts for nobody, and makes room for the living") {
  ProgramRig rig(2);
  const auto naks = [&] { return rig.device->soft_nic().transport_counters().tx_naks; };
  const ProgramOpening dead = rig.device->applications()->open_program();
  rig.connect(dead.number, 0x100);
  rig.connect(dead.number, 0x101);
  REQUIRE(rig.device->applications()->close_program(dead.number));
  rig.turns(0, kMillisecond);
  CHECK(naks() == 2);
  CHECK(rig.sent_to(0x100) == 1);
  CHECK(rig.sent_to(0x101) == 1);
  const ProgramOpening living = rig.device->applications()->open_program();
  const uint32_t qpn = rig.device->applications()->create_queue_pair({.program = living.number});
  CHECK(rig.device->applications()->owner(qpn) == living.number);
  const uint32_t another = rig.device->applications()->create_queue_pair({.program = living.number});
  CHECK(another != 0);
  CHECK_THROWS_AS(rig.device->applications()->create_queue_pair({.program = living.number}), NativeError);
  CHECK(rig.device->applications()->destroy_queue_pair(qpn));
  // A minute later its place is free, needed or not.
  const uint32_t connected = rig.connect(living.number, 0x102);
  REQUIRE(rig.device->applications()->close_program(living.number));
  rig.device->turn(30 * kSecond, 30 * kSecond);
  CHECK(rig.device->soft_nic().applications().find(connected) != nullptr);
  rig.device->turn(61 * kSecond, 61 * kSecond);
  CHECK(rig.device->soft_nic().applications().find(connected) == nullptr);
}
