// A hostile program: the memory that it shares with the NIC's daemon changes as the input says, at any time between two things
// that the daemon does. Packets that leave must be ones that its queue pairs may send, from its own and to their peer.
#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "endpoint/wire_nic.h"
#include "fuzz/input.h"
#include "fuzz/nic.h"
#include "transport/opcode.h"
#include "transport/program_link.h"
#include "wire/icrc.h"

namespace {

using namespace weir;
using fuzz::Input;
using fuzz::kNicMac;
using fuzz::kPeerMac;
using fuzz::kPeerQpn;
using fuzz::path;
using fuzz::require;

constexpr uint32_t kMtu = 1'024;
constexpr int kPairs = 3;  // connected, of datagrams, without a peer yet

struct Nobody : CompletionSink {
  void complete(const Completion&) override {}
};

// Congestion control that hears nothing of its connections, or their acknowledgements, or telemetry on them.
NicParameters nic_of(uint8_t which) {
  NicParameters p = fuzz::verbs_nic();
  if (which % 4 == 1) p.congestion = DctcpParameters{};
  if (which % 4 == 2) p.congestion = SwiftParameters{};
  if (which % 4 == 3) p.congestion = HpccParameters{};
  return p;
}

class World {
 public:
  explicit World(uint8_t which) : pool_(64, kMaxHeaders + 4'096), nic_(nic_of(which), {}, pool_, &nobody_) {
    for (int i = 0; i < kPairs; ++i) create(i);
    handle_ = nic_.applications().create_address_handle(path(kNicMac, kPeerMac));
  }
  void run(Input in) {
    while (!in.empty()) act(in);
    advance(kMillisecond);
    // The daemon gets rid of it, whatever has happened.
    for (const uint32_t qpn : qpns_) require(nic_.applications().destroy(qpn));
    link_.publish();
    require(pool_.available() == pool_.size());
  }

 private:
  void create(int i) {
    VerbsQueuePairParameters parameters;
    parameters.datagram = i == 1;
    parameters.program = 1;
    parameters.link = &link_;
    qpns_[i] = nic_.applications().create(parameters);
    if (i == 1) datagrams_.insert(qpns_[i]);
    QueueAttributes a;
    a.path_mtu = kMtu;
    a.remote_qpn = kPeerQpn;
    for (const QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      nic_.applications().modify(qpns_[i], to, a, path(kNicMac, kPeerMac), 3, 0);
      if (i == 2) return;
    }
  }

  void act(Input& in) {
    const uint8_t what = in.byte();
    switch (what % 16) {
      case 0:
        return advance(Time{1} << (in.byte() % 20));
      case 1:
        link_.publish();
        link_.take_wake();
        return;
      case 2: {
        const int i = in.byte() % kPairs;
        nic_.applications().modify(qpns_[i], QueuePairState::reset, {}, {}, 3, 0);
        if (in.byte() % 2 == 0) nic_.applications().modify(qpns_[i], QueuePairState::init, {}, {}, 3, 0);
        return;
      }
      case 3: {
        const int i = in.byte() % kPairs;
        require(nic_.applications().destroy(qpns_[i]));
        return create(i);
      }
      case 4:
        return word(in);
      case 5:
        return frame(in);
      case 6: {  // submitted bytes change afterwards
        const auto bytes = in.take(in.byte() % 96);
        auto* at = reinterpret_cast<uint8_t*>(&memory_->packets[in.byte() % 4].packet);
        std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof(ProgramPacket)), at);
        return;
      }
      case 7:
      case 8:
        link_.take(nic_.transport_counters(), [&](uint32_t qpn) { nic_.applications().attend_to(qpn); });
        return collect();
      default:
        return submit(in);
    }
  }

  void submit(Input& in) {
    const uint8_t style = in.byte();
    const uint32_t slot = style % 8 == 7 ? static_cast<uint32_t>(in.number(4)) : in.byte() % 16;
    if (slot < kProgramPackets) {
      ProgramPacket& packet = memory_->packets[slot].packet;
      packet.qpn = (style & 8) != 0 ? static_cast<uint32_t>(in.number(4)) : qpns_[in.byte() % kPairs];
      packet.payload_bytes = static_cast<uint32_t>((style & 16) != 0 ? in.number(4) : in.number(2) % (kMtu + 2));
      packet.opcode = (style & 32) != 0 ? in.byte() : in.byte() % 0x18;
      packet.flags = in.byte();
      packet.address_handle = (style & 64) != 0 ? static_cast<uint32_t>(in.number(4)) : handle_;
      packet.destination_qp = static_cast<uint32_t>(in.number(4));
      packet.psn = (style & 128) != 0 ? static_cast<uint32_t>(in.number(4)) : next_psn_++;
      packet.reth.dma_length = static_cast<uint32_t>(in.number(2)) << (in.byte() % 17);
      packet.aeth.syndrome = in.byte();
      packet.queue_key = static_cast<uint32_t>(in.byte()) << 24;
      packet.immediate = in.byte();
    }
    memory_->submitted[written_++ % kProgramPackets] = slot;
    memory_->submitted_written = written_;
  }

  // Any index becomes anything, the daemon's own too.
  void word(Input& in) {
    ProgramMemory::Word* const words[] = {&memory_->submitted_written,
                                          &memory_->returned_read,
                                          &memory_->frames_read,
                                          &memory_->program_sleeps,
                                          &memory_->returned_wanted,
                                          &memory_->submitted_read,
                                          &memory_->returned_written,
                                          &memory_->nic_sleeps,
                                          &memory_->ended,
                                          &memory_->frames_written,
                                          &memory_->bell,
                                          &memory_->holds,
                                          &memory_->places[0],
                                          &memory_->submitted[0],
                                          &memory_->returned[0]};
    *words[in.byte() % std::size(words)] = static_cast<uint32_t>(in.number(4));
    written_ = memory_->submitted_written;
  }

  void frame(Input& in) {
    DataHeader h;
    h.opcode = in.byte() % 0x18;
    const int i = in.byte() % kPairs;
    if (i == 1) h.opcode = kOpcodeUdSendOnly;
    h.destination_qp = qpns_[i];
    const uint8_t style = in.byte();
    h.psn = (style & 1) != 0 ? static_cast<uint32_t>(in.number(3)) : next_psn_ - style / 8;
    h.aeth.syndrome = in.byte();
    h.becn = (style & 2) != 0;
    if ((style & 4) != 0 && has_telemetry(h.opcode | kOpcodeTelemetry)) h.opcode |= kOpcodeTelemetry;
    const std::vector<uint8_t> payload(in.number(2) % 4'097, 1);
    std::vector<uint8_t> bytes(kMaxHeaders + payload.size());
    const auto length = static_cast<uint32_t>(payload.size());
    bytes.resize(RoceTemplate(path(kPeerMac, kNicMac)).build_data(bytes.data(), h, payload.data(), length));
    PacketMeta meta;
    const auto size = static_cast<uint32_t>(bytes.size());
    const Refusal refusal = classify(bytes.data(), size, meta);
    nic_.receive(nic_.now(), bytes.data(), size, meta, refusal);
    collect();
  }

  void advance(Time by) {
    const Time until = nic_.now() + by;
    uint32_t events = 0;
    for (Time at = nic_.next_deadline(); at <= until; at = nic_.next_deadline()) {
      require(++events < 1'000'000);
      nic_.advance(at);
      collect();
    }
    nic_.advance(until);
    collect();
  }

  void collect() {
    for (PacketId id = nic_.transmit(); id != kNoPacket; id = nic_.transmit()) {
      const uint8_t* bytes = pool_.data(id);
      const uint32_t length = pool_[id].length;
      if (pool_[id].meta.kind != FrameKind::pfc) {
        PacketMeta meta;
        require(classify(bytes, length, meta) == Refusal::none && icrc_ok(bytes, meta));
        require(meta.source_mac == kNicMac && meta.destination_mac == kPeerMac && bytes[meta.l3_offset + 15] == 1);
        if (meta.kind != FrameKind::cnp) check(bytes + meta.bth_offset, meta);
      }
      nic_.left(id);
      pool_.free(id);
    }
  }
  void check(const uint8_t* packet, const PacketMeta& meta) {
    require(meta.payload_length <= kMtu);
    const Bth bth = load_bth(packet);
    if (plain_opcode(meta.opcode) >> 5 == 0) return require(bth.destination_qp == kPeerQpn);
    require(meta.opcode == kOpcodeUdSendOnly || meta.opcode == kOpcodeUdSendOnlyImmediate);
    require(load_be32(packet + kBthHeader) < kPrivilegedQueueKey);
    require(datagrams_.contains(load_be32(packet + kBthHeader + 4) & 0xffffff));
  }

  // It lies behind all of these, so that reads or writes beyond its end would be found.
  std::unique_ptr<ProgramMemory> memory_ = std::make_unique<ProgramMemory>();
  ProgramLink link_{*memory_};
  Nobody nobody_;
  PacketPool pool_;
  WireNic nic_;
  uint32_t qpns_[kPairs] = {};
  std::set<uint32_t> datagrams_;  // a frame of one that has been destroyed may still be on the link
  uint32_t handle_ = 0;
  uint32_t written_ = 0;
  uint32_t next_psn_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in({data, size});
  const uint8_t which = in.byte();
  std::make_unique<World>(which)->run(in);
  return 0;
}
