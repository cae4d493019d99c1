// The daemon's end of a program's queue pair, with a program at the other that writes what it likes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "test/transport_harness.h"
#include "transport/opcode.h"
#include "transport/program_link.h"

namespace weir::test {

struct Nobody : CompletionSink {
  void complete(const Completion&) override {}
};

inline constexpr uint32_t kQpn = 40;
inline constexpr uint32_t kPeer = 41;

struct Linked {
  using Service = RelayedTransport::Service;
  explicit Linked(Service service = Service::connection)
      : relayed(kQpn, {.memory = regions, .completions = nobody, .counters = counters, .addresses = &addresses}, link, service) {
    attributes.remote_qpn = kPeer;
    attributes.path_mtu = 1'024;
    attributes.partition_key = 0x8001;
  }
  void connect() {
    for (QueuePairState to : {QueuePairState::init, QueuePairState::rtr, QueuePairState::rts}) relayed.modify(to, attributes);
  }
  ProgramPacket& packet(uint32_t slot) { return memory->packets[slot].packet; }
  void submit(uint32_t slot) {
    memory->submitted[written++ % kProgramPackets] = slot;
    memory->submitted_written = written;
  }
  // A WRITE of a few bytes that say where they are from.
  void submit_write(uint32_t slot, uint32_t qpn = kQpn) {
    packet(slot) = {.qpn = qpn, .payload_bytes = 5, .destination_qp = 99, .psn = slot, .opcode = kOpcodeRcWriteOnly};
    memory->packets[slot].payload[0] = static_cast<uint8_t>(slot);
    submit(slot);
  }
  std::vector<uint32_t> take() {
    std::vector<uint32_t> told;
    link.take(counters, [&](uint32_t qpn) { told.push_back(qpn); });
    return told;
  }
  uint32_t returned() const { return memory->returned_written; }

  std::unique_ptr<ProgramMemory> memory = std::make_unique<ProgramMemory>();
  ProgramLink link{*memory};
  MemoryTable regions{4};
  Nobody nobody;
  TransportCounters counters;
  AddressTable addresses;
  QueueAttributes attributes;
  RelayedTransport relayed;
  uint32_t written = 0;
};

}  // namespace weir::test
