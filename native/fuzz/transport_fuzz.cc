// Hostile frames, made of the input's bytes, to a NIC with connected and datagram queue pairs at work.
// Memory outside of what peers may write to must never change, and what they may not read must never leave.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "endpoint/wire_nic.h"
#include "fuzz/input.h"
#include "fuzz/nic.h"
#include "transport/aeth.h"
#include "transport/opcode.h"
#include "transport/psn.h"
#include "wire/icrc.h"

namespace {

using namespace weir;
using fuzz::Input;
using fuzz::kNicMac;
using fuzz::kPeerMac;
using fuzz::kPeerQpn;
using fuzz::path;
using fuzz::require;

constexpr uint32_t kPiece = 4'096;  // the arena: secret, region, secret, region, ..., secret
constexpr int kRegions = 5;
constexpr uint8_t kSecret = 0xa5;  // a byte that no frame made here has
constexpr uint8_t kAccess[kRegions] = {
    kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kRemoteInvalidate,
    kRemoteRead,
    kLocalWrite,
    kLocalWrite | kRemoteWrite,
    0,
};
constexpr uint64_t kBase = 0x7f0000001000;
constexpr int kPairs = 4;  // go-back-N, selective repeat, one that only receives, datagrams
constexpr uint32_t kMtu = 256;

struct Sink : CompletionSink {
  void complete(const Completion& c) override {
    require(c.retired > 0 || c.id == 0);
    if (c.retired > 0 && c.receive) ++receives;
    if (c.retired > 0 && !c.receive) retired += c.retired;
  }
  uint64_t receives = 0;
  uint64_t retired = 0;
};

class World {
 public:
  World()
      : arena_((2 * kRegions + 1) * kPiece, kSecret), pool_(64, kMaxHeaders + 4'096), nic_(fuzz::verbs_nic(), {}, pool_, &sink_) {
    for (int i = 0; i < kRegions; ++i) {
      if ((kAccess[i] & kRemoteRead) != 0) std::memset(region(i), 0x10 + i, kPiece);
      add_region(i);
    }
    before_ = arena_;
    for (int i = 0; i < kPairs; ++i) create(i);
  }
  void run(Input in) {
    while (!in.empty()) act(in);
    advance(10 * kMillisecond);
    // Posted work comes back, once; unsignaled work that succeeded only with the work that follows it.
    for (uint32_t qpn : qpns_) nic_.applications().modify(qpn, QueuePairState::reset, {}, path(kNicMac, kPeerMac), 3, 0);
    require(sink_.receives == posted_receives_ && sink_.retired <= posted_sends_);
    check_memory();
  }

 private:
  uint8_t* region(int i) { return arena_.data() + (2 * i + 1) * kPiece; }
  uint64_t address(int i) const { return kBase + static_cast<uint64_t>(i) * 2 * kPiece; }

  void add_region(int i) { keys_[i] = nic_.memory().add({region(i), address(i), kPiece, 1, kAccess[i], nullptr}); }

  void create(int i) {
    VerbsQueuePairParameters parameters;
    parameters.datagram = i == 3;
    parameters.send_depth = parameters.receive_depth = 16;
    qpns_[i] = nic_.applications().create(parameters);
    connect(i);
  }
  void connect(int i) {
    QueueAttributes a;
    a.domain = 1;
    a.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    a.path_mtu = kMtu;
    a.remote_qpn = kPeerQpn + static_cast<uint32_t>(i);
    a.send_psn = a.receive_psn = 0xfffffc;
    a.timeout = 8;
    a.max_dest_rd_atomic = 4;
    a.recovery = i == 1 ? LossRecovery::selective_repeat : LossRecovery::go_back_n;
    a.trim_naks = i == 1;
    a.queue_key = 0x1111;
    requests_[i] = answers_[i] = 0xfffffc;
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) {
      if (to == QueuePairState::rts && i == 2) break;
      nic_.applications().modify(qpns_[i], to, a, path(kNicMac, kPeerMac), 3, 0);
    }
    if (i == 3) handle_ = nic_.applications().create_address_handle(path(kNicMac, kPeerMac));
    for (int n = 0; n < 2; ++n) post_receive(i, 2, 1'024);
  }

  void act(Input& in) {
    const uint8_t what = in.byte();
    const int i = in.byte() % kPairs;
    switch (what % 16) {
      case 0:
        return advance(Time{1} << (in.byte() % 24));
      case 1:
        return post_receive(i, in.byte() % kRegions, static_cast<uint32_t>(in.number(2)));
      case 2:
      case 3:
        return post_send(i, in);
      case 4: {
        const int r = in.byte() % kRegions;
        if (nic_.memory().remove(keys_[r]) && in.byte() % 2 == 0) add_region(r);
        return;
      }
      case 5:
        if (in.byte() % 4 != 0) return;
        if (i == 3) require(nic_.applications().destroy_address_handle(handle_));
        nic_.applications().modify(qpns_[i], QueuePairState::reset, {}, path(kNicMac, kPeerMac), 3, 0);
        return connect(i);
      case 6:
      case 7:
      case 8:
        return frame(i, in, true);
      default:
        return frame(i, in, false);
    }
  }

  void post_receive(int i, int r, uint32_t length) {
    ++posted_receives_;
    nic_.applications().post_receive(qpns_[i], {7, address(r), length, keys_[r]});
  }
  void post_send(int i, Input& in) {
    SendWork work;
    work.opcode = static_cast<WorkOpcode>(in.byte() % 8);
    work.flags = in.byte() & 7;
    work.length = work.opcode >= WorkOpcode::compare_swap ? 8 : static_cast<uint32_t>(in.number(2) % 3'000);
    const int r = in.byte() % 4 == 0 ? 1 : 2;
    work.local_address = address(r);
    work.local_key = keys_[r];
    work.remote_qpn = kPeerQpn + 3;
    work.address_handle = in.byte() % 8 == 0 ? handle_ + 1 : handle_;
    ++posted_sends_;
    nic_.applications().post_send(qpns_[i], work);
    collect();
  }

  // Sends to queue pair `i` a response to one of its requests, or a request.
  void frame(int i, Input& in, bool response) {
    static constexpr uint8_t kResponses[] = {kOpcodeRcAcknowledge,        kOpcodeRcAcknowledge,      kOpcodeRcReadResponseFirst,
                                             kOpcodeRcReadResponseMiddle, kOpcodeRcReadResponseLast, kOpcodeRcReadResponseOnly,
                                             kOpcodeRcAtomicAcknowledge};
    DataHeader h;
    const uint8_t opcode = in.byte();
    h.opcode = response ? kResponses[opcode % 7]
               : i == 3 ? (opcode & 1 ? kOpcodeUdSendOnly : kOpcodeUdSendOnlyImmediate)
                        : opcode % 0x18;
    const uint8_t style = in.byte();
    h.destination_qp = qpns_[i];
    h.psn = response ? answers_[i] : requests_[i];
    if ((style & 3) == 0) h.psn = psn_add(h.psn, static_cast<uint32_t>(static_cast<int8_t>(in.byte())) & kPsnMask);
    if ((style & 3) == 1) h.psn = psn_add(h.psn, in.byte() % 4);
    h.ack_request = (style & 4) != 0;
    const int r = in.byte() % kRegions;
    h.reth = {address(r), keys_[r], static_cast<uint32_t>(in.number(2))};
    if ((style & 8) != 0) h.reth.virtual_address += in.number(2) * 8;
    if ((style & 16) != 0) h.reth = {in.number(8), keys_[r], static_cast<uint32_t>(in.number(4))};
    h.atomic = {h.reth.virtual_address, h.reth.rkey, in.number(1), 0x1010101010101010};
    h.aeth = {static_cast<uint8_t>(response && (style & 32) != 0 ? in.byte() & 0x7f : 0x1f), static_cast<uint32_t>(in.number(1))};
    h.deth = {0x1111, kPeerQpn + 3};
    h.immediate = keys_[r];
    uint32_t length = 0;
    const OpcodeShape request = opcode_shape(h.opcode);
    const bool whole = request.kind != RequestKind::none && !request.last;
    if (request.kind == RequestKind::send || i == 3 || h.opcode == kOpcodeRcReadResponseLast)
      length = static_cast<uint32_t>(in.number(1));
    if (request.kind == RequestKind::write && request.first && request.last)
      length = h.reth.dma_length = h.reth.dma_length % (kMtu + 1);
    if (request.kind == RequestKind::write && request.last && !request.first) length = in.byte();
    if (whole || h.opcode == kOpcodeRcReadResponseFirst || h.opcode == kOpcodeRcReadResponseMiddle) length = kMtu;
    if (h.opcode == kOpcodeRcAcknowledge && (style & 64) != 0) length = kMaxSelectiveWindow / 8;
    if ((style & 0xc0) == 0xc0) length = static_cast<uint32_t>(in.number(2)) % 4'097;
    std::vector<uint8_t> payload(length);
    for (uint32_t n = 0; n < length && n < 64; ++n) payload[n] = in.byte() & 0x7f;

    std::vector<uint8_t> bytes(kMaxHeaders + length);
    RocePath way = path(kPeerMac, kNicMac);
    const uint8_t traffic = in.byte();
    if (traffic % 4 == 0) way.ecn = 3;
    const bool trimmed = traffic % 8 == 7;
    if (trimmed) way.dscp = fuzz::kTrimmedDscp;
    bytes.resize(RoceTemplate(way).build_data(bytes.data(), h, payload.data(), length));
    const uint8_t damage = in.byte();
    PacketMeta meta;
    for (int n = 0; n < (damage & 7) - 4; ++n) {
      const size_t at = 34 + in.number(2) % (bytes.size() - 34);
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ (in.byte() & 0x7f));
    }
    if ((damage & 0xf8) == 0x10) bytes.resize(in.number(2) % bytes.size());
    if ((damage & 0xf8) != 0x08 && classify(bytes.data(), static_cast<uint32_t>(bytes.size()), meta) == Refusal::none &&
        meta.bth_offset > 0) {  // mostly the ICRC is right again
      const uint32_t end = static_cast<uint32_t>(load_be16(bytes.data() + meta.l3_offset + 2)) + meta.l3_offset;
      write_icrc(bytes.data(), meta.l3_offset, end - kIcrc);
    }
    const std::vector<uint8_t> exact(bytes);
    const uint32_t size = static_cast<uint32_t>(exact.size());
    const Refusal refusal = classify(exact.data(), size, meta);
    nic_.receive(nic_.now(), exact.data(), size, meta, refusal);
    if (!response && !trimmed && meta.psn == requests_[i]) requests_[i] = psn_add(meta.psn, 1);
    collect();
    check_memory();
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
  // The NIC's packets also tell which PSNs it waits for.
  void collect() {
    for (PacketId id = nic_.transmit(); id != kNoPacket; id = nic_.transmit()) {
      const uint8_t* bytes = pool_.data(id);
      const uint32_t length = pool_[id].length;
      static constexpr uint8_t kLeak[12] = {kSecret, kSecret, kSecret, kSecret, kSecret, kSecret,
                                            kSecret, kSecret, kSecret, kSecret, kSecret, kSecret};
      PacketMeta meta;
      if (pool_[id].meta.kind != FrameKind::pfc) {
        require(classify(bytes, length, meta) == Refusal::none && icrc_ok(bytes, meta));
        const uint8_t* packet = bytes + meta.bth_offset;
        // Only the NIC's own requests may carry these bytes.
        require(meta.destination_mac == kPeerMac);
        require(!is_response(meta.opcode) || std::search(packet, bytes + length, kLeak, kLeak + sizeof kLeak) == bytes + length);
        track(meta, packet);
      }
      nic_.left(id);
      pool_.free(id);
    }
  }
  void track(const PacketMeta& meta, const uint8_t* packet) {
    if (meta.kind == FrameKind::cnp) return;  // a datagram's goes to whatever its sender calls itself
    const uint32_t i = meta.destination_qp - kPeerQpn;
    require(i < kPairs);
    if (meta.opcode == kOpcodeRcAcknowledge) {
      const bool nak = (packet[kBthHeader] & kSyndromeKind) != kSyndromeAck;
      requests_[i] = nak ? meta.psn : psn_add(meta.psn, 1);
    } else if (opcode_shape(meta.opcode).kind != RequestKind::none) {
      answers_[i] = meta.psn;
    }
  }

  // Outside of regions with kLocalWrite or kRemoteWrite nothing ever changes.
  void check_memory() {
    for (int i = 0; i < kRegions; ++i) {
      if ((kAccess[i] & (kLocalWrite | kRemoteWrite)) != 0) std::memcpy(before_.data() + (2 * i + 1) * kPiece, region(i), kPiece);
    }
    require(arena_ == before_);
  }

  std::vector<uint8_t> arena_;
  std::vector<uint8_t> before_;
  Sink sink_;
  PacketPool pool_;
  WireNic nic_;
  uint32_t keys_[kRegions] = {};
  uint32_t qpns_[kPairs] = {};
  uint32_t requests_[kPairs] = {};  // the PSN that the queue pair seems to expect
  uint32_t answers_[kPairs] = {};   // PSN of its latest request
  uint32_t handle_ = 0;
  uint64_t posted_sends_ = 0;
  uint64_t posted_receives_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::make_unique<World>()->run(Input({data, size}, 0x7f));  // no byte of a number is a secret
  return 0;
}
