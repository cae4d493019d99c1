// The messages of an endless or bounded stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/describe.h"

namespace weir {

enum class Operation : uint8_t { write, send, read };
constexpr auto words_of(Operation) { return std::array{"write", "send", "read"}; }

struct MessageStreamParameters {
  Operation operation = Operation::write;
  uint32_t path_mtu = 1024;            // 256, 512, 1024, 2048 or 4096 bytes of payload per packet
  uint32_t message_bytes = 4'000'000;  // 1 .. 2^31
  uint64_t total_bytes = 0;            // 0 = no end; the last message is cut to fit
  uint32_t first_psn = 0;
};
void describe(auto& v, Of<MessageStreamParameters> auto& p) {
  v.type("NativeMessageStream", "Messages that are sent one after another.");
  v("operation", p.operation, field::any("RDMA WRITE, SEND, or READ: reliable ones only."));
  v("path_mtu", p.path_mtu, field::within(1, 4'096, "Of payload in a packet.", "bytes"));
  v("message_bytes", p.message_bytes, field::any("Of one message.", "bytes"));
  v("total_bytes", p.total_bytes, field::any("In all; 0: no end. The last message is cut to fit.", "bytes"));
  v("first_psn", p.first_psn, field::optional(field::any("Of the first packet.")));
}

// The lengths of a stream's messages, in order.
class MessageSizes {
 public:
  // Messages of `message_bytes` until there are `total_bytes`, the last cut to fit; 0 = no end.
  MessageSizes(uint32_t message_bytes, uint64_t total_bytes)
      : left_(total_bytes), each_(message_bytes), bounded_(total_bytes > 0) {}
  // Each message has its own length, none of them 0. The sizes that `sizes` refers to must outlive this.
  explicit MessageSizes(std::span<const uint32_t> sizes) : sizes_(sizes.data()), left_(sizes.size()) {}

  // 0: there are no more.
  uint32_t next() {
    if (sizes_ != nullptr) return left_ > 0 ? (--left_, *sizes_++) : 0;
    if (!bounded_) return each_;
    const uint32_t bytes = static_cast<uint32_t>(std::min<uint64_t>(each_, left_));
    left_ -= bytes;
    return bytes;
  }

 private:
  const uint32_t* sizes_ = nullptr;
  uint64_t left_;  // bytes, or sizes
  uint32_t each_ = 0;
  bool bounded_ = false;
};

}  // namespace weir
