#include "engine/stack_port.h"

#include <algorithm>

#include "engine/kept_frame.h"
#include "engine/open_port.h"
#include "wire/carried.h"
#include "wire/classify.h"
#include "wire/mac_control.h"
#include "wire/qcn.h"
#include "wire/segmentation.h"

namespace weir {

StackPort::StackPort(const NicDeviceConfig& config, WirePort& port, const WirePort& link, WireNic& nic, PacketPool& pool)
    : port_(port),
      link_(link),
      nic_(nic),
      pool_(pool),
      link_finishes_(passes_offloads(config.port)),
      stack_finishes_(passes_offloads(*config.stack_port)) {}

void StackPort::accept() {
  if (const auto dropped = send(port_.front()); dropped != nullptr) {
    ++nic_.counters().stack_tx_packets;
    ++(nic_.counters().*dropped);
  }
  port_.pop();
}

// Null; else what counts such as it is not sent.
uint64_t NicCounters::*StackPort::send(const RxFrame& frame) {
  const KeptFrame kept = keep_frame(frame, pool_);
  if (kept.id == kNoPacket) {
    return kept.why == Unfit::no_descriptor ? &NicCounters::drop_stack_no_descriptor : &NicCounters::drop_stack_refused;
  }
  Packet& packet = pool_[kept.id];
  classify(pool_.data(kept.id), packet.length, packet.meta);
  const uint32_t longest = packet.offload.largest_segment(packet.length);
  const uint32_t header = kEthernetHeader + (packet.meta.tagged ? kVlanTag : 0);
  uint64_t NicCounters::*dropped = nullptr;
  // A CNM in UDP is a datagram as any where this NIC does not hear of congestion so.
  const bool cnm =
      packet.meta.ethertype == kEthertypeCnm || (packet.meta.kind == FrameKind::cnm && nic_.state().hears_cnm_datagrams());
  if (is_mac_control(packet.meta.kind) || cnm) {
    dropped = &NicCounters::drop_stack_control;
  } else if (longest > pool_.room() || (link_.mtu() != 0 && longest > link_.mtu() + header)) {
    dropped = &NicCounters::drop_stack_mtu_exceeded;
  } else if (packet.offload.gso == Gso::none && packet.offload.pending() && !link_finishes_) {
    if (!complete_checksum(pool_.data(kept.id), packet.length, packet.offload)) dropped = &NicCounters::drop_stack_refused;
    packet.offload = {};
  }
  if (dropped != nullptr) {
    pool_.free(kept.id);
  } else {
    nic_.send_for_stack(frame.stamp, kept.id);
  }
  return dropped;
}

void StackPort::deliver(const RxFrame& frame, const PacketMeta& meta) {
  const KeptFrame kept = keep_frame(frame, pool_);
  if (kept.why == Unfit::no_descriptor) return void(++nic_.counters().drop_stack_rx_no_descriptor);
  if (kept.why != Unfit::none) return void(++nic_.counters().drop_malformed);
  pool_[kept.id].meta = meta;
  hand_over(kept.id);
}

// It arrives as the frames that it stands for.
void StackPort::deliver_super_frame(const RxFrame& frame) {
  NicCounters& counters = nic_.counters();
  const KeptFrame kept = keep_frame(frame, pool_);
  if (kept.id == kNoPacket) {
    ++counters.rx_packets;
    counters.rx_bytes += frame.length;
    ++(kept.why == Unfit::no_descriptor ? counters.drop_stack_rx_no_descriptor : counters.drop_malformed);
    return;
  }
  const Packet whole = pool_[kept.id];
  const uint32_t count = carried_frames(whole);
  const bool fits = whole.offload.largest_segment(whole.length) <= pool_.room();
  for (uint32_t i = 0; i < count; ++i) {
    const PacketId id = fits ? pool_.allocate() : kNoPacket;
    if (id == kNoPacket) {
      counters.rx_packets += count - i;
      counters.drop_stack_rx_no_descriptor += count - i;
      break;
    }
    Packet& segment = pool_[id];
    segment.reset();
    segment.length = write_segment(pool_.data(kept.id), whole.length, whole.offload, i, pool_.data(id));
    const Refusal refusal = classify(pool_.data(id), segment.length, segment.meta);
    const auto whose = nic_.receive(frame.stamp, pool_.data(id), segment.length, segment.meta, refusal, {.more = i + 1 < count});
    if (whose == SoftNic::Disposition::stack) {
      hand_over(id);
    } else {
      pool_.free(id);
    }
  }
  pool_.free(kept.id);
}

// A stack does not know CN-TAGs.
void StackPort::hand_over(PacketId id) {
  Packet& packet = pool_[id];
  if (port_.unsent_bytes() > kMostUnsent) {
    ++nic_.counters().drop_stack_rx_full;
    return pool_.free(id);
  }
  remove_cn_tag(pool_, id);
  if (packet.offload.pending() && !stack_finishes_) {
    complete_checksum(pool_.data(id), packet.length, packet.offload);
    packet.offload = {};
  }
  port_.send(pool_, id);
}

void StackPort::flush(Time now) {
  port_.give_back();
  if (port_.unsent() == 0) return;
  NicCounters& counters = nic_.counters();
  port_.flush(
      pool_, now, [&](PacketId) { ++counters.stack_rx_packets; },
      [&](PacketId, bool down) {
        if (down) ++counters.drop_stack_rx_down;
      });
}

}  // namespace weir
