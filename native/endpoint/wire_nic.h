// A NIC on the wire: with the agenda that wakes it, and what has left its link.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "endpoint/soft_nic.h"
#include "link/agenda.h"
#include "link/timing_wheel.h"
#include "wire/packet_pool.h"

namespace weir {

// Wakes of flows and transports are in a wheel. Wakes of the NIC for itself, which is the last entry, change with every frame:
// they are beside the wheel, and come behind all that is due at the same time.
class NicWakes {
 public:
  explicit NicWakes(uint32_t entries) : itself_(entries - 1), wheel_(itself_, kTick) {}
  void schedule(uint32_t entry, Time at) {
    if (entry == itself_) {
      itself_at_ = at;
    } else {
      wheel_.schedule(entry, at);
    }
  }
  Time next_deadline() const { return std::min(itself_at_, wheel_.next_deadline()); }
  template <class Visit>
  void each_due(Time now, Visit visit) {
    for (;;) {
      const uint32_t entry = wheel_.pop_due(std::min(now, itself_at_));
      if (entry != TimingWheel::kNone) {
        visit(entry, wheel_.at(entry));
      } else if (itself_at_ <= now) {
        visit(itself_, std::exchange(itself_at_, kNever));
      } else {
        return;
      }
    }
  }
  const TimingWheel& wheel() const { return wheel_; }

 private:
  static constexpr Time kTick = 1'024;  // order within a tick is exact

  uint32_t itself_;
  Time itself_at_ = kNever;
  TimingWheel wheel_;
};

struct NicAgenda {
  Agenda<NicWakes> agenda;
};

// receive...() and advance() first come to what is due by then.
class WireNic : private NicAgenda, public SoftNic {
 public:
  WireNic(const NicParameters& parameters, const std::vector<QueuePairParameters>& queue_pairs, PacketPool& pool,
          CompletionSink* completions = nullptr)
      : NicAgenda{{pool, 1, NicWakes(wakes(parameters, queue_pairs.size()))}},
        SoftNic(parameters, queue_pairs, pool, agenda, completions) {}

  Disposition receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
                      InSuperFrame place = {}) {
    if (!place.follows) agenda.run(now, *this);
    return SoftNic::receive(now, data, length, meta, refusal, place);
  }
  void receive_pfc(Time now, uint8_t enable, const std::array<uint16_t, kPriorities>& quanta) {
    agenda.run(now, *this);
    SoftNic::receive_pfc(now, enable, quanta);
  }
  void receive_pause(Time now, uint16_t quanta) {
    agenda.run(now, *this);
    SoftNic::receive_pause(now, quanta);
  }
  void send_for_stack(Time now, PacketId id) {
    agenda.run(now, *this);
    SoftNic::send_for_stack(now, id);
  }
  void post(Time now, uint32_t index, uint32_t word, uint64_t bytes) {
    agenda.run(now, *this);
    SoftNic::post(now, index, word, bytes);
  }
  void advance(Time now) {
    agenda.run(now, *this);
    SoftNic::advance(now);
  }
  // The agenda calls this. The data of the next wake are fetched meanwhile.
  void wake(uint32_t what, Time at) {
    fetch_ahead(at);
    SoftNic::wake(what, at);
  }
  // The frames whose last bit has left by the time reached, one each time, or kNoPacket.
  PacketId transmit() {
    seal();
    return agenda.take(0, now());
  }
  // When to call advance() next if nothing arrives.
  Time next_deadline() const { return agenda.next_deadline(); }

 private:
  // Some ten packets of a NIC that is as busy as it can be: a cache of the first level has room for what they need.
  static constexpr Time kFetchAhead = 4'096;

  // However few queue pairs there are, frames have driven what they need from that cache.
  void fetch_ahead(Time at) {
    const TimingWheel& wheel = agenda.wakes().wheel();
    wheel.look_ahead(fetched_, at + kFetchAhead, [this](uint32_t what) { state().fetch_flow(what); });
    wheel.look_ahead(fetched_transports_, at + kFetchAhead / 2, [this](uint32_t what) { state().fetch_transport(what); });
  }

  uint64_t fetched_ = 0;
  uint64_t fetched_transports_ = 0;
};

}  // namespace weir
