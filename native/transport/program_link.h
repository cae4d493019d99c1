// The daemon's end of the memory that it shares with a program (transport/program_rings.h), and the transport that stands for a
// queue pair whose own transport runs there. To the NIC it is like any other: it has control packets and data packets, and takes
// frames that come.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/connection_watch.h"
#include "transport/program_rings.h"
#include "transport/telemetry_echo.h"
#include "transport/verbs_transport.h"

namespace weir {

class RelayedTransport;

// Bit of a Q_Key that says it is for management (IBTA volume 1, 3.5.3 and 10.2.5).
inline constexpr uint32_t kPrivilegedQueueKey = 1u << 31;

class ProgramLink {
 public:
  // `memory` outlives it, and is the program's to write to at any time.
  explicit ProgramLink(ProgramMemory& memory);
  ProgramLink(const ProgramLink&) = delete;
  ProgramLink& operator=(const ProgramLink&) = delete;

  // Whether something may have been submitted.
  bool waiting() const { return memory_.submitted_written.load(std::memory_order_acquire) != submitted_; }
  // Takes what the program has submitted; calls told(qpn) for those that have more to send. Each time at most what all slots
  // hold.
  template <class Told>
  void take(TransportCounters& counters, Told&& told) {
    told_.clear();
    take_in(counters);
    for (const uint32_t qpn : told_) told(qpn);
  }
  // Hands the program a frame, which it gets without telemetry, and `reads` as ProgramFrame has it; false when it leaves no room.
  // The frame that this one may be part of must be valid.
  // `continues`: it only continues a message, and its receiver would do nothing more than take it.
  bool deliver(Time now, const uint8_t* frame, const PacketMeta& meta, uint32_t reads, bool continues = false);
  // Whether more should not come until the program has taken what there is: more than half of the room is full, and until no more
  // than a quarter is. One that takes nothing for kPatience is not waited for until it does.
  bool crowded(Time now);
  // Gives back the slots of what was sent since the last call: their payload has been read by now.
  void publish();
  // Whether frames, or the slots that it wants, have been given to a program that may sleep, since the last call: it must be
  // woken.
  bool take_wake();
  // Whether a program that polls has cause to look at what it was given since the last take_wake(): frames that more than
  // continue a message, kMostContinued that do, or the slots that it wants.
  bool has_cause() const { return has_news_ || continued_ >= kMostContinued || (given_slots_ && has_slots_wanted()); }

  // So many frames have come and gone by the program's own path.
  void pass(uint64_t frames) { passed_ += frames; }
  // What its NIC there tells.
  const LentNews& lent_news() const { return memory_.lent; }
  // Adds what the program's transports have counted since the last call.
  void count(TransportCounters& counters);
  // The program is no more: what it has not taken is dropped.
  void drop_frames(TransportCounters& counters);
  // Packets that were dropped because the program does not take them; that it sent and may not send.
  uint64_t busy_drops() const { return busy_drops_; }
  uint64_t refused_packets() const { return refused_packets_; }

 private:
  friend class RelayedTransport;

  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr Time kPatience = 100 * kMillisecond;
  static constexpr uint32_t kMostContinued = 32;
  struct Slot {
    ProgramPacket packet;  // the packet as it was when it was submitted
    uint32_t next = kNone;
    uint32_t behind = 0;   // an answer that is control: number of READ responses of its queue pair that go before it
    uint32_t turn = 0;     // data: place among the data of its queue pair
    uint32_t packets = 1;  // PSNs that it takes up
    bool held = false;
  };
  void take_in(TransportCounters& counters);
  uint32_t waiting_bytes(uint32_t read) const { return read == frames_ ? 0 : filled_ - begins_[read % kProgramFrames]; }
  void refuse(TransportCounters& counters) { ++counters.drop_program_packet, ++refused_packets_; }
  void give_back(uint32_t slot);
  bool has_slots_wanted() const {
    return static_cast<int32_t>(returned_ - memory_.returned_wanted.load(std::memory_order_relaxed)) >= 0;
  }
  void attach(uint32_t qpn, RelayedTransport& transport) { transports_[qpn] = &transport; }
  void detach(uint32_t qpn) { transports_.erase(qpn); }

  ProgramMemory& memory_;
  uint32_t submitted_ = 0;  // read
  uint32_t returned_ = 0;   // written
  uint32_t frames_ = 0;     // written
  // Places in the room for frames: of the next, and of each that waits. Both count on and on.
  uint32_t filled_ = 0;
  std::unique_ptr<uint32_t[]> begins_ = std::make_unique<uint32_t[]>(kProgramFrames);
  bool crowded_ = false;
  uint32_t seen_read_ = 0;  // frames, at the last look
  Time read_at_ = 0;        // when that had changed
  uint64_t passed_ = 0;     // frames and packets
  bool given_frames_ = false;
  bool given_slots_ = false;
  // Of frames that the program has not looked for: whether one more than continues a message, and how many do that.
  bool has_news_ = false;
  uint32_t continued_ = 0;
  TransportCounters counted_;  // counters at the last look
  TransportCounters believed_;
  uint64_t busy_drops_ = 0;
  uint64_t refused_packets_ = 0;
  std::array<Slot, kProgramPackets> slots_;
  std::vector<uint32_t> free_;  // slots that are to be given back
  std::vector<uint32_t> told_;
  std::unordered_map<uint32_t, RelayedTransport*> transports_;
};

class RelayedTransport final : public VerbsTransport {
 public:
  enum class Service : uint8_t { connection, unreliable, datagram };

  RelayedTransport(uint32_t qpn, const TransportContext& context, ProgramLink& link, Service service);
  ~RelayedTransport() override;

  bool understands(uint8_t opcode) const override {
    if (service_ == Service::datagram) return opcode == kOpcodeUdSendOnly || opcode == kOpcodeUdSendOnlyImmediate;
    if (service_ == Service::unreliable) return is_unreliable(opcode);
    return opcode >> 5 == 0 || (attributes_.telemetry && has_telemetry(opcode));
  }
  bool receive(Time now, const uint8_t* frame, const PacketMeta& meta) override;
  // Answers leave in order: who gets one takes it that all before it have been answered (IBTA volume 1, 9.7.5.1.5).
  bool control_waits() const override {
    if (control_.first == ProgramLink::kNone) return false;
    return static_cast<int32_t>(responses_taken_ - link_.slots_[control_.first].behind) >= 0;
  }
  void take_control(OutgoingPacket& out) override;
  uint32_t data_bytes() const override;
  bool take_data(Time now, OutgoingPacket& out) override;
  // The program's timer has run out when a packet leaves again, and that is told soon after.
  Time next_deadline() const override { return watch_ == nullptr ? kNever : watch_->timed_out_at(); }
  void advance(Time) override {}
  bool crowded(Time now) const override { return link_.crowded(now); }
  bool take_heard(Heard& heard) override { return watch_ != nullptr && watch_->take(heard); }
  void limit(uint32_t packets, uint32_t reads) override {
    if (watch_ == nullptr) return;
    watch_->limit(packets);
    // The program gets twice as much: the other half waits here, for a program that is away for a while.
    expected_reads_ = std::min(2 * std::min(reads, kMaxWindow), kMaxWindow);
  }
  const QueueAttributes& attributes() const { return attributes_; }
  // PSN of the first of the peer's requests that no answer has left for.
  uint32_t unanswered() const { return unanswered_; }

 private:
  friend class ProgramLink;

  struct Queue {
    uint32_t first = ProgramLink::kNone;
    uint32_t last = ProgramLink::kNone;
  };
  void enter(QueuePairState from, const QueueAttributes& attributes) override;
  // Packets that were sent before the queue pair failed have a right to leave: its last answer says why.
  void stop() override {
    if (state_ != QueuePairState::reset) return;
    drop_all();
    watch_.reset();
    echo_.start(false);
  }
  bool serves(const SendWork&) const override { return false; }
  bool busy() const override { return false; }
  // Whether a packet is one that this queue pair may send now.
  bool allows(const ProgramPacket& packet) const;
  void push(uint32_t slot);
  void append(Queue& queue, uint32_t slot);
  uint32_t pop(Queue& queue);
  void push_watched(ProgramLink::Slot& at, uint32_t slot);
  // The slot of the data packet that may go now; kNone: there is none.
  uint32_t next() const {
    if (watch_ != nullptr) return next_watched();
    const bool held = holds_requests_ && requests_.first != ProgramLink::kNone && !responds(requests_.first);
    return held ? ProgramLink::kNone : requests_.first;
  }
  bool responds(uint32_t slot) const { return is_response(link_.slots_[slot].packet.opcode); }
  uint32_t next_watched() const;
  uint32_t waiting_end() const;
  bool continues(const uint8_t* frame, const PacketMeta& meta);
  void hear(Time now, const uint8_t* frame, const PacketMeta& meta);
  uint8_t wire_opcode(const ProgramPacket& packet) const;
  void fill(OutgoingPacket& out, uint32_t slot);
  void fill_watched(Time now, OutgoingPacket& out, uint32_t slot);
  void drop(Queue& queue);
  void drop_all();

  ProgramLink& link_;
  Service service_;
  uint32_t unanswered_ = 0;
  uint32_t following_[2] = {};  // PSNs behind the last request and the last response that have come
  Queue control_;
  Queue requests_;   // with READ responses, where nothing is held
  Queue responses_;  // apart from what congestion control holds, for which they do not wait
  uint32_t turns_ = 0;
  uint32_t expected_reads_ = 0;
  std::unique_ptr<ConnectionWatch> watch_;  // null: congestion control wants to hear nothing of it
  TelemetryEcho echo_;
  // READ responses.
  uint32_t responses_submitted_ = 0;
  uint32_t responses_taken_ = 0;
};

}  // namespace weir
