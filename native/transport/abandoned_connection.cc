#include "transport/abandoned_connection.h"

#include "transport/aeth.h"
#include "transport/opcode.h"
#include "transport/psn.h"
#include "wire/bth.h"

namespace weir {

bool AbandonedConnection::receive(Time, const uint8_t* frame, const PacketMeta& meta) {
  if (is_response(plain_opcode(meta.opcode))) return ++context_.counters.drop_unexpected_response, false;
  if (!admits(load_bth(frame + meta.bth_offset).partition_key)) return ++context_.counters.drop_partition_key, false;
  if (!certain_) {
    const uint32_t psn = load_bth(frame + meta.bth_offset).psn;
    certain_ = heard_ && psn_distance(psn, *heard_) <= 0;
    if (certain_) unanswered_ = psn;
    if (!heard_) heard_ = psn;
  }
  owed_ = true;
  return true;
}

void AbandonedConnection::take_control(OutgoingPacket& out) {
  owed_ = false;
  ++context_.counters.tx_naks;
  out.header.opcode = kOpcodeRcAcknowledge;
  out.header.destination_qp = attributes_.remote_qpn;
  out.header.psn = unanswered_;
  out.header.partition_key = attributes_.partition_key;
  out.header.aeth.syndrome = kNakRemoteOperation;
}

}  // namespace weir
