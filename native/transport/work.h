// Work that an application asks of a queue pair, and its completions. Names and numbers are those of the verbs (libibverbs).
#pragma once

#include <cstdint>

#include "base/describe.h"

namespace weir {

enum class WorkOpcode : uint8_t { send, send_immediate, send_invalidate, write, write_immediate, read, compare_swap, fetch_add };
constexpr auto words_of(WorkOpcode) {
  return std::array{"send",      "send_with_imm",      "send_with_inv",       "rdma_write", "rdma_write_with_imm",
                    "rdma_read", "atomic_cmp_and_swp", "atomic_fetch_and_add"};
}

inline constexpr uint8_t kSignaled = 1 << 0;   // a completion also on success
inline constexpr uint8_t kSolicited = 1 << 1;  // the peer's completion is a solicited event
inline constexpr uint8_t kFence = 1 << 2;      // waits until all earlier READs and atomics are complete
inline constexpr uint8_t kLocal = 1 << 3;      // sends nothing: it is complete when all before it is

inline constexpr uint32_t kMaxMessage = 1u << 30;  // bytes; fewer PSNs than half of them all, at any path MTU

struct SendWork {
  uint64_t id = 0;
  WorkOpcode opcode = WorkOpcode::send;
  uint8_t flags = 0;
  uint32_t length = 0;  // bytes, up to kMaxMessage; atomics: 8
  uint64_t local_address = 0;
  uint32_t local_key = 0;
  uint32_t remote_key = 0;      // or the key that send_invalidate invalidates
  uint64_t remote_address = 0;  // atomics: a multiple of 8
  uint32_t immediate = 0;
  uint64_t compare = 0;   // compare_swap
  uint64_t swap_add = 0;  // value to swap in, or to add
  // UD only.
  uint32_t address_handle = 0;
  uint32_t remote_qpn = 0;
  uint32_t queue_key = 0;
};
void describe(auto& v, Of<SendWork> auto& work) {
  v.type("WorkRequest", "What an application asks of a queue pair.");
  v("id", work.id, field::any("Comes back in the completion."));
  v("local_address", work.local_address, field::any("Of registered memory."));
  v("remote_address", work.remote_address, field::any("Atomics: a multiple of 8."));
  v("compare", work.compare, field::any("With atomic_cmp_and_swp."));
  v("swap_add", work.swap_add, field::any("What to swap in, or to add."));
  v("length", work.length, field::any("Up to 2^30; atomics: 8.", "bytes"));
  v("local_key", work.local_key, field::any("Of registered memory."));
  v("remote_key", work.remote_key, field::any("Also what send_with_inv invalidates."));
  v("immediate", work.immediate, field::any("Comes with the message."));
  v("address_handle", work.address_handle, field::any("Of a datagram."));
  v("remote_qpn", work.remote_qpn, field::any("Of a datagram."));
  v("queue_key", work.queue_key, field::any("Of a datagram."));
  v("opcode", work.opcode, field::any("ibv_wr_opcode."));
  v("flags", work.flags, field::any("Bits: signaled 1, solicited 2, fence 4, local 8."));
}

struct ReceiveWork {
  uint64_t id = 0;
  uint64_t local_address = 0;
  uint32_t length = 0;
  uint32_t local_key = 0;
};

// ibv_wc_status.
enum class WorkStatus : uint8_t {
  success = 0,
  local_length_error = 1,
  local_operation_error = 2,
  local_protection_error = 4,
  flushed = 5,
  bad_response_error = 7,
  remote_invalid_request_error = 9,
  remote_access_error = 10,
  remote_operation_error = 11,
  retry_exceeded_error = 12,
  rnr_retry_exceeded_error = 13,
  // There are others, which faults that are made on purpose may have.
};

inline constexpr uint8_t kWithImmediate = 1 << 0;
inline constexpr uint8_t kWithInvalidate = 1 << 1;
inline constexpr uint8_t kWithGrh = 1 << 2;   // the buffer starts with 40 bytes of network header
inline constexpr uint8_t kWithIpv6 = 1 << 3;  // that header is IPv6's

struct Completion {
  uint64_t id = 0;
  uint32_t qpn = 0;
  WorkStatus status = WorkStatus::success;
  bool receive = false;                  // whether it is a ReceiveWork's
  WorkOpcode opcode = WorkOpcode::send;  // a receive's: send, or write_immediate
  uint8_t flags = 0;                     // kWithImmediate ...
  uint32_t bytes = 0;                    // received, or read
  uint32_t immediate = 0;                // immediate data, or the key that was invalidated
  uint32_t source_qpn = 0;               // UD receive
  uint32_t retired = 1;                  // work requests that are done with: unsignaled ones before this too
  bool solicited = false;                // a receive's: the sender asked for an event

  bool operator==(const Completion&) const = default;
};
void describe(auto& v, Of<Completion> auto& completion) {
  v.type("Completion", "What became of a work request.");
  v("id", completion.id, field::any("Its own."));
  v("qpn", completion.qpn, field::any("Queue pair."));
  v("bytes", completion.bytes, field::any("Received, or read."));
  v("immediate", completion.immediate, field::any("Or the key that was invalidated."));
  v("source_qpn", completion.source_qpn, field::any("Of a datagram."));
  v("retired", completion.retired, field::any("Work requests that are done with: unsignaled ones before this too."));
  v("status", completion.status, field::any("ibv_wc_status."));
  v("receive", completion.receive, field::any("Of a receive."));
  v("opcode", completion.opcode, field::any("Of a receive: send, or rdma_write_with_imm."));
  v("flags", completion.flags, field::any("Bits: immediate 1, invalidated key 2, network header 4, of IPv6 8."));
}

class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  // There is always room: nobody posts more than the sink can hold completions for.
  virtual void complete(const Completion& completion) = 0;
};

}  // namespace weir
