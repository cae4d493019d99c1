// A NIC whose programs have no room for what comes, in virtual time.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "test/transport_harness.h"
#include "test/verbs_harness.h"
#include "transport/program_link.h"

namespace weir::test {
namespace {

constexpr uint32_t kMtu = 4'096;

// The NIC with a program that takes what the test takes.
struct Filled {
  explicit Filled(uint8_t lossless = 1 << 3)
      : link(*memory), end(Two::parameters(kNicMac, [&](NicParameters& p) { p.pfc_priorities = lossless; })) {
    qpn = end.nic.applications().create({.program = 1, .link = &link});
    QueueAttributes a;
    a.path_mtu = kMtu;
    a.remote_qpn = 0x21;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      end.nic.applications().modify(qpn, to, a, path_to(kPeerMac, kNicMac), 3, 0);
    }
  }
  // A frame from `from`, after so long. Returns whether there was room for it.
  bool receive(uint64_t from = kPeerMac) {
    DataHeader header;
    header.opcode = kOpcodeRcWriteMiddle;
    header.destination_qp = qpn;
    const std::vector<uint8_t> payload(kMtu);
    RocePath path = path_to(kNicMac, kPeerMac);
    path.source_mac = from;
    const Frame frame = build_frame(RoceTemplate(path), header, payload.data(), kMtu);
    const uint64_t before = end.nic.transport_counters().drop_program_busy;
    now += 4 * kMicrosecond;
    end.nic.receive(now, frame.bytes.data(), static_cast<uint32_t>(frame.bytes.size()), frame.meta, Refusal::none);
    collect();
    return end.nic.transport_counters().drop_program_busy == before;
  }
  void collect() {
    for (PacketId id = end.nic.transmit(); id != kNoPacket; id = end.nic.transmit()) {
      const Packet& packet = end.pool[id];
      if (packet.meta.kind == FrameKind::pfc) told.push_back((packet.pfc_xoff & packet.pfc_enable) != 0);
      end.nic.left(id);
      end.pool.free(id);
    }
  }
  void pass(Time until) {
    for (now = until; end.nic.next_deadline() <= until;) {
      end.nic.advance(end.nic.next_deadline());
      collect();
    }
  }
  // Fills it until it holds the wire, or there is no room any more.
  void fill() {
    while (receive() && !end.nic.waits_for_programs()) continue;
    pass(now + kMicrosecond);
  }

  std::unique_ptr<ProgramMemory> memory = std::make_unique<ProgramMemory>();
  ProgramLink link;
  NicEnd end;
  uint32_t qpn = 0;
  Time now = 0;
  std::vector<bool> told;  // XOFF or not, by PFC frames
};

TEST_CASE("program room: the peer is paused while half of it is full, and resumed when the program has taken what there was") {
  Filled f;
  f.fill();
  REQUIRE(f.end.nic.waits_for_programs());
  CHECK(f.told == std::vector<bool>{true});
  // Frames that are on their way yet find room.
  for (int i = 0; i < 1'000; ++i) CHECK(f.receive());
  f.pass(f.now + 10 * kMillisecond);
  CHECK(f.told.size() > 3);
  CHECK(f.told.back());
  CHECK(f.link.crowded(f.now));
  f.memory->frames_read = f.memory->frames_written.load();
  CHECK_FALSE(f.link.crowded(f.now));
  f.end.nic.programs_have_room();
  f.pass(f.now + kMicrosecond);
  CHECK_FALSE(f.told.back());
  const size_t frames = f.told.size();
  f.pass(f.now + 10 * kMillisecond);
  CHECK(f.told.size() == frames);
  CHECK(f.end.nic.transport_counters().drop_program_busy == 0);
  // And again.
  f.fill();
  CHECK(f.told.back());
}

TEST_CASE("program room: a priority that may lose frames loses them, and is not paused") {
  Filled f(1 << 4);
  f.fill();
  CHECK_FALSE(f.end.nic.waits_for_programs());
  CHECK(f.end.nic.transport_counters().drop_program_busy == 1);
  CHECK(f.told.empty());
}

TEST_CASE("program room: what comes from the NIC itself pauses nobody") {
  Filled f;
  while (f.receive(kNicMac)) continue;
  CHECK_FALSE(f.end.nic.waits_for_programs());
  CHECK(f.told.empty());
}

}  // namespace
}  // namespace weir::test
