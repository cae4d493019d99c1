#include "transport/datagram.h"

#include <cstring>

#include "wire/ip.h"

namespace weir {
namespace {

uint8_t opcode_of(const SendWork& work) {
  return work.opcode == WorkOpcode::send ? kOpcodeUdSendOnly : kOpcodeUdSendOnlyImmediate;
}

}  // namespace

void Datagram::enter(QueuePairState from, const QueueAttributes& attributes) {
  attributes_ = attributes;
  if (from == QueuePairState::rts) return;
  if (state_ == QueuePairState::rts) psn_ = attributes.send_psn & kPsnMask;
}

// A datagram that nobody waits for is dropped, as the service allows; it was valid all the same.
bool Datagram::receive(Time, const uint8_t* frame, const PacketMeta& meta) {
  if (!may_receive()) return ++context_.counters.drop_wrong_state, false;
  if (fails_by(meta)) return true;
  const uint8_t* packet = frame + meta.bth_offset;
  const Bth bth = load_bth(packet);
  if (!admits(bth.partition_key)) return ++context_.counters.drop_partition_key, false;
  const Deth deth = load_deth(packet + kBthHeader);
  if (deth.queue_key != attributes_.queue_key) return ++context_.counters.drop_queue_key, false;
  const uint32_t bytes = kGrhBytes + meta.payload_length;
  if (receives_.empty() || receives_.front().length < bytes) return ++context_.counters.drop_datagram, true;
  const ReceiveWork& work = receives_.front();
  uint8_t network[kGrhBytes] = {};
  const bool ipv6 = meta.ip_version == 6;
  const uint32_t header = ipv6 ? kIpv6Header : kIpv4Header;
  std::memcpy(network + kGrhBytes - header, frame + meta.l3_offset, header);
  const uint32_t headers = kBthHeader + extension_length(bth.opcode);
  const auto write = [&](uint32_t offset, const uint8_t* from, uint32_t length) {
    return context_.memory.write(work.local_key, attributes_.domain, work.local_address + offset, from, length);
  };
  if (!write(0, network, kGrhBytes) || (meta.payload_length > 0 && !write(kGrhBytes, packet + headers, meta.payload_length))) {
    receives_.retire({.status = WorkStatus::local_protection_error}, qpn_, context_.completions);
    return fail(WorkStatus::success), true;
  }
  const bool immediate = bth.opcode == kOpcodeUdSendOnlyImmediate;
  receives_.retire({.flags = static_cast<uint8_t>(kWithGrh | (ipv6 ? kWithIpv6 : 0) | (immediate ? kWithImmediate : 0)),
                    .bytes = bytes,
                    .immediate = immediate ? load_be32(packet + kBthHeader + kDethHeader) : 0,
                    .source_qpn = deth.source_qp,
                    .solicited = bth.solicited},
                   qpn_, context_.completions);
  received_.count(meta.payload_length, headers + meta.payload_length + meta.pad_count, true);
  return true;
}

uint32_t Datagram::data_bytes() const {
  if (state_ != QueuePairState::rts || !more() || !begins()) return 0;
  return packet_length(opcode_of(work()), work().length);
}

bool Datagram::take_data(Time, OutgoingPacket& out) {
  const SendWork& work = this->work();
  out.address_handle = work.address_handle;
  if (context_.addresses != nullptr) {
    out.headers = context_.addresses->find(work.address_handle);
    if (out.headers == nullptr) return refuse_message(WorkStatus::local_operation_error), false;
  }
  if (work.length > attributes_.path_mtu) return refuse_message(WorkStatus::local_length_error), false;
  if (work.length > 0) {
    out.payload = context_.memory.read(work.local_key, attributes_.domain, work.local_address, work.length);
    if (out.payload == nullptr) return refuse_message(WorkStatus::local_protection_error), false;
  }
  out.payload_bytes = work.length;
  out.header.opcode = opcode_of(work);
  out.header.destination_qp = work.remote_qpn;
  out.header.partition_key = attributes_.partition_key;
  out.header.psn = psn_;
  out.header.solicited = (work.flags & kSolicited) != 0;
  out.header.deth = {work.queue_key, qpn_};
  out.header.immediate = work.immediate;
  psn_ = psn_add(psn_, 1);
  take_whole();
  return true;
}

}  // namespace weir
