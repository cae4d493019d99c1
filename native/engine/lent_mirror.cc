#include "engine/lent_mirror.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/offload.h"
#include "wire/super_frame.h"

namespace weir {
namespace {

constexpr size_t kAlignment = 8;
constexpr uint64_t kMostLost = uint64_t{1} << 32;  // between two calls: more is nonsense
constexpr size_t padded(size_t length) { return (length + kAlignment - 1) / kAlignment * kAlignment; }

// In front of each frame's bytes.
struct Copied {
  Time stamp = 0;
  uint32_t length = 0;
  uint16_t vlan_tci = 0;
  uint16_t vlan_tpid = 0;
  Offload offload = {};
  bool vlan_stripped = false;
  bool outgoing = false;
};
static_assert(std::is_trivially_copyable_v<Copied>);

}  // namespace

size_t MirrorPort::receive(std::span<RxFrame> frames) {
  const size_t count = inner_->receive(frames);
  if (count == 0 || !wanted()) return count;
  for (const RxFrame& frame : frames.first(count)) put(frame, false);
  return count;
}

Transmitted MirrorPort::transmit(std::span<const TxFrame> frames) {
  const Transmitted done = inner_->transmit(frames);
  if (!wanted()) return done;
  for (const TxFrame& frame : frames.first(done.sent)) {
    put({.data = frame.data, .length = frame.length, .stamp = clock_.now, .offload = frame.offload}, true);
  }
  return done;
}

void MirrorPort::put(const RxFrame& frame, bool outgoing) {
  const Copied head{.stamp = frame.stamp,
                    .length = frame.length,
                    .vlan_tci = frame.vlan_tci,
                    .vlan_tpid = frame.vlan_tpid,
                    .offload = frame.offload,
                    .vlan_stripped = frame.vlan_stripped,
                    .outgoing = outgoing};
  const size_t whole = padded(sizeof head) + padded(frame.length);
  if (filled_ - memory_.read.load(std::memory_order_acquire) + whole > MirrorMemory::kBytes) {
    memory_.lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  put(&head, sizeof head);
  put(frame.data, frame.length);
  memory_.written.store(filled_, std::memory_order_release);
}

void MirrorPort::put(const void* data, size_t length) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  const size_t at = filled_ % MirrorMemory::kBytes;
  const size_t first = std::min<size_t>(length, MirrorMemory::kBytes - at);
  std::memcpy(memory_.bytes + at, bytes, first);
  std::memcpy(memory_.bytes, bytes + first, length - first);
  filled_ += padded(length);
}

void MirrorReader::copy_out(uint64_t from, void* to, size_t length) const {
  const size_t at = from % MirrorMemory::kBytes;
  const size_t first = std::min<size_t>(length, MirrorMemory::kBytes - at);
  std::memcpy(to, memory_.bytes + at, first);
  std::memcpy(static_cast<uint8_t*>(to) + first, memory_.bytes, length - first);
}

void MirrorReader::drain(PacketPort& port) {
  const bool wanted = port.witnesses();
  memory_.wanted.store(wanted ? 1 : 0, std::memory_order_relaxed);
  const uint64_t written = memory_.written.load(std::memory_order_acquire);
  const uint64_t lost = memory_.lost.load(std::memory_order_relaxed);
  if (const uint64_t more = lost - std::exchange(lost_, lost); wanted && more > 0 && more < kMostLost) port.miss(more);
  if (written == taken_) return;
  if (frame_ == nullptr) frame_ = std::make_unique<uint8_t[]>(kMaxSuperFrame);
  while (written - taken_ >= padded(sizeof(Copied)) && written - taken_ <= MirrorMemory::kBytes) {
    Copied head;
    copy_out(taken_, &head, sizeof head);
    const uint64_t behind = taken_ + padded(sizeof head);
    if (head.length > kMaxSuperFrame || padded(head.length) > written - behind) break;
    copy_out(behind, frame_.get(), head.length);
    taken_ = behind + padded(head.length);
    if (!wanted) continue;
    const RxFrame frame{.data = frame_.get(),
                        .length = head.length,
                        .stamp = head.stamp,
                        .vlan_tci = head.vlan_tci,
                        .vlan_stripped = head.vlan_stripped,
                        .vlan_tpid = head.vlan_tpid,
                        .offload = head.offload};
    port.witness(frame, head.outgoing);
  }
  taken_ = written;  // nonsense is skipped, too
  memory_.read.store(taken_, std::memory_order_release);
}

}  // namespace weir
