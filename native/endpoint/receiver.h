// The receiving half of a NIC: for whom a frame is, what is refused and counted, and what congestion control hears of it.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "endpoint/nic_events.h"
#include "endpoint/nic_pauses.h"
#include "wire/classify.h"
#include "wire/packet.h"
#include "wire/qcn.h"

namespace weir {

// Place of a packet that arrives among others.
struct InSuperFrame {
  bool follows = false;  // the headers up to the BTH are those of the packet before
  bool more = false;     // another arrives at the same time and comes next; what to send is looked at behind it
};

class Receiver {
 public:
  // punt: the slow path should see this frame; stack: it is for the host's own stack, where the NIC has one.
  enum class Disposition : uint8_t { consumed, punt, stack };

  explicit Receiver(const NicSetup& setup) : events_(setup) {}

  NicEvents& events() { return events_; }
  const NicEvents& events() const { return events_; }

  Disposition receive(Time now, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
                      InSuperFrame place);
  // Hears the news of acknowledgements, or of their absence. `arrived`: when the frame did, which a NIC in arrears
  // (SoftNic::skip_to()) hears of later.
  void hear_acknowledgements(uint32_t index, Time arrived);

 private:
  static constexpr uint32_t kNone = NicState::kNone;

  Flows& flows() { return events_.sender().flows(); }
  NicState& nic() { return flows().nic(); }
  NicPauses pauses() { return NicPauses(nic()); }

  Disposition consume(Time arrived, const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal);
  Disposition consume_next(Time arrived, const uint8_t* frame, uint32_t length, const PacketMeta& meta);
  bool take_in(int priority, uint32_t length);
  void receive_trimmed(Time arrived, const uint8_t* frame, const PacketMeta& meta);
  void receive_cnp(uint32_t index, Time arrived);
  void receive_cnm(const uint8_t* frame, uint32_t length, const PacketMeta& meta, Refusal refusal);
  void receive_cnm_datagram(const uint8_t* frame, const PacketMeta& meta);
  void on_cnm(uint32_t group, const CongestionNotification& cnm);
  void receive_packet(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta);
  void note_congestion(uint32_t index, Time arrived, const uint8_t* frame, const PacketMeta& meta);
  void receive_group(Time arrived, const uint8_t* frame, const PacketMeta& meta);
  bool addresses_fit(const QueuePair& qp, const uint8_t* frame, const PacketMeta& meta);
  void end_receiving();

  NicEvents events_;
};

}  // namespace weir
