#include "io/capture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/native_error.h"
#include "wire/segmentation.h"
#include "wire/super_frame.h"

namespace weir {
namespace {

constexpr uint32_t kAddresses = 12;  // a tag stands behind the two MAC addresses
constexpr uint32_t kTag = 4;
constexpr uint8_t kCongestionExperienced = 3;

CaptureOptions checked(CaptureOptions options) {
  options.snap_length = std::min(options.snap_length, kLongestCapture);
  if (options.ring_bytes < 2 * CapturedFrame{.captured = options.snap_length}.length() || options.ring_bytes % 8 != 0) {
    throw NativeError("INVALID_CONFIG", 0, "", "capture ring of " + std::to_string(options.ring_bytes) + " bytes is no such ring",
                      "must be at least twice the snap length, and a multiple of 8");
  }
  return options;
}

// There is one writer. A reader that sees the new count sees what was counted before it.
void add_one(std::atomic<uint64_t>& count) { count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

uint8_t kind_bit(FrameKind kind) {
  switch (kind) {
    case FrameKind::roce:
      return kCaptureRoce;
    case FrameKind::cnp:
      return kCaptureCnp;
    case FrameKind::pause:
    case FrameKind::pfc:
      return kCapturePfc;
    case FrameKind::cnm:
      return kCaptureCnm;
    case FrameKind::mac_control:
    case FrameKind::other:
      break;
  }
  return kCaptureOther;
}

}  // namespace

Capture::Capture(const CaptureOptions& options, size_t taps)
    : options_(checked(options)), ring_(options.ring_bytes), counts_(taps) {}

Capture::Counts Capture::counts(size_t tap) const {
  const AtomicCounts& counts = counts_[tap];
  // Dropped ones first: they are among the wanted, which are read later.
  const uint64_t dropped = counts.dropped.load(std::memory_order_acquire);
  const uint64_t wanted = counts.wanted.load(std::memory_order_acquire);
  return {counts.seen.load(std::memory_order_relaxed), wanted - dropped, dropped};
}

void Capture::record(CapturedFrame frame, const uint8_t* data, uint32_t length, const RxFrame* stripped, const Offload& offload) {
  AtomicCounts& counts = counts_[frame.tap];
  add_one(counts.seen);
  const bool tag = stripped != nullptr && length >= kAddresses;
  frame.original = length + (tag ? kTag : 0);
  frame.captured = std::min(frame.original, options_.snap_length);
  const uint64_t held = held_now();
  const bool room = ring_.size() - held >= frame.length();
  // A frame that will be dropped whatever it is need not be looked at.
  if (room || options_.kinds != kCaptureAll) {
    PacketMeta meta;
    frame.refusal =
        stripped != nullptr ? weir::classify(data, length, meta, stripped->vlan_tci) : weir::classify(data, length, meta);
    frame.kind = meta.kind;
    frame.is_ip = meta.l3_offset != 0;
    frame.ecn = meta.ecn;
    frame.destination_qp = meta.destination_qp;
    const bool marked = frame.is_ip && frame.ecn == kCongestionExperienced;
    if ((options_.kinds & (kind_bit(frame.kind) | (marked ? kCaptureCe : 0))) == 0) return;
  }
  frame.needs_checksum = offload.needs_checksum;
  frame.segment_size = offload.gso == Gso::none ? 0 : offload.segment_size;
  add_one(counts.wanted);
  if (!room) {
    add_one(counts.dropped);
    return;
  }
  const uint64_t end = filled_ + frame.length();
  put(&frame, sizeof frame);
  if (tag) {
    const std::array<uint8_t, kTag> bytes = {
        static_cast<uint8_t>(stripped->vlan_tpid >> 8), static_cast<uint8_t>(stripped->vlan_tpid),
        static_cast<uint8_t>(stripped->vlan_tci >> 8), static_cast<uint8_t>(stripped->vlan_tci)};
    const uint32_t addresses = std::min(frame.captured, kAddresses);
    const uint32_t tagged = std::min(frame.captured - addresses, kTag);
    put(data, addresses);
    put(bytes.data(), tagged);
    put(data + addresses, frame.captured - addresses - tagged);
  } else {
    put(data, frame.captured);
  }
  constexpr std::array<uint8_t, 8> kPadding{};
  put(kPadding.data(), static_cast<size_t>(end - filled_));
  published_.store(filled_, std::memory_order_release);
}

// The reader writes its word whenever it takes frames: that is looked at only where the last look leaves half a ring or less.
uint64_t Capture::held_now() {
  if (filled_ - taken_ > ring_.size() / 2) taken_ = drained_.load(std::memory_order_acquire);
  return filled_ - taken_;
}

void Capture::put(const void* data, size_t length) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  const size_t at = static_cast<size_t>(filled_ % ring_.size());
  const size_t first = std::min(length, ring_.size() - at);
  if (first > 0) std::memcpy(ring_.data() + at, bytes, first);
  if (length > first) std::memcpy(ring_.data(), bytes + first, length - first);
  filled_ += length;
}

void Capture::copy_out(uint64_t from, std::span<uint8_t> to) const {
  const size_t at = static_cast<size_t>(from % ring_.size());
  const size_t first = std::min(to.size(), ring_.size() - at);
  if (first > 0) std::memcpy(to.data(), ring_.data() + at, first);
  if (to.size() > first) std::memcpy(to.data() + first, ring_.data(), to.size() - first);
}

size_t Capture::drain(std::span<uint8_t> out) {
  const uint64_t begin = drained_.load(std::memory_order_relaxed);
  const uint64_t end = published_.load(std::memory_order_acquire);
  uint64_t at = begin;
  while (at != end) {
    CapturedFrame frame;
    copy_out(at, {reinterpret_cast<uint8_t*>(&frame), sizeof frame});
    if (at + frame.length() - begin > out.size()) break;
    at += frame.length();
  }
  const auto size = static_cast<size_t>(at - begin);
  copy_out(begin, out.first(size));
  drained_.store(at, std::memory_order_release);
  return size;
}

size_t CapturePort::receive(std::span<RxFrame> frames) {
  const size_t count = inner_->receive(frames);
  for (const RxFrame& frame : frames.first(count)) {
    const CapturedFrame captured{
        .stamp = std::max<Time>(frame.stamp - clock_.realtime_offset, 0), .tap = tap_, .direction = FrameDirection::inbound};
    record(captured, frame.data, frame.length, frame.vlan_stripped ? &frame : nullptr, frame.offload);
  }
  return count;
}

Transmitted CapturePort::transmit(std::span<const TxFrame> frames) {
  const Time stamp = std::max<Time>(clock_.now - clock_.realtime_offset, 0);
  const Transmitted done = inner_->transmit(frames);
  for (const TxFrame& frame : frames.first(done.sent)) {
    const CapturedFrame captured{.stamp = stamp, .tap = tap_, .direction = FrameDirection::outbound};
    record(captured, frame.data, frame.length, nullptr, frame.offload);
  }
  return done;
}

void CapturePort::witness(const RxFrame& frame, bool outgoing) {
  const CapturedFrame captured{.stamp = std::max<Time>(frame.stamp - clock_.realtime_offset, 0),
                               .tap = tap_,
                               .direction = outgoing ? FrameDirection::outbound : FrameDirection::inbound};
  record(captured, frame.data, frame.length, frame.vlan_stripped ? &frame : nullptr, frame.offload);
  inner_->witness(frame, outgoing);
}

void CapturePort::miss(uint64_t frames) {
  Capture::AtomicCounts& counts = capture_->counts_[tap_];
  counts.seen.fetch_add(frames, std::memory_order_relaxed);
  counts.wanted.fetch_add(frames, std::memory_order_relaxed);
  counts.dropped.fetch_add(frames, std::memory_order_relaxed);
  inner_->miss(frames);
}

void CapturePort::record(const CapturedFrame& captured, const uint8_t* data, uint32_t length, const RxFrame* stripped,
                         Offload offload) {
  const bool cut = offload.gso == Gso::udp && check_offload(data, length, offload) && is_roce_super_frame(data, offload);
  if (!cut) return capture_->record(captured, data, length, stripped, offload);
  packet_.resize(kMaxSuperFrame);
  for (uint32_t i = 0; i < segment_count(length, offload); ++i) {
    capture_->record(captured, packet_.data(), write_segment(data, length, offload, i, packet_.data()), stripped, {});
  }
}

void insert(std::unique_ptr<PacketPort>& outermost, std::unique_ptr<CapturePort> capture) {
  std::unique_ptr<PacketPort>* place = &outermost;
  while ((*place)->inner() != nullptr) place = (*place)->inner();
  *capture->inner() = std::move(*place);
  *place = std::move(capture);
}

std::unique_ptr<PacketPort> remove(std::unique_ptr<PacketPort>& outermost, const CapturePort* capture) {
  for (std::unique_ptr<PacketPort>* place = &outermost; place != nullptr; place = (*place)->inner()) {
    if (place->get() != capture) continue;
    std::unique_ptr<PacketPort> removed = std::move(*place);
    *place = std::move(*removed->inner());
    return removed;
  }
  return nullptr;
}

}  // namespace weir
