#include "io/af_xdp.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr uint32_t kLeastRing = 64;
constexpr uint32_t kMaxRing = 1 << 16;
// Longest frame for which veth takes a program that knows single buffers only. Such a program also makes the kernel cut
// super-frames before they come here (veth_xdp_set() in drivers/net/veth.c).
constexpr uint32_t kLongestSingleBuffer = 3'498 + 18;

void check_xdp(const PortOptions& options) {
  if (options.ring < kLeastRing || options.ring > kMaxRing || !std::has_single_bit(options.ring)) {
    throw NativeError("INVALID_CONFIG", 0, "", "ring: " + std::to_string(options.ring) + " is out of range",
                      "must be a power of two between 64 and 65536");
  }
}

}  // namespace

AfXdpPort::AfXdpPort(const PortOptions& options, Umem& umem, const PortClock& clock)
    : InterfacePort(options), umem_(umem), pool_(umem.pool()), clock_(clock), number_(umem.add_port()) {
  check_xdp(options);
  lent_ = Ring<PacketId>(options.ring);
  start();
}

void AfXdpPort::open(int interface_index, bool first) {
  index_ = interface_index;
  told_ = at_first_ = options_.receive ? receive_queues() : 1;
  if (at_first_ > XdpProgram::kMostQueues) {
    throw NativeError("INVALID_CONFIG", 0, "", options_.interface + " has " + std::to_string(at_first_) + " receive queues",
                      "AF_XDP takes " + std::to_string(XdpProgram::kMostQueues) + " at most: ethtool -L " + options_.interface +
                          " combined 8, or backend: af_packet");
  }
  if (options_.receive) {
    any_.emplace(::epoll_create1(EPOLL_CLOEXEC));
    if (any_->get() < 0) throw NativeError::from_errno("epoll_create1", "cannot wait for " + options_.interface, "");
  }
  while (queues_.size() < at_first_) add_queue(first);
  if (!options_.receive) return;
  if (options_.promiscuous) make_promiscuous();
  XdpProgramOptions program;
  program.interface_index = interface_index;
  program.generic = options_.xdp_mode == XdpMode::generic;
  program.frags = options_.slot_bytes > kLongestSingleBuffer;
  program.stamp = options_.stamp;
  program.vlan = !options_.roce_only;
  program.roce_only = options_.roce_only;
  program.cnm_datagrams = options_.cnm_datagrams;
  program.arp_address = options_.arp_address;
  program.lldp = options_.lldp;
  program_ = std::make_unique<XdpProgram>(program);
  metadata_ = program_->metadata_bytes();
  for (uint32_t i = 0; i < queues_.size(); ++i) program_->insert(i, queues_[i]->socket());
  program_->attach();
  passed_by_ = std::make_unique<StackFrames>(packet_socket(), options_, interface_index);
  add_hidden_queues(first);
}

void AfXdpPort::add_queue(bool wait) {
  XdpQueueOptions queue;
  queue.interface = options_.interface;
  queue.interface_index = index_;
  queue.queue = static_cast<uint32_t>(queues_.size());
  // Those that there were at first hold as many frames together as one would. What is sent leaves in order, by the first.
  const uint32_t among = queue.queue < at_first_ ? at_first_ : 4 * at_first_;
  if (options_.receive) queue.receive_ring = std::max(kLeastRing, std::bit_floor(options_.ring / among));
  if (queues_.empty()) queue.transmit_ring = options_.ring;
  queue.wait = wait;
  queue.longest = options_.slot_bytes;
  auto opened = std::make_unique<XdpQueue>(queue, umem_, number_, clock_);
  epoll_event event{};
  event.events = EPOLLIN;
  if (any_ && ::epoll_ctl(any_->get(), EPOLL_CTL_ADD, opened->socket(), &event) != 0) {
    throw NativeError::from_errno("epoll_ctl", "cannot wait for the queues of " + options_.interface, "");
  }
  queues_.push_back(std::move(opened));
}

// Queues that there are, and that the driver does not tell of: with a program attached virtio_net has one more for each CPU, and
// frames come by these, too. The kernel refuses a queue that there is not by EINVAL.
void AfXdpPort::add_hidden_queues(bool wait) {
  try {
    while (queues_.size() < XdpProgram::kMostQueues) add_inserted_queue(wait);
  } catch (const NativeError& error) {
    if (error.code != "EINVAL") throw;
  }
}

void AfXdpPort::add_inserted_queue(bool wait) {
  add_queue(wait);
  program_->insert(static_cast<uint32_t>(queues_.size() - 1), queues_.back()->socket());
}

void AfXdpPort::close() {
  losses_ = losses();
  for (const auto& queue : queues_) losses_.transmit_dropped += queue->unread();
  passed_by_.reset();
  program_.reset();
  any_.reset();
  queues_.clear();
  free_lent(lent_.size());
  umem_.reclaim(number_);
}

// Queues that have come, as by `ethtool -L`, get their sockets here; what they had before then is a stray, or has passed by. The
// kernel lets none go that has a socket.
PortState AfXdpPort::state() {
  const PortState state = InterfacePort::state();
  if (state != PortState::up || !options_.receive) return state;
  const uint32_t told = std::min(receive_queues(), XdpProgram::kMostQueues);
  if (told <= told_) {
    told_ = told;
    return state;
  }
  try {
    inside([&] {
      while (queues_.size() < told) add_inserted_queue(false);
      program_->renew();
      add_hidden_queues(false);
    });
    told_ = told;
  } catch (const NativeError&) {
    // The queue is tried again when the state is next asked for; until then its frames count as lost.
  }
  return state;
}

PortQueues AfXdpPort::queues() const {
  if (queues_.empty()) return {};
  const auto copies_nothing = [](const auto& queue) { return queue->zero_copy(); };
  return {.receive = options_.receive ? told_ : 0,
          .receive_zero_copy = options_.receive && std::ranges::all_of(queues_, copies_nothing),
          .transmit_zero_copy = queues_.front()->zero_copy()};
}

size_t AfXdpPort::receive(std::span<RxFrame> frames) {
  if (queues_.empty()) return 0;
  queues_.front()->attend();
  queues_.front()->collect();
  if (!options_.receive) return 0;
  // Another queue is the first each time: a full one keeps none of the others waiting for long.
  size_t received = 0;
  const size_t queues = queues_.size();
  next_ = next_ + 1 < queues ? next_ + 1 : 0;
  for (size_t i = 0; i < queues && received < frames.size(); ++i) {
    const size_t number = next_ + i < queues ? next_ + i : next_ + i - queues;
    received += receive_by(*queues_[number], frames.subspan(received));
  }
  return received;
}

size_t AfXdpPort::receive_by(XdpQueue& queue, std::span<RxFrame> frames) {
  std::array<XdpQueue::Frame, kBurst> got;
  size_t received = 0;
  for (;;) {
    const size_t most = std::min({frames.size() - received, size_t{lent_.room()}, got.size()});
    const size_t count = queue.receive(std::span(got).first(most), metadata_);
    for (size_t i = 0; i < count; ++i) {
      RxFrame& frame = frames[received++];
      frame = RxFrame{};
      frame.data = got[i].data;
      frame.length = got[i].length;
      frame.stamp = clock_.now;
      if (metadata_ > 0) read_metadata(got[i].data - sizeof(XdpMetadata), frame);
      frame.packet = &lent_.push(got[i].packet);
    }
    if (count < most || most == 0) return received;
  }
}

// Where the driver had no room for metadata, the bytes are of an earlier frame, or none: then it has no mark.
void AfXdpPort::read_metadata(uint8_t* in_front, RxFrame& frame) const {
  XdpMetadata metadata;
  std::memcpy(&metadata, in_front, sizeof metadata);
  if (metadata.mark != XdpMetadata::kMark) return;
  frame.stamp = static_cast<Time>(metadata.stamp);
  metadata.mark = 0;
  std::memcpy(in_front, &metadata, sizeof metadata);
}

void AfXdpPort::release(size_t count) {
  free_lent(std::min<size_t>(count, lent_.size()));
  for (const auto& queue : queues_) queue->refill();
}

void AfXdpPort::free_lent(size_t count) {
  for (; count > 0; --count) {
    if (const PacketId id = lent_.pop(); id != kNoPacket) pool_.free(id);
  }
}

Transmitted AfXdpPort::transmit(std::span<const TxFrame> frames) {
  return queues_.empty() ? Transmitted{} : queues_.front()->transmit(frames);
}

PortLosses AfXdpPort::losses() {
  PortLosses losses = losses_;
  for (const auto& queue : queues_) {
    losses.receive_overrun += queue->overruns();
    losses.receive_truncated += queue->truncated();
    losses.transmit_errors += queue->transmit_errors();
    losses.transmit_dropped += queue->transmit_dropped();
  }
  if (program_) losses.receive_overrun += program_->strays();
  if (passed_by_) losses.receive_overrun += passed_by_->count();
  return losses;
}

}  // namespace weir
