#include "switching/pauses.h"

#include <bit>
#include <memory>

#include "switching/traffic_manager.h"
#include "wire/carried.h"

namespace weir {
namespace {

constexpr uint8_t kAllPriorities = 0xff;

}  // namespace

void Pauses::receive_pfc(Time now, uint16_t in, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
  ++state_.ports[in].counters.rx_pfc_frames;
  obey(now, state_.ports[in], enable, state_.parameters.link_pause ? uint8_t{0} : state_.parameters.pfc_priorities, quanta);
}

void Pauses::receive_pause(Time now, uint16_t in, uint16_t quanta) {
  std::array<uint16_t, kPriorities> all;
  all.fill(quanta);
  ++state_.ports[in].counters.rx_pause_frames;
  obey(now, state_.ports[in], kAllPriorities, kAllPriorities, all);
}

void Pauses::obey(Time now, SwitchPort& port, uint8_t enable, uint8_t obeyed, const std::array<uint16_t, kPriorities>& quanta) {
  state_.advance(now);
  for (int p = 0; p < kPriorities; ++p) {
    if ((enable >> p & 1) == 0) continue;
    ++port.egress.queue(p).counters.pfc_rx_packets;
    if ((obeyed >> p & 1) == 0) continue;
    const uint16_t asked = quanta[static_cast<size_t>(p)];
    if (port.watchdog && asked > 0) port.watchdog->asked(state_.now, p);
    if (port.watchdog && (port.watchdog->ignoring() >> p & 1) != 0) continue;
    port.egress.pause.apply(p, asked, state_.now, port.egress.parameters().rate);
  }
  traffic_.serve_and_reschedule(port);
  if (port.watchdog) run_watchdog(port);
}

void Pauses::configure(SwitchPort& port) {
  if (state_.parameters.pfc_watchdog.detection_time == 0) {
    port.watchdog.reset();
  } else if (port.watchdog) {
    port.watchdog->configure(state_.parameters.pfc_watchdog);
  } else {
    port.watchdog = std::make_unique<PfcWatchdog>(state_.parameters.pfc_watchdog);
  }
  port.egress.set_closed(port.watchdog ? port.watchdog->dropping() : uint8_t{0});
  port.egress.watch(port.watchdog ? port.watchdog->next() : kNever);
}

// Carries out the watchdog's verdict on the port's queues. Most ports have none, and this is kept out of the way of their wakes.
__attribute__((noinline)) void Pauses::run_watchdog(SwitchPort& port) {
  EgressPort& egress = port.egress;
  PfcWatchdog::Queues queues{.paused = static_cast<uint8_t>(egress.pause.paused_mask() & state_.parameters.pfc_priorities),
                             .backlogged = egress.backlogged_mask()};
  for (int p = 0; p < kPriorities; ++p) queues.sent[static_cast<size_t>(p)] = egress.queue(p).counters.queue_packets;
  const PfcWatchdog::Verdict verdict = port.watchdog->look(state_.now, queues);
  egress.watch(port.watchdog->next());
  egress.set_closed(port.watchdog->dropping());
  for (int p = 0; p < kPriorities; ++p) {
    if ((verdict.detected >> p & 1) != 0) begin_storm(port, p);
    if ((verdict.restored >> p & 1) != 0) ++egress.queue(p).counters.pfc_wd_storm_restored;
  }
  traffic_.serve_and_reschedule(port);
}

void Pauses::begin_storm(SwitchPort& port, int priority) {
  EgressPort& egress = port.egress;
  EgressPort::Queue& queue = egress.queue(priority);
  ++queue.counters.pfc_wd_storm_detected;
  if ((port.watchdog->ignoring() >> priority & 1) != 0) egress.pause.apply(priority, 0, state_.now, egress.parameters().rate);
  if (!egress.closed(priority)) return;
  queue.note_length(state_.now, state_.buffer.egress_bytes(port.number(), priority), state_.keeps_all);
  while (!queue.packets.empty()) {
    const PacketId id = egress.pop(state_.pool, priority);
    const Packet& packet = state_.pool[id];
    const uint32_t frames = carried_frames(packet);
    queue.counters.pfc_wd_tx_drop += frames;
    traffic_.release(packet, port, Admission::pfc_storm);
    state_.discard(id);
  }
  check_xon();
}

void Pauses::end(Time now, uint16_t number) {
  state_.advance(now);
  SwitchPort& port = state_.ports[number];
  state_.stopped -= static_cast<uint32_t>(std::popcount(port.egress.pfc.stopped_mask()));
  port.egress.pfc.clear(state_.now);
  for (int p = 0; p < kPriorities; ++p) port.egress.pause.apply(p, 0, state_.now, port.egress.parameters().rate);
  traffic_.serve_and_reschedule(port);
}

// A frame was dropped that found neither room nor headroom, so its sender should be stopped, if it is not. It is not stopped if
// none of its frames is held: a frame that is longer than both would never come in, and nothing would ever leave that lets its
// sender go on.
void Pauses::stop_for_want_of_headroom(SwitchPort& in, int priority) {
  if (!state_.buffer.below_xon(in.number(), priority)) stop_peer(in, priority);
}

void Pauses::stop_peer(SwitchPort& in, int priority) {
  if (in.egress.pfc.stopped(priority)) return;
  in.egress.pfc.stop(priority, state_.now);
  ++state_.stopped;
  ++in.egress.queue(priority).counters.pfc_tx_transitions;
  traffic_.serve_and_reschedule(in);
}

// A frame that leaves one queue raises the dynamic threshold of every ingress, so all that are stopped are looked at.
void Pauses::resume_peers() {
  for (SwitchPort& port : state_.ports) {
    for (uint8_t left = port.egress.pfc.stopped_mask(); left != 0; left = static_cast<uint8_t>(left & (left - 1))) {
      const int priority = __builtin_ctz(left);
      if (!state_.buffer.below_xon(port.number(), priority)) continue;
      resume(port, priority);
      // An idle link sends it at once, but when it is woken: TrafficManager::serve() must not be entered again from here.
      state_.schedule(port, port.egress.free_at(state_.now));
    }
  }
}

void Pauses::resume_lossy(SwitchPort& port) {
  for (uint8_t left = port.egress.pfc.stopped_mask() & ~state_.parameters.pfc_priorities; left != 0;
       left = static_cast<uint8_t>(left & (left - 1))) {
    resume(port, __builtin_ctz(left));
  }
}

void Pauses::resume(SwitchPort& port, int priority) {
  port.egress.pfc.resume(priority, state_.now);
  --state_.stopped;
}

PacketId Pauses::make_frame(SwitchPort& out) {
  const PacketId id = state_.pool.allocate();
  if (id == kNoPacket) return id;  // stays owed, tried again at the next event of the port
  out.egress.pfc.make(state_.now, out.egress.parameters().mac, state_.pool[id]);
  state_.pool[id].ingress_port = kNoIngress;
  return id;
}

}  // namespace weir
