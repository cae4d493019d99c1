// A switch on the wire, with the agenda that drives it.
#pragma once

#include <utility>

#include "link/agenda.h"
#include "switching/soft_switch.h"
#include "wire/packet_pool.h"

namespace weir {

struct WireSwitch {
  // Parameters are those of SoftSwitch. All queues of its own ports keep their distributions.
  WireSwitch(SwitchParameters parameters, PacketPool& pool, ShardLink* link = nullptr)
      : agenda(pool, static_cast<uint32_t>(parameters.ports.size()),
               WakeHeap(static_cast<uint32_t>(parameters.ports.size()) + 1)),
        // A third is for what is on its way in or out.
        device(std::move(parameters), pool, agenda, pool.size() / 3 * 2, link) {
    for (uint16_t port = 0; port < device.port_count(); ++port) {
      for (int priority = 0; priority < kPriorities && device.owns(port); ++priority)
        device.statistics().keep_distribution(port, priority);
    }
  }

  // All that is due by `now` happens. Must be called before the device is told of anything that happens then.
  void catch_up(Time now) { agenda.run(now, device); }
  // The same, when nothing else happens by then.
  void advance(Time now) {
    catch_up(now);
    device.advance(now);
  }
  // The oldest frame that has left `port` by the time reached, owned by the caller now, or kNoPacket.
  PacketId transmit(uint16_t port) { return agenda.take(port, device.now()); }
  // When to call advance() and transmit() next if nothing arrives.
  Time next_deadline() const { return agenda.next_deadline(); }

  Agenda<WakeHeap> agenda;
  SoftSwitch device;
};

}  // namespace weir
