// libFuzzer: arbitrary bytes through everything that reads a received frame.
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -Inative native/fuzz/classify_fuzz.cc native/wire/*.cc
#include <cstdlib>
#include <vector>

#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/mac_control.h"
#include "wire/udp.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir;
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

  // A marked frame still classifies as it did.
  meta.ecn = 3;
  write_ecn(frame.data(), meta);
  PacketMeta marked;
  require(classify(frame.data(), length, marked) == refusal && marked.kind == meta.kind);
  require(marked.ecn == (meta.l3_offset != 0 ? 3 : 0));

  (void)classify(frame.data(), length, meta, 0x6001);
  return 0;
}
