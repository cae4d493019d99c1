// Reliable connections in simulation: packets are headers and a stated length, and only atomics touch memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/random.h"
#include "transport/reliable_connection.h"

namespace weir {
namespace {

constexpr uint32_t kMtu = 256;
constexpr uint32_t kBytes = 20 * kMtu + 3;
constexpr uint8_t kRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

struct End : CompletionSink {
  explicit End(uint32_t qpn, uint8_t fill) : rc(qpn, {memory, *this, counters, false}, 16, 16) {
    bytes.resize(kBytes / 8 + 1);
    std::fill(bytes.begin(), bytes.end(), fill);
    MemoryRegion region;
    region.data = reinterpret_cast<uint8_t*>(bytes.data());
    region.length = kBytes;
    region.access = kRights;
    key = memory.add(region);
  }
  void complete(const Completion& completion) override { completions.push_back(completion); }

  std::vector<uint64_t> bytes;
  MemoryTable memory{1};
  TransportCounters counters;
  std::vector<Completion> completions;
  uint32_t key = 0;
  ReliableConnection rc;
};

// Only the headers, to the last byte of them; a selective NAK has its bitmap.
void pass(Time now, const OutgoingPacket& out, End& to) {
  const DataHeader& h = out.header;
  const uint32_t headers = kBthHeader + extension_length(h.opcode);
  const bool real = out.payload != nullptr;
  CHECK(real == (h.opcode == kOpcodeRcAcknowledge && out.payload_bytes > 0));
  std::vector<uint8_t> packet(headers + (real ? out.payload_bytes : 0));
  const uint8_t pad = static_cast<uint8_t>(-out.payload_bytes & 3);
  store_bth(packet.data(), {.opcode = h.opcode, .pad_count = pad, .ack_request = h.ack_request, .psn = h.psn});
  const uint8_t has = extensions(h.opcode);
  uint8_t* extension = packet.data() + kBthHeader;
  if ((has & kHasReth) != 0) store_reth(extension, h.reth);
  if ((has & kHasAtomic) != 0) store_atomic(extension, h.atomic);
  if ((has & kHasAeth) != 0) store_aeth(extension, h.aeth);
  if ((has & kHasAtomicAck) != 0) store_be64(extension + kAethHeader, h.atomic_original);
  if (real) std::copy_n(out.payload, out.payload_bytes, packet.begin() + headers);
  PacketMeta meta;
  meta.opcode = h.opcode;
  meta.psn = h.psn;
  meta.payload_length = static_cast<uint16_t>(out.payload_bytes);
  to.rc.receive(now, packet.data(), meta);
}

TEST_CASE("without payload every operation completes as ever, also over a bad link, and memory stays as it was") {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const double loss : {0.0, 0.05}) {
      CAPTURE(static_cast<int>(recovery));
      CAPTURE(loss);
      End left(1, 1), right(2, 2);
      QueueAttributes attributes;
      attributes.access = kRights;
      attributes.path_mtu = kMtu;
      attributes.recovery = recovery;
      attributes.timeout = 1;
      for (QueuePairState state : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
        left.rc.modify(state, attributes);
        right.rc.modify(state, attributes);
      }
      right.rc.post_receive({7, 0, kBytes, right.key});
      constexpr WorkOpcode kWork[] = {WorkOpcode::write, WorkOpcode::read,      WorkOpcode::send,
                                      WorkOpcode::read,  WorkOpcode::fetch_add, WorkOpcode::write};
      for (const WorkOpcode opcode : kWork) {
        SendWork work{0, opcode, kSignaled, opcode == WorkOpcode::fetch_add ? 8 : kBytes, 0, left.key, right.key, 0};
        work.swap_add = 5;
        left.rc.post_send(work);
      }
      Random random(5);
      for (Time now = 0; now < kMillisecond && left.completions.size() < std::size(kWork); now += 100) {
        for (End* end : {&left, &right}) {
          end->rc.advance(now);
          OutgoingPacket out;
          if (end->rc.control_waits()) {
            end->rc.take_control(out);
          } else if (end->rc.data_bytes() == 0 || !end->rc.take_data(now, out)) {
            continue;
          }
          if (random.uniform() >= loss) pass(now, out, end == &left ? right : left);
        }
      }
      REQUIRE(left.completions.size() == std::size(kWork));
      for (const Completion& completion : left.completions) CHECK(completion.status == WorkStatus::success);
      REQUIRE(right.completions.size() == 1);
      CHECK(right.completions[0].bytes == kBytes);
      CHECK(left.bytes[0] == 2);
      CHECK(right.bytes[0] == 7);
      CHECK(std::all_of(left.bytes.begin() + 1, left.bytes.end(), [](uint64_t word) { return word == 1; }));
      CHECK(std::all_of(right.bytes.begin() + 1, right.bytes.end(), [](uint64_t word) { return word == 2; }));
    }
  }
}

}  // namespace
}  // namespace weir
