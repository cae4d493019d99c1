// Samples of a queue pair (base/record.h).
#pragma once

#include <cstdint>

#include "base/record.h"
#include "endpoint/soft_nic.h"

namespace weir {

// Samples queue pair `index` of `nic` as a sender; `device` and `number` are those of the record.
inline Record sample_sender(SoftNic& nic, uint32_t index, Time at, uint16_t device, uint32_t number) {
  const NicObservation::SenderSample sender = nic.observation().sender_sample(index, at);
  return {at, Record::Kind::transmit, device, number, {sender.rate, sender.target_rate, sender.alpha, sender.window}};
}

inline Record sample_receiver(const QpCounters& counters, Time at, uint16_t device, uint32_t number) {
  return {at,
          Record::Kind::receive,
          device,
          number,
          {static_cast<double>(counters.rx_bytes), static_cast<double>(counters.rx_wire_bytes),
           static_cast<double>(counters.cnp_sent), static_cast<double>(counters.lost)}};
}

}  // namespace weir
