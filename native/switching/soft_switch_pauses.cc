// Pauses (PFC): what a switch is told by its peers, and tells them.
#include <array>
#include <bit>
#include <memory>

#include "switching/soft_switch.h"

namespace weir {
namespace {

constexpr uint8_t kAllPriorities = 0xff;

}  // namespace

void SoftSwitch::receive_pfc(Time now, uint16_t in, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
  ++ports_[in].counters.rx_pfc_frames;
  obey(now, ports_[in], enable, parameters_.link_pause ? uint8_t{0} : parameters_.pfc_priorities, quanta);
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
    const uint16_t asked = quanta[static_cast<size_t>(p)];
    if (port.watchdog && asked > 0) port.watchdog->asked(now_, p);
    if (port.watchdog && (port.watchdog->ignoring() >> p & 1) != 0) continue;
    port.egress.pause.apply(p, asked, now_, port.egress.parameters().rate);
  }
  go_on(port);
  if (port.watchdog) watch(port);
}

void SoftSwitch::configure_watchdog(Port& port) {
  if (parameters_.pfc_watchdog.detection_time == 0) {
    port.watchdog.reset();
  } else if (port.watchdog) {
    port.watchdog->configure(parameters_.pfc_watchdog);
  } else {
    port.watchdog = std::make_unique<PfcWatchdog>(parameters_.pfc_watchdog);
  }
  port.egress.set_closed(port.watchdog ? port.watchdog->dropping() : uint8_t{0});
  port.egress.watch(port.watchdog ? port.watchdog->next() : kNever);
}

// Carries out the watchdog's verdict on the port's queues.
void SoftSwitch::watch(Port& port) {
  EgressPort& egress = port.egress;
  PfcWatchdog::Queues queues{.paused = static_cast<uint8_t>(egress.pause.paused_mask() & parameters_.pfc_priorities),
                             .backlogged = egress.backlogged_mask()};
  for (int p = 0; p < kPriorities; ++p) queues.sent[static_cast<size_t>(p)] = egress.queue(p).counters.queue_packets;
  const PfcWatchdog::Verdict verdict = port.watchdog->look(now_, queues);
  egress.watch(port.watchdog->next());
  egress.set_closed(port.watchdog->dropping());
  for (int p = 0; p < kPriorities; ++p) {
    if ((verdict.detected >> p & 1) != 0) begin_storm(port, p);
    if ((verdict.restored >> p & 1) != 0) ++egress.queue(p).counters.pfc_wd_storm_restored;
  }
  go_on(port);
}

void SoftSwitch::begin_storm(Port& port, int priority) {
  EgressPort& egress = port.egress;
  EgressPort::Queue& queue = egress.queue(priority);
  ++queue.counters.pfc_wd_storm_detected;
  if ((port.watchdog->ignoring() >> priority & 1) != 0) egress.pause.apply(priority, 0, now_, egress.parameters().rate);
  if (!egress.closed(priority)) return;
  queue.note_length(now_, buffer_.egress_bytes(port.number(), priority), keeps_all_);
  while (!queue.packets.empty()) {
    const PacketId id = egress.pop(pool_, priority);
    const Packet& packet = pool_[id];
    const uint32_t frames = carried_frames(packet);
    queue.counters.pfc_wd_tx_drop += frames;
    release(packet, port, Admission::pfc_storm);
    discard(id);
  }
  check_xon();
}

void SoftSwitch::end_pauses(Time now, uint16_t number) {
  advance(now);
  Port& port = ports_[number];
  stopped_ -= static_cast<uint32_t>(std::popcount(port.egress.pfc.stopped_mask()));
  port.egress.pfc.clear(now_);
  for (int p = 0; p < kPriorities; ++p) port.egress.pause.apply(p, 0, now_, port.egress.parameters().rate);
  go_on(port);
}

// A frame was dropped that found neither room nor headroom, so its sender should be stopped, if it is not. It is not stopped if
// none of its frames is held: a frame that is longer than both would never come in, and nothing would ever leave that lets its
// sender go on.
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

// A frame that leaves one queue raises the dynamic threshold of every ingress, so all that are stopped are looked at.
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
  out.egress.pfc.make(now_, out.egress.parameters().mac, pool_[id]);
  pool_[id].ingress_port = kNoIngress;
  return id;
}

}  // namespace weir
