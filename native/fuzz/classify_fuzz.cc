// Arbitrary bytes through everything that reads a received frame, and through the reader of capture files.
#include <algorithm>
#include <array>
#include <vector>

#include "base/native_error.h"
#include "fuzz/input.h"
#include "io/frame_comment.h"
#include "io/pcap_file.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/mac_control.h"
#include "wire/offload.h"
#include "wire/partial_checksum.h"
#include "wire/qcn.h"
#include "wire/segmentation.h"
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
  PacketPool pool(1, length + kCnTag + kHeaderStride);
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

// A comment on the frame as it came, or cut short by a snap length, is ASCII.
void comment(std::span<const uint8_t> frame, const PacketMeta& meta, Refusal refusal) {
  CapturedFrame captured;
  captured.original = static_cast<uint32_t>(frame.size());
  captured.destination_qp = meta.destination_qp;
  captured.kind = meta.kind;
  captured.refusal = refusal;
  captured.ecn = meta.ecn;
  captured.is_ip = meta.l3_offset != 0;
  std::array<char, kLongestComment> text;
  for (const size_t length : {frame.size(), frame.size() / 2}) {
    captured.captured = static_cast<uint32_t>(length);
    // Just as many bytes as there are, for AddressSanitizer to know.
    const std::vector<uint8_t> bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(length));
    const std::string_view said = comment_on(captured, bytes, {.rate = 40'000'000'000, .meant = true}, text);
    require(said.size() <= kLongestComment && std::ranges::all_of(said, [](char c) { return c >= 0x20 && c < 0x7f; }));
  }
}

// A checksum that is found unfinished can be finished.
void finish(std::vector<uint8_t> frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  Offload offload;
  if (!infer_partial_checksum(frame.data(), length, offload)) return;
  require(check_offload(frame.data(), length, offload) && offload.needs_checksum && offload.gso == Gso::none);
  require(complete_checksum(frame.data(), length, offload));
}

void read_capture(std::span<const uint8_t> file) {
  try {
    PcapReader reader(file);
    PcapRecord record;
    while (reader.next(record)) {
      require(record.bytes.data() >= file.data() && record.bytes.data() + record.bytes.size() <= file.data() + file.size());
    }
    require(!reader.next(record) && reader.malformed() <= 1);
  } catch (const NativeError& error) {
    require(std::string_view(error.code) == "INVALID_PCAP");
  }
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
    (void)udp_checksum_ok(frame.data(), meta);
  }
  PfcFrame pfc;
  uint16_t quanta = 0;
  require(parse_pfc(frame.data(), length, pfc) || meta.kind != FrameKind::pfc);
  require(parse_pause(frame.data(), length, quanta) || meta.kind != FrameKind::pause);
  CongestionNotification cnm;
  require(parse_cnm(frame.data(), length, cnm) == (meta.kind == FrameKind::cnm));
  if (meta.kind == FrameKind::cnm) {
    require(cnm.msdu.data() + cnm.msdu.size() <= frame.data() + length);
    repeat(cnm);
  }
  comment(frame, meta, refusal);
  finish(frame);

  // A marked frame still classifies as it did.
  meta.ecn = 3;
  write_ecn(frame.data(), meta);
  PacketMeta marked;
  require(classify(frame.data(), length, marked) == refusal && marked.kind == meta.kind);
  require(marked.ecn == (meta.l3_offset != 0 ? 3 : 0));
  if (refusal == Refusal::none && length <= 4096) retag(frame, marked);

  (void)classify(frame.data(), length, meta, 0x6001);
  read_capture({data, size});
  return 0;
}
