// How a switch shares its memory among its ports: see switching/shared_buffer.h.
#pragma once

#include <array>
#include <cstdint>

#include "base/describe.h"
#include "base/types.h"

namespace weir {

struct BufferParameters {
  enum class Threshold : uint8_t { dynamic, fixed };
  int64_t total = 12'000'000;
  int64_t headroom = 22'400;
  int priorities = 8;
  double beta = 8;
  Threshold threshold = Threshold::dynamic;
  int64_t fixed_threshold = 24'470;
  int64_t xon_offset = 3'000;
  double lossy_alpha = 1;
  int64_t lateness_headroom = 0;
};

// Settings that one port has instead.
struct PortBuffer {
  int64_t headroom = 22'400;
  double beta = 8;
  int64_t fixed_threshold = 24'470;
  int64_t xon_offset = 3'000;
  double lossy_alpha = 1;
};

// Length up to which the egress queues of one lossy priority may grow, whatever is free.
struct FixedQueue {
  int priority = -1;  // -1: there is none
  int64_t bytes = 0;
};

// More headroom than memory is not an error: then nothing is shared.
constexpr auto words_of(BufferParameters::Threshold) { return std::array{"dynamic", "static"}; }
void describe(auto& v, Of<BufferParameters> auto& p) {
  constexpr double kMost = 0x1p40;  // sums over ports and priorities, and products with beta, fit so
  v.type("NativeBuffer", "The memory that all ports share.");
  v("total", p.total, field::bytes("B.", 0, kMost));
  v("headroom", p.headroom, field::bytes("t_flight, per port and priority.", 0, kMost));
  v("priorities", p.priorities, field::within(1, kPriorities, "P: how many headroom is reserved for, and the divisor."));
  v("beta", p.beta, field::within(0, 1e6, "Share of the free buffer that one ingress priority may take, times P."));
  v("threshold", p.threshold, field::any("Above which an ingress is paused."));
  v("fixed_threshold", p.fixed_threshold, field::bytes("With static.", 0, kMost));
  v("xon_offset", p.xon_offset, field::bytes("Below the threshold, at which the peer is resumed.", 0, kMost));
  v("lossy_alpha", p.lossy_alpha, field::within(0, field::kMany, "Times the free shared buffer: most of a lossy egress queue."));
  v("lateness_headroom", p.lateness_headroom,
    field::bytes("Beyond B, per port and lossless priority, for feedback that a shared host delivers late.", 0, kMost));
}

void describe(auto& v, Of<PortBuffer> auto& p) {
  constexpr double kMost = 0x1p40;
  v.type("NativePortBuffer", "What a port has of the memory, in place of what all have.");
  v("headroom", p.headroom, field::bytes("t_flight, per priority.", 0, kMost));
  v("beta", p.beta, field::within(0, 1e6, "Share of the free buffer that one ingress priority may take, times P."));
  v("fixed_threshold", p.fixed_threshold, field::bytes("With static.", 0, kMost));
  v("xon_offset", p.xon_offset, field::bytes("Below the threshold, at which the peer is resumed.", 0, kMost));
  v("lossy_alpha", p.lossy_alpha, field::within(0, field::kMany, "Times the free shared buffer: most of a lossy egress queue."));
}

}  // namespace weir
