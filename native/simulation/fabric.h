// A simulated network: the switches and NICs of the wire, joined by links, in virtual time.
//
// A frame's arrival at the far end of a link is scheduled when its device picks it, so that it costs one event per link, and a
// device is woken only when it has something to do. The same configuration gives the same run, however it is cut into calls of
// run(), and however many threads and partitions it has. Partitions of devices live by themselves for a round: a window of the
// schedule, or several where the links between partitions are longer than others. Between two rounds one thread, alone, finds out
// when the next is, and sees to it that there are packets enough.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "endpoint/soft_nic.h"
#include "simulation/config.h"
#include "simulation/counters.h"
#include "simulation/crew.h"
#include "simulation/division.h"
#include "simulation/partition.h"
#include "switching/soft_switch.h"
#include "wire/packet_memory.h"

namespace weir {

class Fabric {
 public:
  // `queue_pairs`: of each NIC. `sharing`: with a division, the NICs of a machine in one partition. `config` must outlive it, and
  // so must `hosts`.
  Fabric(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs, const Sharing& sharing,
         HostWork* hosts = nullptr);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Goes on until `until`, or until about `limit` events have been in all: then false. Throws NativeError ENOMEM when the network
  // holds more frames than there is memory for; it cannot go on then.
  bool run(Time until, uint64_t limit);
  // New parameters of a switch, from now() on. Throws NativeError when they change more than a running switch can, see the
  // definition, and when the last run() stopped before its time.
  void reconfigure_switch(size_t index, const SwitchParameters& parameters);
  // Other routes of a switch, from now() on. Throws as reconfigure_switch() does.
  void reroute(size_t index, const SimulatedRoutes& routes);
  // A link fails, in both directions, or is there again. Frames on it are lost, and so are those sent into it while it is down;
  // pauses that its ends have asked for are over. Throws NativeError when the last run() stopped before its time.
  void set_link(size_t link, bool up);
  // The receiving end of a stream whose sender `from` has just ended it: closed as soon as word of it could have come.
  void close_stream(uint32_t from, uint32_t nic, uint32_t index);
  // HostWork::wake() for a NIC: asked for during an event of a NIC of that machine, or between two runs.
  void wake_host(uint32_t nic, Time at);
  // run() returns behind the event under way, of a NIC: false, and now() is the time of that event.
  void pause(uint32_t nic) { partitions_[partition_of_nic(nic)]->pause(); }
  // The NIC sends a frame of its host's, which must be whole, without FCS: in an event of a host. One for which there is no room
  // is lost.
  void send_for_stack(uint32_t nic, Time now, std::span<const uint8_t> frame);
  // Everything up to then has happened.
  Time now() const { return now_; }
  uint64_t events() const;
  uint64_t hops() const;
  // Means with which it was carried out, and how.
  struct Work {
    uint32_t threads = 1;
    uint32_t partitions = 1;
    Time round = 0;         // its length
    uint64_t rounds = 0;    // those in which anything happened
    uint64_t together = 0;  // those that all threads went through
    uint64_t crossed = 0;   // hops from one partition to another
    Crew::Times times;      // 0 with one thread
  };
  Work work() const;

  size_t switch_count() const { return switches_.size(); }
  size_t nic_count() const { return nics_.size(); }
  size_t link_count() const { return link_ports_.size() / 2; }
  size_t partition_count() const { return partitions_.size(); }
  SoftSwitch& switch_at(size_t index) { return *switches_[index]; }
  SoftNic& nic_at(size_t index) { return *nics_[index]; }
  uint32_t partition_of_nic(size_t index) const { return places_[switches_.size() + index].partition; }
  // Counters of frames that ends[side] of a link has sent.
  const LinkCounters& link_counters(size_t link, size_t side) const { return directions_[link_ports_[2 * link + side]].counters; }

  // What has become of the configured faults, in their order.
  std::vector<FaultState> faults() const;

  // Packets in queues and on links, and for how many there is room without more memory.
  uint32_t packets() const;
  uint32_t room() const { return memory_->shape().count; }
  // Shows `visit` each of them. Allocates.
  template <typename Visit>
  void each_packet(Visit visit) const {
    const std::vector<bool> marks = packets_in_use();
    for (uint32_t id = 0; id < marks.size(); ++id) {
      if (marks[id]) visit(memory_->packets()[id], memory_->bytes().data() + size_t{id} * memory_->shape().stride);
    }
  }

  // Frames traced since the last call, in the order of time; see src/native/simulation_types.ts for their layout.
  std::vector<uint8_t> take_trace();

 private:
  void place(const SimulationConfig& config, const std::vector<uint32_t>& division, HostWork* hosts);
  void add_devices(const SimulationConfig& config, const std::vector<std::vector<QueuePairParameters>>& queue_pairs);
  void connect(const SimulationConfig& config);
  void put_into_huge_pages();
  void require_reached(const char* what) const;
  void check_reconfiguration(size_t index, const SwitchParameters& parameters) const;
  bool next_round();
  bool finish(bool reached);
  bool pause_at(Time now);
  void balance();
  void supply(Partition& partition);
  void grow();
  std::vector<bool> packets_in_use() const;
  uint32_t port_number(const LinkEnd& end) const { return first_port_[end.device] + end.port; }

  std::unique_ptr<PacketMemory> memory_;
  uint32_t made_ = 0;                // packets that partitions have been supplied with
  Time window_;                      // longest window of a schedule
  uint64_t round_;                   // number of windows that partitions may live by themselves
  uint64_t first_mac_;               // first address of the hosts
  std::vector<DevicePlace> places_;  // places of all devices
  // Ports of all devices: those of the switches in order, then one for each NIC.
  std::vector<Direction> directions_;  // the link that each port sends into
  std::vector<uint32_t> link_ports_;   // both ends of each link
  std::vector<uint32_t> first_port_;   // first port, by device
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::vector<SoftSwitch*> switches_;
  std::vector<SoftNic*> nics_;

  Time now_ = 0;
  bool reached_ = true;  // run() has come to the end of its time
  Time until_ = 0;       // end of the run
  uint64_t limit_ = 0;
  Time end_ = 0;  // end of the round under way, or of the run's part of it; 0 before the first
  uint32_t turn_ = 0;
  uint64_t rounds_ = 0;
  bool together_ = false;  // whether all threads go through the present round
  struct {
    uint64_t events = 0, round = 0;
  } looked_at_;                    // when that was decided
  uint64_t all_together_ = 0;      // rounds of that kind
  uint64_t worthwhile_;            // see Sharing
  std::vector<uint64_t> loads_;    // loads by partition: events since the shares were last dealt
  std::vector<uint64_t> counted_;  // the same before the last run
  std::unique_ptr<Crew> crew_;     // null: one thread
};

}  // namespace weir
