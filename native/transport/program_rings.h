// The memory that a program's library and the NIC's daemon share: packets on their way out and frames on their way in. The
// transport runs in the program; the daemon owns the port, builds all headers below the BTH and believes nothing that it reads
// here.
//
//   program                                                     daemon
//   writes packets[slot], then submitted  ----------------->    takes a private copy of the packet, sends when congestion
//                                                               control, pause and its scheduler allow, reading the payload then
//   may use the slot again                <-- returned -----    has sent it, or refused it
//   takes frames in order                 <-- frames -------    has checked ICRC, addresses and queue pair
//
// Each index is written by one side. A side that is about to sleep says so and looks once more; the side that adds something
// wakes it: the daemon a program by the futex `bell`, for which no descriptor can be spoilt; a program the daemon by its eventfd.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/counters.h"
#include "wire/bth.h"
#include "wire/packet.h"
#include "wire/roce_builder.h"

namespace weir {

inline constexpr uint32_t kProgramLayout = 10;     // changes with all that is here
inline constexpr uint32_t kProgramPackets = 1024;  // this and the next two are powers of two
// Frames take the room that they need, so that windows of eight reliable connections fit (kDefaultWindowBytes), whatever their
// path MTU. A program that keeps up has all of its frames at the beginning: the rest is touched by nobody.
inline constexpr uint32_t kProgramFrames = 1 << 15;
inline constexpr uint32_t kProgramRoom = 16 << 20;
inline constexpr uint32_t kProgramPayload = 4096;
inline constexpr uint32_t kProgramFrameBytes = 4352;  // bytes of one frame, at most

// The daemon's data of a packet. They are whole numbers only: whatever is written there is a value.
struct ProgramPacket {
  static constexpr uint8_t kAckRequest = 1 << 0;
  static constexpr uint8_t kSolicited = 1 << 1;
  static constexpr uint8_t kBecn = 1 << 2;
  // It is no packet: requests of its queue pair that wait to leave are of no use any more.
  static constexpr uint8_t kWithdrawal = 1 << 3;

  uint32_t qpn = 0;
  uint32_t payload_bytes = 0;
  uint32_t destination_qp = 0;  // UD; else the queue pair's peer
  uint32_t address_handle = 0;  // UD
  uint32_t queue_key = 0;       // UD
  uint32_t psn = 0;
  uint32_t immediate = 0;
  uint8_t opcode = 0;
  uint8_t flags = 0;
  Aeth aeth;
  Reth reth;
  AtomicEth atomic;
  uint64_t atomic_original = 0;
};

struct ProgramPacketSlot {
  ProgramPacket packet;
  alignas(64) uint8_t payload[kProgramPayload];
};

// Its bytes are behind it.
struct ProgramFrame {
  PacketMeta meta;
  uint32_t length = 0;
  uint32_t reads = 0;  // READ packets that may be expected in flight of its queue pair: see Transport::limit()

  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this + 1); }
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(this + 1); }
};
inline constexpr uint32_t kProgramFramePlace = 64;  // each begins at a multiple

// A queue pair of a program that has a path of its own, as its NIC there tells of it: numbers, which the daemon believes as far
// as they are about that program.
struct LentPairNews {
  static constexpr int kCounters = 16;
  std::atomic<uint32_t> qpn;
  std::atomic<uint32_t> expected;  // PSN
  std::atomic<uint32_t> state;     // QueuePair::State
  std::atomic<uint32_t> stage;     // IncreaseStage
  std::atomic<uint32_t> limited;   // by congestion control
  std::atomic<uint64_t> rate;      // bit/s
  std::atomic<uint64_t> target_rate;
  std::atomic<double> alpha;
  std::atomic<double> window;
  std::atomic<uint64_t> counted[kCounters];  // QpCounters
};

// What that NIC has counted.
struct LentNews {
  static constexpr int kCounters = 256;
  LentPairNews pairs[1 << kLentBlockShift];
  std::atomic<uint64_t> counted[kCounters];  // sets of counters, one behind the other (engine/lent_news.h)
};

struct ProgramMemory {
  using Word = std::atomic<uint32_t>;
  static_assert(Word::is_always_lock_free);

  uint32_t layout;
  // The program writes these.
  alignas(64) Word submitted_written;
  Word returned_read;
  Word frames_read;
  Word program_sleeps;
  Word returned_wanted;                                      // a sleeping program is not woken for slots before this index
  std::atomic<uint64_t> counted[TransportCounters::kCount];  // counters of its transports
  LentNews lent;
  // The daemon writes these.
  alignas(64) Word submitted_read;
  Word returned_written;
  Word nic_sleeps;
  Word ended;    // the daemon serves no more
  Word watches;  // congestion control holds requests of connections: READs are asked for little by little from the first on
  Word links;    // times that the link went down or came back: it is down while this is odd
  Word gids;     // times that the table of GIDs has changed
  Word mtu;      // largest path MTU, bytes; 0: that of the answer to hello
  Word paths;    // times that what the daemon's NIC is like has changed, for a program with a path of its own
  Word holds;    // the NIC holds the wire back until the program has taken frames, and wants to hear of it
  alignas(64) Word frames_written;
  Word bell;
  alignas(64) Word submitted[kProgramPackets];
  Word returned[kProgramPackets];
  ProgramPacketSlot packets[kProgramPackets];
  Word places[kProgramFrames];  // places of frames, from the beginning of the room
  alignas(kProgramFramePlace) uint8_t room[kProgramRoom];

  ProgramFrame& frame(uint32_t index) {
    return reinterpret_cast<ProgramFrame&>(room[places[index % kProgramFrames].load(std::memory_order_relaxed) % kProgramRoom]);
  }
};

}  // namespace weir
