// The queue pairs of a NIC: those that stream messages, and places for those of applications, which come and go; their numbers,
// their transports, and what these have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/describe.h"
#include "base/types.h"
#include "endpoint/nic_parameters.h"
#include "endpoint/queue_pair.h"
#include "endpoint/reliable_stream.h"
#include "transport/program_link.h"
#include "transport/transport.h"
#include "wire/packet_pool.h"

namespace weir {

// Queue pair of connection management (IBTA volume 1, 3.9.5); 0 and 1 are nobody else's.
inline constexpr uint32_t kGsiQpn = 1;
// Destination of datagrams to a group (IBTA volume 1, 10.5.1), and nobody's either.
inline constexpr uint32_t kMulticastQpn = 0xffffff;

// A queue pair as an application makes it.
struct VerbsQueuePairParameters {
  bool datagram = false;
  bool unreliable = false;
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
  uint32_t program = 0;         // number, from 1, of the process in which its transport runs; 0: this one's
  ProgramLink* link = nullptr;  // link of that program
  // Places of the block that it is to be in (PacketPort::lend()); -1: in none that is lent.
  int block = -1;
  // Of a NIC that has a block of another one's: that one's number for it, and its transport, which is the NIC's from then on.
  uint32_t qpn = 0;
  VerbsTransport* transport = nullptr;
};
void describe(auto& v, Of<VerbsQueuePairParameters> auto& p) {
  v.type("NativeQueuePairOptions", "What an application's queue pair is made with.");
  v("datagram", p.datagram, field::any("UD; else RC."));
  v("unreliable", p.unreliable, field::optional(field::any("UC, of a program; else RC.")));
  v("send_depth", p.send_depth, field::any("Most work requests at a time."));
  v("receive_depth", p.receive_depth, field::any("Most work requests at a time."));
  v("program", p.program, field::optional(field::any("Number of the program in which its transport runs; 0: here.")));
}

class QueuePairTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `streams` have numbers from parameters.first_qpn on, and indexes from 0 on; the places of applications' follow. See SoftNic
  // for the others.
  QueuePairTable(const NicParameters& parameters, const std::vector<QueuePairParameters>& streams, const PacketPool& pool,
                 CompletionSink* completions);
  QueuePairTable(const QueuePairTable&) = delete;
  QueuePairTable& operator=(const QueuePairTable&) = delete;

  QueuePair& operator[](uint32_t index) { return pairs_[index]; }
  const QueuePair& operator[](uint32_t index) const { return pairs_[index]; }
  std::vector<QueuePair>& all() { return pairs_; }
  uint32_t size() const { return size_; }
  uint32_t streams() const { return streams_; }
  // Index of the queue pair of this number.
  uint32_t find(uint32_t qpn) const;
  // The same, of an application's.
  uint32_t find_verbs(uint32_t qpn) const {
    const uint32_t index = find(qpn);
    return index != kNone && pairs_[index].verbs() != nullptr ? index : kNone;
  }
  // Whether frames to this MAC address are for one of them.
  bool ours(uint64_t mac) const { return mac == mac_ || (!own_macs_.empty() && own_macs_.contains(mac)); }

  // Index of a queue pair for an application; kNone when there is no place left.
  uint32_t create(const VerbsQueuePairParameters& parameters);
  // Blocks of places for a program that has a path of its own: numbers in them are its queue pairs' alone. Returns the block's
  // number; -1: there is none that is free. Any NIC with kLentBlocks blocks of places has them, the first half apart.
  int lend_block();
  void take_block_back(int block) { lent_blocks_ = static_cast<uint16_t>(lent_blocks_ & ~(1u << block)); }
  // A program's, which has ended: its peer is told. False when it has none.
  // `told`: PSN that its program had come to, as it said, where its packets went by another path.
  bool abandon(uint32_t index, std::optional<uint32_t> told);
  // Its headers are those of this path from now on.
  void take_path(uint32_t index, const RocePath& path);

  MemoryTable& memory() { return memory_; }
  AddressTable& address_handles() { return address_handles_; }
  TransportCounters& counters() { return counters_; }

 private:
  std::vector<QueuePair> pairs_;
  QueuePair* place_for(const VerbsQueuePairParameters& parameters);
  static bool is_free(const QueuePair& qp) {
    return qp.transport == nullptr && qp.state != QueuePair::State::ready && !qp.answers;
  }

  uint32_t streams_;
  uint32_t size_;
  uint32_t first_qpn_;
  uint16_t lent_blocks_ = 0;  // by bit
  uint64_t mac_;
  bool has_payload_;
  CompletionSink* completions_;
  std::vector<uint32_t> generations_;  // one for each place for queue pairs of applications
  TransportCounters counters_;
  MemoryTable memory_;
  AddressTable address_handles_;
  std::vector<uint8_t> payload_;  // bytes that streams send and receive
  StreamContext stream_context_;
  std::unordered_set<uint64_t> own_macs_;  // those of queue pairs, besides the NIC's
};

}  // namespace weir
