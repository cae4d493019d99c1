#include "transport/verbs_transport.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/native_error.h"

namespace weir {

void require_transition(QueuePairState from, QueuePairState to) {
  if (may_become(from, to)) return;
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "ERROR"};
  throw NativeError(
      "INVALID_STATE", 0, "",
      std::string("a queue pair cannot go from ") + kNames[static_cast<int>(from)] + " to " + kNames[static_cast<int>(to)],
      "RESET, INIT, RTR, RTS in this order; RESET from anywhere, ERROR from anywhere but RESET");
}

bool may_become(QueuePairState from, QueuePairState to) {
  using enum QueuePairState;
  const bool stays = from == to && (to == init || to == rts);
  const bool goes_on = static_cast<int>(to) == static_cast<int>(from) + 1;
  return to == reset || (to == error ? from != reset : stays || goes_on);
}

void require_attributes(const QueueAttributes& a) {
  const auto require = [](bool condition, const char* name, const char* range) {
    if (!condition) throw NativeError("INVALID_ATTRIBUTE", 0, "", std::string(name) + " is out of its range", range);
  };
  require(std::has_single_bit(a.path_mtu) && a.path_mtu >= 256 && a.path_mtu <= 4096, "path_mtu", "256, 512, 1024, 2048 or 4096");
  require(a.timeout <= 31, "timeout", "0 to 31");
  require(a.retry_count <= 7, "retry_count", "0 to 7");
  require(a.rnr_retry <= 7, "rnr_retry", "0 to 7");
  require(a.min_rnr_timer <= 31, "min_rnr_timer", "0 to 31");
  require(a.max_rd_atomic >= 1 && a.max_rd_atomic <= kMaxRdAtomic, "max_rd_atomic", "1 to 128");
  require(a.max_dest_rd_atomic <= kMaxRdAtomic, "max_dest_rd_atomic", "0 to 128");
  require(a.window == 0 || (a.window >= 4 && a.window <= kMaxWindow), "window", "4 to 65536");
  require(a.reordering >= 1, "reordering", "1 to 255");
  require(a.recovery == LossRecovery::go_back_n || a.window <= kMaxSelectiveWindow, "window", "4 to 256 with selective repeat");
  require(a.recovery == LossRecovery::selective_repeat || !a.trim_naks, "trim_naks", "only with selective repeat");
  require(a.spraying == Spraying::none || a.recovery == LossRecovery::selective_repeat, "spraying", "with selective repeat only");
  require(a.entropies >= 1 && a.entropies <= kMaxEntropies, "entropies", "1 to 16384");
}

void VerbsTransport::modify(QueuePairState to, const QueueAttributes& attributes) {
  require_transition(state_, to);
  const bool ends = to == QueuePairState::reset || to == QueuePairState::error;
  if (!ends) require_attributes(attributes);
  const QueuePairState from = std::exchange(state_, to);
  changed_ = true;
  if (!ends) enter(from, attributes);
  send_queue_ = SendQueueState::runs;
  if (!ends) return;
  flush();
  stop();
}

void VerbsTransport::drain() {
  require_transition(state_, QueuePairState::rts);
  send_queue_ = SendQueueState::draining;
  changed_ = true;
}

SendQueueState VerbsTransport::send_queue_state() const {
  return send_queue_ == SendQueueState::draining && !busy() ? SendQueueState::drained : send_queue_;
}

void VerbsTransport::post_send(const SendWork& work, uint32_t times) {
  changed_ = true;
  const bool failed = send_queue_ == SendQueueState::failed;
  if (state_ == QueuePairState::rts && !failed && serves(work)) {
    const uint32_t taken = std::min(times, sends_.room());
    sends_.push(work, attributes_.path_mtu, taken);
    sends_.settle(qpn_, context_.completions);
    times -= taken;
  }
  for (; times > 0; --times) refuse(work.id, false);
}

void VerbsTransport::post_receive(const ReceiveWork& work, uint32_t times) {
  const bool taken = may_receive() || state_ == QueuePairState::init;
  for (; taken && times > 0 && !receives_.full(); --times) receives_.push(work);
  for (; times > 0; --times) refuse(work.id, true);
}

void VerbsTransport::refuse(uint64_t id, bool receive) {
  const bool flushed = state_ == QueuePairState::error || (!receive && send_queue_ == SendQueueState::failed);
  context_.completions.complete(
      {.id = id, .qpn = qpn_, .status = flushed ? WorkStatus::flushed : WorkStatus::local_operation_error, .receive = receive});
}

bool VerbsTransport::admits(uint16_t partition_key) const {
  const uint16_t ours = attributes_.partition_key;
  return ((ours ^ partition_key) & 0x7fff) == 0 && ((ours | partition_key) & 0x8000) != 0;
}

void VerbsTransport::fail(WorkStatus status) {
  if (state_ == QueuePairState::error) return;
  state_ = QueuePairState::error;
  changed_ = true;
  if (status != WorkStatus::success && !sends_.empty()) sends_.retire(status, qpn_, context_.completions);
  flush();
  context_.completions.complete({.qpn = qpn_, .status = status, .retired = 0});
}

void VerbsTransport::fail_send(WorkStatus status) {
  if (!context_.send_queue_errors) return fail(status);
  send_queue_ = SendQueueState::failed;
  changed_ = true;
  sends_.retire(status, qpn_, context_.completions);
  while (!sends_.empty()) sends_.retire(WorkStatus::flushed, qpn_, context_.completions);
  context_.completions.complete({.qpn = qpn_, .status = status, .retired = 0});
}

void VerbsTransport::flush() {
  while (!sends_.empty()) sends_.retire(WorkStatus::flushed, qpn_, context_.completions);
  receives_.flush(qpn_, context_.completions);
}

}  // namespace weir
