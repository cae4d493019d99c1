#include "engine/lent_nic.h"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "engine/lent_news.h"
#include "engine/open_port.h"
#include "wire/packet_memory.h"

namespace weir {
namespace {

constexpr uint32_t kPackets = 4608;
constexpr uint32_t kLentPlaces = 1u << kLentBlockShift;
constexpr Time kPortCheckInterval = 250 * kMillisecond;

timespec timespec_of(Time t) { return {static_cast<time_t>(t / kSecond), static_cast<long>(t % kSecond)}; }

NicDeviceConfig of_program(NicDeviceConfig config) {
  config.lent = true;
  config.parameters.verbs_queue_pairs = kLentPlaces;
  config.parameters.memory_regions = 0;
  return config;
}

}  // namespace

LentNic::LentNic(int config, int socket) : socket_(socket), shared_(map_lent_memory(Descriptor(config).get())) {
  ::madvise(shared_.get(), sizeof *shared_, MADV_DONTFORK);
  LentNicConfig lent = read_lent_config(*shared_);
  lent.nic.port.lent_socket = socket;
  // These say something in the daemon's process; the socket knows its interface.
  lent.nic.port.owner.clear();
  lent.nic.port.namespace_fd = -1;
  lent.nic.port.namespace_path.clear();
  clock_.refresh();
  memory_ = std::make_unique<PacketMemory>(PacketShape{.count = kPackets, .stride = (lent.packet_bytes + 63) / 64 * 64});
  pool_ = std::make_unique<PacketPool>(*memory_);
  lent_packets_ = std::make_unique<LentPackets>(*memory_, *pool_);
  const PortConfig& port = lent.nic.port;
  auto wire = std::make_unique<WirePort>(
      std::make_unique<MirrorPort>(open_packet_port(port, clock_.of_ports(), *lent_packets_), shared_->mirror, clock_.of_ports()),
      port.rate, port.delay, std::max(port.receive_slots, port.ring));
  device_ = std::make_unique<NicDevice>(of_program(std::move(lent.nic)), uint16_t{0}, std::move(*wire), *pool_, punted_, records_,
                                        clock_.now());
}

bool LentNic::adopt(uint32_t qpn, bool unreliable, std::unique_ptr<VerbsTransport>& transport) {
  if (nic().applications().create({.unreliable = unreliable, .qpn = qpn, .transport = transport.get()}) == 0) return false;
  transport.release();
  return true;
}

bool LentNic::turn() {
  clock_.refresh();
  attended_ = 0;
  WirePort& port = device_->ports().front();
  if (clock_.now() - checked_ >= kPortCheckInterval) {
    checked_ = clock_.now();
    port.check(clock_.now());
  }
  device_->turn(clock_.now(), clock_.now());
  const uint64_t before = std::exchange(seen_, port.received() + nic().counters().tx_packets);
  const bool moved = seen_ != before;
  if (moved) came_at_ = clock_.now();
  return moved;
}

void LentNic::sleep(Time duration, bool frames) {
  const timespec timeout = timespec_of(std::max<Time>(duration, 0));
  pollfd descriptors[2] = {{waker_.descriptor(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
  ::ppoll(descriptors, frames ? 2 : 1, &timeout, nullptr);
  if ((descriptors[0].revents & POLLIN) != 0) waker_.rise(true);
}

void LentNic::tell(ProgramMemory& memory) { weir::tell(memory.lent, nic(), device_->ports().front()); }

void LentNic::reconfigure() { device_->reconfigure(of_program(read_lent_config(*shared_).nic)); }

}  // namespace weir
