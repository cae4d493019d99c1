// A NIC on the wire: with the agenda that wakes it, and what has left its link.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "endpoint/soft_nic.h"
#include "link/agenda.h"
#include "link/timing_wheel.h"

namespace weir {

struct NicAgenda {
  Agenda<TimingWheel> agenda;
};

// receive...() and advance() first come to what is due by then.
class WireNic : private NicAgenda, public SoftNic {
 public:
  WireNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool,
          CompletionSink* completions = nullptr)
      : NicAgenda{{pool, 1, TimingWheel(wakes(parameters, queue_pairs.size()), kTick)}},
        SoftNic(parameters, queue_pairs, pool, agenda, completions) {}

  Disposition receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal) {
    agenda.run(now, *this);
    return SoftNic::receive(now, data, length, meta, refusal);
  }
  void receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
    agenda.run(now, *this);
    SoftNic::receive_pfc(now, enable, quanta);
  }
  void receive_pause(Time now, uint16_t quanta) {
    agenda.run(now, *this);
    SoftNic::receive_pause(now, quanta);
  }
  void advance(Time now) {
    agenda.run(now, *this);
    SoftNic::advance(now);
    if (queue_pairs().size() >= kMany) fetch_ahead();
  }
  // The frames whose last bit has left by the time reached, one each time, or kNoPacket.
  PacketId transmit() { return agenda.take(0, now()); }
  // When to call advance() next if nothing arrives.
  Time next_deadline() const { return agenda.next_deadline(); }

 private:
  static constexpr Time kTick = 1'024;    // order within a tick is exact
  static constexpr size_t kMany = 2'048;  // queue pairs, of less than 1 KB each, that a cache of the second level has no room for
  static constexpr Time kFetchAhead = 16 * kTick;

  void fetch_ahead() {
    const TimingWheel& wheel = agenda.wakes();
    wheel.look_ahead(fetched_, now() + kFetchAhead, [this](uint32_t what) { fetch(what); });
    wheel.look_ahead(fetched_transports_, now() + kFetchAhead / 2, [this](uint32_t what) { fetch_transport(what); });
  }

  uint64_t fetched_ = 0;
  uint64_t fetched_transports_ = 0;
};

}  // namespace weir
