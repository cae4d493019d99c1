// A SoftNic on a real port.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "endpoint/wire_nic.h"
#include "engine/config.h"
#include "engine/device.h"
#include "engine/frame_ring.h"
#include "engine/nic_applications.h"
#include "engine/stack_port.h"
#include "wire/packet_pool.h"

namespace weir {

class NicDevice final : public Device, private MessageListener {
 public:
  // `records`: where it is told what becomes of reliable streams' connections, and of a lab's messages. `stack_port`: if the
  // configuration has one. All but the ports outlive it.
  NicDevice(const NicDeviceConfig& config, uint16_t index, WirePort port, PacketPool& pool, FrameRing& punted,
            SpscRing<Record>& records, Time begin, std::unique_ptr<WirePort> stack_port = nullptr);

  void turn(Time horizon, Time now) override;
  Time next_deadline() override;
  void stop_traffic(Time now) override;
  void reset_distributions() override {}
  void sample(Time at, SpscRing<Record>& ring) override;
  void settle_counters() override;
  void register_counters(CounterBlock& block) override;
  std::vector<WirePort>& ports() override { return ports_; }
  // Frames of applications also count when they leave: nobody else says that there is work.
  uint64_t frames_seen() const override {
    const uint64_t from_stack = stack_ != nullptr ? ports_.back().received() : 0;
    return ports_.front().received() + from_stack + (applications_ != nullptr ? nic_.counters().tx_packets : 0);
  }
  const std::string& name() const { return config_.name; }
  const std::string& queue_pair_name(size_t index) const { return config_.queue_pair_settings[index].name; }
  // Must be called between two turns. Throws as SoftNic::reconfigure() does.
  void reconfigure(const NicDeviceConfig& config);
  // Must be called between two turns. Throws as NicApplications::lend_path() does.
  LentDescriptors lend_path(uint32_t program) { return applications_->lend_path(program, lent_config()); }
  WireNic& soft_nic() { return nic_; }
  // Its ranks' operations are carried out here; the NIC is number `number` of the graph's.
  void carry_out(GraphTraffic& graph, uint32_t number) {
    graph_ = &graph;
    number_ = number;
  }
  const CongestionLatencies& latencies() const { return latencies_; }
  // Null when it has no neighbours.
  NicNeighbours* neighbours() { return neighbours_.get(); }
  // Null when the NIC has no places for queue pairs of applications.
  NicApplications* applications() { return applications_.get(); }
  // Both are null then too.
  VerbsRings* verbs() { return applications_ != nullptr ? &applications_->rings() : nullptr; }
  NicPrograms* programs() { return applications_ != nullptr ? &applications_->programs() : nullptr; }

 private:
  LentNicConfig lent_config() const;
  void message_completed(uint32_t qpn, uint64_t number, uint64_t bytes, Time posted, Time now) override;
  void posted_message(Posted what, uint32_t /*qpn*/, uint32_t word, Time now) override {
    if (graph_ != nullptr) graph_->hear(number_, what == Posted::arrived, word, now);
  }
  void stream_ended(uint32_t, bool, Time) override {}
  void stream_connected(uint32_t qpn, WorkStatus status, Time now) override;
  NicParameters completed(NicParameters parameters);
  void accept(const RxFrame& frame);
  void accept_super_frame(const RxFrame& frame);
  void accept_packet(const RxFrame& frame);
  void accept_all(Time horizon, Time now);
  void catch_up(Time until, Time now);
  Time next_piece() const;
  void collect();
  void send_collected(Time at, Time now);
  void receive(const RxFrame& frame, const uint8_t* data, uint32_t length, const PacketMeta& meta, Refusal refusal,
               InSuperFrame place);
  bool hear(const RxFrame& frame, const uint8_t* data, uint32_t length, const PacketMeta& meta);
  bool send_own(PacketId id);
  void tell_of_neighbour(uint32_t place, uint64_t mac);
  void loop(Time now);
  void gather();

  NicDeviceConfig config_;
  uint16_t index_;
  std::vector<WirePort> ports_;  // the link; the stack's
  PacketPool& pool_;
  FrameRing& punted_;
  SpscRing<Record>& records_;
  std::unique_ptr<NicApplications> applications_;
  CongestionLatencies latencies_;
  const Time begin_;
  const Time piece_;  // most that is made up for at once, of a queue pair
  WireNic nic_;
  std::unique_ptr<StackPort> stack_;  // null: there is none
  std::unique_ptr<NicNeighbours> neighbours_;
  GraphTraffic* graph_ = nullptr;  // null: it has no ranks
  uint32_t number_ = 0;
  Rate slowed_ = 0;               // pace of the last frame by a fault
  std::vector<PacketId> looped_;  // frames to its own address, and to groups
  // Frames that leave together, where they may be joined; of each, the next of its queue pair; of queue pairs, the last.
  struct Gathered {
    uint64_t gathering = 0;
    uint32_t queue_pair = 0;
    uint32_t at = 0;
  };
  std::vector<PacketId> gathered_;
  std::vector<uint32_t> next_gathered_;
  std::array<Gathered, 1024> last_gathered_{};
  uint64_t gatherings_ = 0;
  uint64_t collected_ = 0;                 // frames that have left the link, and not been sent yet
  uint32_t last_wire_bytes_ = UINT32_MAX;  // bytes of the last frame, where frames may be joined
  uint32_t senders_ = 1;                   // queue pairs that the last had frames of
};

}  // namespace weir
