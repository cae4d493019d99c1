// Arbitrary bytes through everything that reads a received frame.
#include <algorithm>
#include <cstring>
#include <vector>

#include "endpoint/nic_neighbours.h"
#include "fuzz/input.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/mac_control.h"
#include "wire/offload.h"
#include "wire/qcn.h"
#include "wire/segmentation.h"
#include "wire/super_frame.h"
#include "wire/telemetry.h"
#include "wire/udp.h"

namespace {

using namespace weir;
using fuzz::require;

// A CNM says what it said when it is built again.
void repeat(const CongestionNotification& cnm) {
  uint8_t again[kCnmMaxLength];
  CongestionNotification same;
  require(parse_cnm(again, build_cnm(again, {}, cnm), same));
  require(same.quantized_feedback == cnm.quantized_feedback && same.queue_offset == cnm.queue_offset &&
          same.queue_delta == cnm.queue_delta && same.congestion_point == cnm.congestion_point &&
          std::ranges::equal(same.msdu, cnm.msdu));
}

// A CN-TAG less, a CN-TAG more: the same frame.
void retag(std::span<const uint8_t> frame, const PacketMeta& meta) {
  const auto length = static_cast<uint32_t>(frame.size());
  PacketPool pool(1, length + kCnTag + kTelemetryStride);
  const PacketId id = pool.allocate();
  pool[id].reset();
  pool[id].length = length;
  pool[id].meta = meta;
  std::ranges::copy(frame, pool.data(id));
  if (meta.cn_tagged) remove_cn_tag(pool, id);
  require(!pool[id].meta.cn_tagged && insert_cn_tag(pool, id, meta.cn_flow) && pool[id].meta.cn_tagged);
  if (!meta.cn_tagged) remove_cn_tag(pool, id);
  require(pool[id].length == length && std::equal(frame.begin(), frame.end(), pool.data(id)));
  require(pool[id].meta.l3_offset == meta.l3_offset && pool[id].meta.bth_offset == meta.bth_offset);
}

// A hop more is a hop more, or nothing; of the packet nothing else changes, and its ICRC is as good as it was.
void pass_hop(std::vector<uint8_t> frame, const PacketMeta& meta) {
  const uint32_t at = meta.bth_offset + telemetry_offset(meta.opcode);
  require(at + kTelemetryHeader + kIcrc <= frame.size());
  Telemetry before;
  Telemetry after;
  const bool ok = load_telemetry(frame.data() + at, before);
  const bool whole = icrc_ok(frame.data(), meta);
  const HopWritten written = write_hop(frame.data() + at, {.time = 1, .sent = 2, .queue = 64, .rate = 2'048});
  require((written == HopWritten::malformed) == !ok && load_telemetry(frame.data() + at, after) == ok);
  require(after.hops == before.hops + (written == HopWritten::written ? 1 : 0) && after.hops <= kMostHops);
  require(icrc_ok(frame.data(), meta) == whole);
  PacketMeta again;
  require(classify(frame.data(), static_cast<uint32_t>(frame.size()), again) == Refusal::none && again == meta);
}

// A checksum that is found unfinished can be finished.
void finish(std::vector<uint8_t> frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  Offload offload;
  if (!infer_partial_checksum(frame.data(), length, offload)) return;
  require(check_offload(frame.data(), length, offload) && offload.needs_checksum && offload.gso == Gso::none);
  require(complete_checksum(frame.data(), length, offload));
}

// A super-frame is refused, whatever is said of it, or is packets within the frame that are the same cut and sliced.
void take_apart(std::vector<uint8_t> frame) {
  if (frame.size() < kOffloadHeader) return;
  Offload offload = load_offload(frame.data());
  frame.erase(frame.begin(), frame.begin() + kOffloadHeader);
  const auto length = static_cast<uint32_t>(frame.size());
  if (!check_offload(frame.data(), length, offload) || !is_roce_super_frame(frame.data(), offload)) return;
  const std::vector<uint8_t> whole = frame;
  std::vector<uint8_t> cut(offload.largest_segment(length));
  SuperFrameSlices slices(frame.data(), length, offload);
  uint32_t size = 0;
  uint32_t index = 0;
  PacketMeta meta;
  for (const uint8_t* slice = slices.next(size); slice != nullptr; slice = slices.next(size), ++index) {
    require(slice >= frame.data() && slice + size <= frame.data() + frame.size());
    require(write_segment(whole.data(), length, offload, index, cut.data()) == size);
    require(std::equal(slice, slice + size, cut.begin()));
    PacketMeta alone;
    const Refusal refusal = classify(slice, size, alone);
    require((meta.bth_offset != 0 ? classify_next_slice(slice, size, meta) : classify(slice, size, meta)) == refusal);
    require(meta == alone);
  }
  require(index == segment_count(length, offload));
}

// A NIC that has the addresses that the frame may be for says one thing at most, which is whole, and asks nobody but whom it
// heard of.
void hear(std::span<const uint8_t> frame, const PacketMeta& meta) {
  constexpr uint32_t kArpTarget = kEthernetHeader + 24;
  constexpr uint32_t kIpv4Destination = kEthernetHeader + 16;
  constexpr uint32_t kIpv6Destination = kEthernetHeader + 24;
  constexpr uint32_t kNeighbourTarget = kEthernetHeader + kIpv6Header + 8;
  NicNeighbourParameters parameters;
  const auto own = [&](uint8_t version, uint32_t at) {
    const uint32_t bytes = ip_address_length(version);
    if (at + bytes > frame.size()) return;
    IpAddress address{.version = version};
    std::memcpy(address.bytes, frame.data() + at, bytes);
    parameters.addresses.push_back({address, true});
  };
  own(4, kArpTarget);
  own(4, kIpv4Destination);
  own(6, kIpv6Destination);
  own(6, kNeighbourTarget);
  PacketPool pool(2, static_cast<uint32_t>(frame.size()) + kNeighbourFrame);
  const uint64_t mac = meta.destination_mac;
  uint32_t said = 0;
  {
    const auto send = [&](PacketId id) {
      PacketMeta answer;
      require(classify(pool.data(id), pool[id].length, answer) == Refusal::none);
      require(answer.source_mac == mac && pool[id].length >= kMinimumFrame && ++said == 1);
      pool.free(id);
      return true;
    };
    NicNeighbours neighbours(parameters, mac, pool, {send, [](uint32_t, uint64_t) {}});
    neighbours.hear(0, frame.data(), static_cast<uint32_t>(frame.size()), meta);
    neighbours.advance(kSecond * 60);
    require(neighbours.table().size() == 0);
  }
  require(pool.available() == pool.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> frame(data, data + size);
  const auto length = static_cast<uint32_t>(size);
  PacketMeta meta;
  const Refusal refusal = classify(frame.data(), length, meta);
  require(refusal < Refusal::kCount);
  if (meta.kind == FrameKind::roce || meta.kind == FrameKind::cnp) {
    require(refusal == Refusal::none && meta.bth_offset + 16u + meta.payload_length <= length);
    (void)icrc_ok(frame.data(), meta);
    if (has_telemetry(meta.opcode)) pass_hop(frame, meta);
  }
  PfcFrame pfc;
  uint16_t quanta = 0;
  require(parse_pfc(frame.data(), length, pfc) || meta.kind != FrameKind::pfc);
  require(parse_pause(frame.data(), length, quanta) || meta.kind != FrameKind::pause);
  CongestionNotification cnm;
  const bool of_layer_2 = meta.kind == FrameKind::cnm && meta.ip_version == 0;
  const bool datagram = refusal == Refusal::none && is_to_cnm_port(frame.data(), meta);
  require(parse_cnm(frame.data(), length, cnm) == of_layer_2);
  require(meta.kind != FrameKind::cnm || of_layer_2 || datagram);
  const bool good = datagram && parse_cnm_datagram(frame.data(), meta, cnm) == Refusal::none;
  require(!good || meta.kind == FrameKind::cnm);
  if (of_layer_2 || good) {
    require(cnm.msdu.data() + cnm.msdu.size() <= frame.data() + length);
    (void)sampled_source(cnm.msdu);
    repeat(cnm);
  }
  if (refusal == Refusal::none || refusal == Refusal::ip_fragment) hear(frame, meta);
  finish(frame);
  take_apart(frame);

  // A marked frame still classifies as it did.
  meta.ecn = 3;
  write_ecn(frame.data(), meta);
  PacketMeta marked;
  require(classify(frame.data(), length, marked) == refusal && marked.kind == meta.kind);
  require(marked.ecn == (meta.l3_offset != 0 ? 3 : 0));
  if (refusal == Refusal::none && length <= 4096) retag(frame, marked);

  (void)classify(frame.data(), length, meta, 0x6001);
  return 0;
}
