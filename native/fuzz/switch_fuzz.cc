// Hostile frames, offload headers, pauses and changes of parameters, made of the input's bytes, for a switch of one to three
// shards in virtual time, with a host behind each port that takes nothing for a while, and discards some. Each frame must be
// accounted for, whatever comes. Once everything could leave, nothing is charged, held or stopped any more, and every packet is
// at home: none was lost or freed twice.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/switch_frames.h"
#include "switching/exchange.h"
#include "switching/wire_switch.h"
#include "wire/classify.h"
#include "wire/ecn.h"
#include "wire/ethernet.h"
#include "wire/mac_control.h"
#include "wire/offload.h"
#include "wire/qcn.h"

namespace {

using namespace weir;
using namespace weir::fuzz;

constexpr uint32_t kPackets = 96;  // packets of each shard, beside long ones
constexpr uint32_t kLongPackets = 4;
constexpr uint32_t kStride = 2'048;
constexpr size_t kParameterBytes = 64;   // bytes of the input: parameters have their place in it, used up or not
constexpr Time kLongest = 60 * kSecond;  // the longest pause is 0.34 s; a queue of 5 Mb/s may have half a megabyte before it
constexpr int kMostRounds = 200;         // rounds in which shards tell each other what follows from one moment
constexpr uint64_t kMostEvents = 300'000;

// Links of their own at the first ports, a VLAN that the others share, and what lies beyond by one gateway or several.
RouterParameters make_router(uint8_t style) {
  RouterParameters r;
  r.mac = kRouterMac;
  r.neighbour_capacity = 16;
  for (const uint8_t version : {uint8_t{4}, uint8_t{6}}) {
    const auto length = static_cast<uint8_t>(version == 4 ? 24 : 64);
    for (uint8_t link = 0; link < 3; ++link) {
      const bool shared = link == 2;
      if (version == 4) r.interfaces.push_back({shared ? kAnyPort : uint16_t{link}, shared ? kRouterVlan : uint16_t{0}, {}});
      r.interfaces[link].addresses.push_back({address_of(link, version), length});
    }
    if (style & 1) continue;
    RouterParameters::Route beyond{.prefix = {address_of(64, version), static_cast<uint8_t>(version == 4 ? 16 : 20)}};
    for (uint8_t way = 0; way <= (style >> 1 & 3); ++way) {
      const auto link = static_cast<uint16_t>(way % 3);
      beyond.ways.push_back({link, address_of(static_cast<uint8_t>(link | 4 * (1 + way)), version), 1u + way});
    }
    r.routes.push_back(beyond);
  }
  if (style & 8) r.neighbours.push_back({address_of(1 | 4, 4), 1, 1, kStation + 1});
  return r;
}

// Makes the first parameters, or those that follow them.
SwitchParameters make_parameters(Input in) {
  SwitchParameters p;
  const uint8_t flags = in.byte();
  p.pfc_priorities = flags & 1 ? 1 << 3 : flags & 2 ? 0xff : flags & 4 ? 0x12 : 0;
  p.ecn_priorities = flags & 8 ? 0xff : 1 << 3;
  p.mark_on_dequeue = flags & 16;
  p.cn_priorities = flags & 32 ? 1 << 2 | 1 << 3 : 0;
  p.cp_min_header_octets = flags & 64 ? 64 : 0;
  p.learning = !(flags & 128);
  p.fdb_capacity = 16;
  p.ageing = kMillisecond;
  p.red.kmin = 2'000;
  p.red.kmax = 20'000;
  p.qcn.cp_queue_set_point = 2'000;
  p.qcn.cp_sample_base = 10'000;
  for (size_t dscp = 0; dscp < p.priority_map.dscp.size(); ++dscp) p.priority_map.dscp[dscp] = dscp % kPriorities;
  p.priority_map.trust = static_cast<PriorityMap::Trust>(in.byte() % 3);
  p.scheduler.strict = in.byte();
  p.scheduler.weights[in.byte() % kPriorities] = 100;

  const uint8_t size = in.byte();
  p.buffer.total = (1 + size % 16) * 10'000;
  const uint8_t sharing = in.byte();
  const bool scarce = sharing & 64;  // frames may be longer than what there is for them
  p.buffer.headroom = (size >> 4) * (scarce ? 50 : 1'500);
  p.buffer.priorities = 1 + (sharing & 7);
  p.buffer.beta = sharing & 8 ? 8 : 0.5;
  p.buffer.lossy_alpha = sharing & 16 ? 0.2 : 1;
  if (sharing & 32) p.buffer.threshold = BufferParameters::Threshold::fixed;
  p.buffer.fixed_threshold = scarce ? 300 : 6'000;
  p.buffer.lateness_headroom = scarce ? 0 : kMaxSuperFrame;

  for (uint16_t i = 0; i < kPorts; ++i) {
    SwitchParameters::Port port;
    port.mac = kPortMac + i;
    const uint8_t mtu = in.byte();
    port.mtu = mtu & 1 ? 1'500 : mtu & 2 ? 9'000 : mtu & 4 ? 65'535 : 300;
    const uint8_t rate = in.byte();
    port.rate = rate % 8 * Rate{100'000'000};
    port.offloads = rate & 16;
    if (rate & 32) port.priority_rates[in.byte() % kPriorities] = Rate{5'000'000} << in.byte() % 5;
    if (rate & 64) port.queue_limits[in.byte() % kPriorities] = 4'000;
    const uint8_t defence = in.byte();
    port.cn_defence[3] = static_cast<CnDefence>(defence % 4);
    port.cn_defence[2] = static_cast<CnDefence>((defence >> 2) % 4);
    port.cn_alternate_priority[2] = 1;
    const uint8_t stations = in.byte();
    port.max_learned_addresses = stations & 3;
    if (stations & 4) port.storm_rates[(stations >> 3) % 3] = Rate{1'000} << (stations >> 5);
    p.ports.push_back(port);
  }
  const uint8_t routing = in.byte();
  if (routing & 128) p.router = make_router(routing);
  p.cnms_by_ip = p.router.routes_at_all();
  for (SwitchParameters::Port& port : p.ports) {
    const uint8_t vlans = in.byte();
    if (vlans & 8) port.vlans.emplace();
    if (vlans & 8 && vlans & 1) port.vlans->untagged = kRouterVlan;
    if (vlans & 8 && vlans & 2) port.vlans->tagged.push_back(kRouterVlan + 1);
    if (vlans & 8 && (vlans & 5) == 4) port.vlans->tagged.push_back(kRouterVlan);
  }
  return p;
}

class World {
 public:
  World(uint32_t shards, const SwitchParameters& parameters)
      : shards_(shards),
        memory_({.count = kPackets * shards, .stride = kStride, .long_count = kLongPackets * shards}),
        exchange_(owners(shards), shards, kPackets + kLongPackets) {
    for (uint32_t i = 0; i < shards; ++i) {
      pools_.push_back(std::make_unique<PacketPool>(memory_, i, shards));
      switches_.push_back(std::make_unique<WireSwitch>(parameters, *pools_[i], shards > 1 ? &exchange_.link(i) : nullptr));
      if (parameters.learning) continue;
      for (uint16_t port = 0; port < kPorts; ++port) {
        require(switches_[i]->device.forwarding().add_static(kStation + port, std::vector<uint16_t>{port}));
      }
    }
  }

  void run(Input in) {
    while (!in.empty()) act(in);
    for (Host& host : hosts_) {
      host.stands_still = false;
      host.others = 0;
    }
    settle(now_);
    live_until(now_ + kLongest);
    check();
  }

 private:
  // Host behind a port: takes frames that the switch has sent, or lets them wait.
  struct Host {
    std::vector<PacketId> waiting;
    uint32_t bytes = 0;   // bytes of those
    uint32_t others = 0;  // bytes that wait before those
    bool stands_still = false;
  };

  static std::vector<uint8_t> owners(uint32_t shards) {
    std::vector<uint8_t> owner(kPorts);
    for (size_t port = 0; port < kPorts; ++port) owner[port] = static_cast<uint8_t>(port % shards);
    return owner;
  }
  SoftSwitch& of(uint16_t port) { return switches_[port % shards_]->device; }
  PacketPool& pool_of(uint16_t port) { return *pools_[port % shards_]; }

  void act(Input& in) {
    const uint8_t what = in.byte();
    const uint16_t port = in.byte() % kPorts;
    switch (what % 16) {
      case 0:
        return live_until(now_ + (Time{1} << in.byte() % 22));
      case 1: {
        std::array<uint16_t, kPriorities> quanta{};
        const uint8_t enable = in.byte();
        for (uint16_t& one : quanta) one = in.byte() & 1 ? static_cast<uint16_t>(in.number(2)) : 0;
        of(port).pauses().receive_pfc(now_, port, enable, quanta);
        break;
      }
      case 2:
        of(port).pauses().receive_pause(now_, port, static_cast<uint16_t>(in.number(2)));
        break;
      case 3:
        if (in.byte() % 4 == 0) reconfigure(make_parameters(Input(in.take(kParameterBytes))));
        break;
      case 4: {  // a frame word for word
        const auto bytes = in.take(kEthernetHeader + in.number(2));
        if (bytes.size() >= kEthernetHeader && bytes.size() <= kMaxSuperFrame - kVlanTag) arrive(port, bytes, {});
        break;
      }
      case 5:
        look(port, in.byte() % kPriorities);
        break;
      case 6:
        arrive(port, make_cnm(in), {});
        break;
      case 7: {
        Host& host = hosts_[port];
        const uint8_t style = in.byte();
        host.stands_still = style & 1;
        host.others = style & 4 ? kMostUnsent : 0;
        if (style & 2) give_up(port, style >> 3);
        break;
      }
      case 8:
        arrive(port, make_neighbour_message(in, port), {});
        break;
      default:
        for (int frames = 1 + what / 16 % 4; frames > 0; --frames) {
          const Frame frame = make_frame(in, port);
          arrive(port, frame.bytes, in.byte() % 4 == 0 ? make_offload(in, frame) : Offload{});
        }
    }
    settle(now_);
  }

  void reconfigure(const SwitchParameters& parameters) {
    for (const auto& one : switches_) one->device.reconfigure(parameters);
  }

  // Observers that look between two events change nothing.
  void look(uint16_t port, int priority) {
    SoftSwitch& device = of(port);
    device.statistics().settle_counters();
    (void)device.statistics().distribution(port, priority);
    (void)device.statistics().take_peak(port, priority);
    device.statistics().reset_distributions();
  }

  // Takes a frame from its port as the device of a worker does.
  void arrive(uint16_t port, std::span<const uint8_t> bytes, const Offload& offload) {
    SoftSwitch& device = of(port);
    PacketPool& pool = pool_of(port);
    SwitchPortCounters& counters = device.counters(port);
    const auto length = static_cast<uint32_t>(bytes.size());
    const PacketId id = pool.allocate(length + kVlanTag);
    if (id == kNoPacket) {
      ++counters.rx_packets;
      ++counters.drop_no_descriptor;
      return;
    }
    Packet& packet = pool[id];
    packet.reset();
    packet.length = length;
    std::ranges::copy(bytes, pool.data(id));
    packet.offload = offload;
    if (offload.pending() && !check_offload(pool.data(id), length, packet.offload)) {
      ++counters.rx_packets;
      ++counters.drop_offload_refused;
      pool.free(id);
      return;
    }
    classify(pool.data(id), length, packet.meta);
    if (!is_mac_control(packet.meta.kind)) {
      if (!offload.pending()) infer_partial_checksum(pool.data(id), length, packet.offload);
      device.receive(now_, port, id);
      return;
    }
    const bool known = read_mac_control(
        pool.data(id), length,
        [&](uint8_t enable, const auto& quanta) { device.pauses().receive_pfc(now_, port, enable, quanta); },
        [&](uint16_t quanta) { device.pauses().receive_pause(now_, port, quanta); });
    if (!known) ++counters.rx_mac_control_unknown;
    pool.free(id);
  }

  // Hands frames over to its port as the device of a worker does.
  void collect(uint32_t shard) {
    WireSwitch& wire = *switches_[shard];
    SoftSwitch& device = wire.device;
    for (uint16_t port = 0; port < kPorts; ++port) {
      Host& host = hosts_[port];
      do {
        for (PacketId id = wire.transmit(port); id != kNoPacket; id = wire.transmit(port)) {
          require(device.owns(port));
          depart(*pools_[shard], id);
          host.waiting.push_back(id);
          host.bytes += (*pools_[shard])[id].length;
        }
        if (!device.owns(port)) break;
        if (!host.stands_still) take(port, host.waiting.size(), [&](PacketId id) { device.left(port, id); });
      } while (device.set_unsent(port, host.others + host.bytes));
    }
  }
  // The host does away with some of what waits.
  void give_up(uint16_t port, size_t most) {
    take(port, std::min(most, hosts_[port].waiting.size()), [&](PacketId id) {
      lost_ += pool_of(port)[id].ingress_port == kNoIngress ? 0 : 1;
      of(port).lost(id);
    });
  }
  template <class Each>
  void take(uint16_t port, size_t count, const Each& each) {
    Host& host = hosts_[port];
    for (size_t i = 0; i < count; ++i) {
      each(host.waiting[i]);
      host.bytes -= pool_of(port)[host.waiting[i]].length;
      pool_of(port).free(host.waiting[i]);
    }
    host.waiting.erase(host.waiting.begin(), host.waiting.begin() + static_cast<ptrdiff_t>(count));
  }
  // The bytes that are written on the way out, and all that would be sent, are the packet's own memory.
  static void depart(PacketPool& pool, PacketId id) {
    const Packet& packet = pool[id];
    if (packet.meta.kind == FrameKind::pfc) {
      require(packet.pfc_enable != 0);
      return;
    }
    if (packet.meta.ecn_changed) write_ecn(pool.data(id), packet.meta);
    require(packet.length >= kEthernetHeader && packet.length <= pool.room(id));
    const std::vector<uint8_t> sent(pool.data(id), pool.data(id) + packet.length);
  }

  // All shards live up to `now`, until none has anything to tell.
  void settle(Time now) {
    uint64_t told = 1;
    for (int round = 0; told != 0; ++round) {
      require(round < kMostRounds);
      told = 0;
      for (uint32_t i = 0; i < shards_; ++i) {
        switches_[i]->device.begin_turn();
        switches_[i]->advance(now);
        collect(i);
        told |= switches_[i]->device.end_turn();
      }
    }
    now_ = now;
  }
  void live_until(Time until) {
    for (uint64_t events = 0;; ++events) {
      require(events < kMostEvents);
      Time next = kNever;
      for (const auto& one : switches_) next = std::min(next, one->next_deadline());
      if (next > until) break;
      settle(std::max(next, now_));
    }
    settle(until);
  }

  void check() {
    for (uint32_t i = 0; i < shards_; ++i) {
      const SoftSwitch& device = switches_[i]->device;
      require(device.held() == 0 && device.lent() == 0);
      require(device.buffer().occupied() == 0 && device.buffer().own().in_headroom == 0);
      for (uint16_t port = 0; port < kPorts; ++port) {
        for (int priority = 0; priority < kPriorities; ++priority) {
          require(device.buffer().ingress_bytes(port, priority) == 0 && device.buffer().headroom_bytes(port, priority) == 0);
          require(device.queue_bytes(port, priority) == 0 && !device.pauses().stopped(port, priority));
        }
      }
      require(pools_[i]->available() == kPackets);
      for (uint32_t n = 0; n < kLongPackets; ++n) require(pools_[i]->allocate(kMaxSuperFrame) != kNoPacket);
      require(pools_[i]->allocate(kMaxSuperFrame) == kNoPacket);
    }
    // A CNM counts where it was made.
    uint64_t came = 0;
    uint64_t gone = lost_;
    for (uint16_t port = 0; port < kPorts; ++port) {
      const SwitchPortCounters& c = of(port).counters(port);
      came += c.rx_packets + c.flood_copies + c.router_made_packets;
      gone += c.tx_packets + c.sum(CounterMeaning::drop) + c.router_packets;
      for (int priority = 0; priority < kPriorities; ++priority) came += of(port).counters(port, priority).cn_cp_transmitted_cnms;
    }
    require(came == gone);
  }

  uint32_t shards_;
  PacketMemory memory_;
  Exchange exchange_;
  std::vector<std::unique_ptr<PacketPool>> pools_;
  std::vector<std::unique_ptr<WireSwitch>> switches_;
  std::array<Host, kPorts> hosts_{};
  uint64_t lost_ = 0;  // frames that came, and hosts have given up
  Time now_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in({data, size});
  const uint32_t shards = 1 + in.byte() % 3;
  World(shards, make_parameters(Input(in.take(kParameterBytes)))).run(in);
  return 0;
}
