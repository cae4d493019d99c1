// Pauses (PFC): what a switch is told by its peers, and tells them.
#include <array>
#include <bit>

#include "switching/soft_switch.h"

namespace weir {
namespace {

constexpr uint8_t kAllPriorities = 0xff;

}  // namespace

void SoftSwitch::receive_pfc(Time now, uint16_t in, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
  ++ports_[in].counters.rx_pfc_frames;
  obey(now, ports_[in], enable, parameters_.pfc_priorities, quanta);
}

void SoftSwitch::receive_pause(Time now, uint16_t in, uint16_t quanta) {
  std::array<uint16_t, kPriorities> all;
  all.fill(quanta);
  ++ports_[in].counters.rx_pause_frames;
  obey(now, ports_[in], kAllPriorities, kAllPriorities, all);
}

void SoftSwitch::obey(Time now, Port& port, uint8_t enable, uint8_t obeyed, const std::array<uint16_t, kPriorities>& quanta) {
  advance(now);
  for (int p = 0; p < kPriorities; ++p) {
    if ((enable >> p & 1) == 0) continue;
    ++port.egress.queue(p).counters.pfc_rx_packets;
    if ((obeyed >> p & 1) == 0) continue;
    port.egress.pause.apply(p, quanta[static_cast<size_t>(p)], now_, port.egress.parameters().rate);
  }
  go_on(port);
}

void SoftSwitch::end_pauses(Time now, uint16_t number) {
  advance(now);
  Port& port = ports_[number];
  stopped_ -= static_cast<uint32_t>(std::popcount(port.egress.pfc.stopped_mask()));
  port.egress.pfc.clear(now_);
  for (int p = 0; p < kPriorities; ++p) port.egress.pause.apply(p, 0, now_, port.egress.parameters().rate);
  go_on(port);
}

// A frame was dropped that found neither room nor headroom, so its sender should be stopped, if it is not. But not if nothing is
// held of it: a frame that is longer than both would never come in, and nothing would ever leave that lets its sender go on.
void SoftSwitch::stop_for_want_of_headroom(Port& in, int priority) {
  if (!buffer_.below_xon(in.number(), priority)) stop_peer(in, priority);
}

void SoftSwitch::stop_peer(Port& in, int priority) {
  if (in.egress.pfc.stopped(priority)) return;
  in.egress.pfc.stop(priority, now_);
  ++stopped_;
  ++in.egress.queue(priority).counters.pfc_tx_transitions;
  go_on(in);
}

// What leaves one queue raises the dynamic threshold of every ingress, so all that are stopped are looked at.
void SoftSwitch::resume_peers() {
  for (Port& port : ports_) {
    for (uint8_t left = port.egress.pfc.stopped_mask(); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      const int priority = __builtin_ctz(left);
      if (!buffer_.below_xon(port.number(), priority)) continue;
      resume(port, priority);
      // An idle link sends it at once, but when it is woken: serve() must not be entered again from here.
      schedule(port, port.egress.free_at(now_));
    }
  }
}

void SoftSwitch::resume(Port& port, int priority) {
  port.egress.pfc.resume(priority, now_);
  --stopped_;
}

PacketId SoftSwitch::make_pfc(Port& out) {
  const PacketId id = pool_.allocate();
  if (id == kNoPacket) return id;  // stays owed, tried again at the next event of the port
  Packet& packet = pool_[id];
  packet.reset();
  packet.meta.kind = FrameKind::pfc;
  packet.meta.source_mac = out.egress.parameters().mac;
  packet.ingress_port = kNoIngress;
  packet.length = kMinimumFrame;
  packet.pfc_enable = out.egress.pfc.take(now_, packet.pfc_xoff);
  return id;
}

}  // namespace weir
