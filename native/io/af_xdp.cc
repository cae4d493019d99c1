#include "io/af_xdp.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/native_error.h"

namespace weir {
namespace {

// Not in the headers of older distributions (linux/if_xdp.h of Linux 6.6 and 6.18).
constexpr uint16_t kUseMultiBuffer = 1 << 4;   // XDP_USE_SG
constexpr uint32_t kPacketContinues = 1 << 0;  // XDP_PKT_CONTD
constexpr int kMaxTransmitBudget = 9;          // XDP_MAX_TX_SKB_BUDGET
constexpr int kTransmitBudget = 256;           // frames that one sendto() moves; 32 by default
constexpr int kSendBuffer = 64 << 20;          // the default one throttles
constexpr uint32_t kMaxRing = 1 << 16;
constexpr int kBindAttempts = 100;
constexpr timespec kBindPause{0, 20'000'000};
// Longest frame for which veth takes a program that knows single buffers only. Such a program also makes the kernel cut
// super-frames before they come here (veth_xdp_set() in drivers/net/veth.c).
constexpr uint32_t kLongestSingleBuffer = 3'498 + 18;

void check_xdp(const PortOptions& options) {
  if (options.ring < 64 || options.ring > kMaxRing || !std::has_single_bit(options.ring)) {
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
  for (int attempt = 1; !bind(interface_index); ++attempt) {
    if (!first || attempt == kBindAttempts) {
      throw NativeError("EBUSY", EBUSY, "bind", "queue 0 of " + options_.interface + " has an AF_XDP socket already",
                        "end the program that uses it; after its end the kernel may take a second");
    }
    ::nanosleep(&kBindPause, nullptr);
  }
  umem_.joined(socket_);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBuffer, sizeof kSendBuffer);
  ::setsockopt(socket_, SOL_XDP, kMaxTransmitBudget, &kTransmitBudget, sizeof kTransmitBudget);
  xdp_options bound{};
  socklen_t size = sizeof bound;
  zero_copy_ = ::getsockopt(socket_, SOL_XDP, XDP_OPTIONS, &bound, &size) == 0 && (bound.flags & XDP_OPTIONS_ZEROCOPY) != 0;
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
  refill();
  program_->insert(socket_);
  program_->attach();
}

// False: another socket has the queue, perhaps one that is closed already.
bool AfXdpPort::bind(int interface_index) {
  socket_ = ::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_ < 0) {
    throw NativeError::from_errno("socket", "cannot open an AF_XDP socket on " + options_.interface,
                                  "needs CAP_NET_RAW and a kernel with CONFIG_XDP_SOCKETS; backend: af_packet does without");
  }
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = static_cast<uint32_t>(interface_index);
  address.sxdp_flags = static_cast<uint16_t>(XDP_USE_NEED_WAKEUP | (umem_.multi_buffer() ? kUseMultiBuffer : 0));
  umem_.share(socket_, address);
  map_rings();
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  const int error = errno;
  receive_ring_.unmap();
  fill_ring_.unmap();
  transmit_ring_.unmap();
  completion_ring_.unmap();
  ::close(socket_);
  socket_ = -1;
  if (error == EBUSY) return false;
  errno = error;
  throw NativeError::from_errno("bind", "cannot bind an AF_XDP socket to " + options_.interface,
                                umem_.multi_buffer()
                                    ? "frames of more than 3840 bytes need Linux 6.6; backend: af_packet does without"
                                    : "backend: af_packet does without AF_XDP");
}

void AfXdpPort::map_rings() {
  const auto make = [this](int option, uint32_t size) {
    if (::setsockopt(socket_, SOL_XDP, option, &size, sizeof size) != 0) {
      throw NativeError::from_errno("setsockopt", "cannot make ring " + std::to_string(option) + " for " + options_.interface,
                                    "ask for a smaller ring");
    }
  };
  const uint32_t size = options_.ring;
  if (options_.receive) make(XDP_RX_RING, size);
  make(XDP_TX_RING, size);
  // The kernel wants both of these even where only one is used.
  make(XDP_UMEM_FILL_RING, size);
  make(XDP_UMEM_COMPLETION_RING, size);
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  if (::getsockopt(socket_, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0) {
    throw NativeError::from_errno("getsockopt", "cannot ask for the layout of AF_XDP rings", "needs Linux 5.11 or later");
  }
  if (options_.receive) receive_ring_.map(socket_, XDP_RX_RING, XDP_PGOFF_RX_RING, offsets.rx, size);
  transmit_ring_.map(socket_, XDP_TX_RING, XDP_PGOFF_TX_RING, offsets.tx, size);
  fill_ring_.map(socket_, XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, size);
  completion_ring_.map(socket_, XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, size);
}

void AfXdpPort::close() {
  if (socket_ >= 0) {
    overrun_before_ = losses().receive_overrun;
    if (transmit_ring_.mapped()) losses_.transmit_errors += transmit_ring_.unread();
  }
  program_.reset();
  if (socket_ >= 0) {
    ::close(socket_);
    umem_.left(socket_);
  }
  socket_ = -1;
  receive_ring_.unmap();
  fill_ring_.unmap();
  transmit_ring_.unmap();
  completion_ring_.unmap();
  free_lent(lent_.size());
  // When close() has returned the kernel writes no frame into our memory any more (xsk_release() waits for that).
  umem_.reclaim(number_);
  in_kernel_ = 0;
  in_kernel_bytes_ = 0;
  unsent_ = false;
}

// Keeps the fill ring full, as far as there is memory.
void AfXdpPort::refill() {
  const uint32_t room = fill_ring_.room(options_.ring / 4);
  uint32_t count = 0;
  for (; count < room; ++count) {
    const PacketId id = pool_.allocate();
    if (id == kNoPacket) break;
    umem_.lend(id, number_);
    fill_ring_[count] = umem_.address(id);
  }
  if (count > 0) fill_ring_.submit(count);
  // A driver that fills its own rings may have stopped for want of chunks.
  if (zero_copy_ && fill_ring_.needs_wakeup()) ::recvfrom(socket_, nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
}

size_t AfXdpPort::receive(std::span<RxFrame> frames) {
  if (unsent_ && clock_.now >= kick_at_) kick();
  collect();
  if (!receive_ring_.mapped()) return 0;
  const uint32_t waiting = receive_ring_.waiting(static_cast<uint32_t>(frames.size()));
  // The bytes in front of a frame are read at once.
  for (uint32_t i = 0; metadata_ > 0 && i < waiting && i < frames.size(); ++i) {
    __builtin_prefetch(umem_.at(receive_ring_[i].addr) - sizeof(XdpMetadata));
  }
  size_t received = 0;
  uint32_t taken = 0;
  while (taken < waiting && received < frames.size() && lent_.room() > 0) {
    uint32_t length = 0;
    PacketId id = kNoPacket;
    uint8_t* data = umem_.at(receive_ring_[taken].addr);
    const uint32_t pieces = gather(taken, waiting, id, length);
    if (pieces == 0) break;
    taken += pieces;
    if (id == kNoPacket) continue;
    RxFrame& frame = frames[received++];
    frame = RxFrame{};
    frame.data = data;
    frame.length = length;
    frame.stamp = clock_.now;
    if (metadata_ > 0) {
      read_metadata(data - sizeof(XdpMetadata), frame);
    }
    frame.packet = &lent_.push(id);
  }
  if (taken > 0) receive_ring_.consume(taken);
  return received;
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

// The frame that begins at an index of the receive ring: joins its pieces in the packet of the first one. Returns how many pieces
// there are, 0 when they are not all there; `packet` stays kNoPacket, and the frame is counted, when it is too long.
uint32_t AfXdpPort::gather(uint32_t index, uint32_t waiting, PacketId& packet, uint32_t& length) {
  uint32_t end = index + 1;
  length = receive_ring_[index].len;
  while ((receive_ring_[end - 1].options & kPacketContinues) != 0) {
    if (end == waiting) return 0;
    length += receive_ring_[end++].len;
  }
  const bool fits = length <= options_.slot_bytes;
  uint32_t filled = 0;
  for (uint32_t i = index; i < end; ++i) {
    const xdp_desc& piece = receive_ring_[i];
    const PacketId id = umem_.packet_at(piece.addr);
    umem_.take_back(id, number_);
    if (i == index && fits) {
      packet = id;
    } else {
      if (fits) std::memcpy(umem_.at(receive_ring_[index].addr) + filled, umem_.at(piece.addr), piece.len);
      pool_.free(id);
    }
    filled += piece.len;
  }
  if (!fits) ++losses_.receive_truncated;
  return end - index;
}

void AfXdpPort::release(size_t count) {
  free_lent(std::min<size_t>(count, lent_.size()));
  refill();
}

void AfXdpPort::free_lent(size_t count) {
  for (; count > 0; --count) {
    if (const PacketId id = lent_.pop(); id != kNoPacket) pool_.free(id);
  }
}

// A driver that reads our memory may have all of the ring.
Transmitted AfXdpPort::transmit(std::span<const TxFrame> frames) {
  collect();
  const uint64_t most = zero_copy_ ? UINT64_MAX : kHostRoom;
  const uint32_t chunk = umem_.chunk();
  const uint32_t first_room = chunk - Umem::kHeadroom;
  const uint32_t room = transmit_ring_.room(static_cast<uint32_t>(frames.size()));
  uint32_t used = 0;
  Transmitted done;
  for (const TxFrame& frame : frames) {
    if (!umem_.holds(frame.packet)) {  // a long one: AF_XDP does not take super-frames
      ++losses_.transmit_errors;
      done.refused = true;
      break;
    }
    const uint32_t pieces = frame.length <= first_room ? 1 : 1 + (frame.length - first_room + chunk - 1) / chunk;
    if (used + pieces > room || in_kernel_bytes_ >= most) break;
    umem_.lend(frame.packet, number_);
    in_kernel_bytes_ += frame.length;
    ++done.sent;
    const uint64_t address = umem_.address(frame.packet);
    xdp_desc& desc = transmit_ring_[used++];
    desc = {address + Umem::kHeadroom, std::min(frame.length, first_room), pieces > 1 ? kPacketContinues : 0};
    for (uint32_t piece = 1, left = frame.length - desc.len; piece < pieces; ++piece) {
      const uint32_t length = std::min(left, chunk);
      left -= length;
      transmit_ring_[used++] = {address + uint64_t{piece} * chunk, length, left > 0 ? kPacketContinues : 0};
    }
  }
  if (used > 0) transmit_ring_.submit(used);
  in_kernel_ += used;
  kick();
  return done;
}

// Copy mode needs a system call to send; a driver that reads our memory says when it does.
void AfXdpPort::kick() {
  if (in_kernel_ == 0) return;
  uint32_t unread = transmit_ring_.unread();
  if (!zero_copy_ || transmit_ring_.needs_wakeup()) {
    // A call takes some tens of frames (EAGAIN: there are more).
    for (uint32_t before = UINT32_MAX; unread < before;) {
      const bool done = ::sendto(socket_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0;
      before = std::exchange(unread, transmit_ring_.unread());
      // EBUSY: the driver or the link partner threw one frame away. All else leaves the frames where they are, for later.
      if (!done && errno == EBUSY) ++losses_.transmit_errors;
      if (done || errno != EAGAIN) break;
    }
  }
  if (unread == 0 || !unsent_ || unread != unread_) unread_since_ = clock_.now;
  unread_ = unread;
  unsent_ = unread > 0;
  if (unsent_) kick_at_ = clock_.now + retry_delay(clock_.now - unread_since_);
}

void AfXdpPort::collect() {
  if (in_kernel_ == 0) return;
  const uint32_t count = completion_ring_.waiting(in_kernel_);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t address = completion_ring_[i];
    const PacketId id = umem_.packet_at(address);
    // The pieces of a frame complete together; the first stands for all.
    if (address - umem_.address(id) >= umem_.chunk()) continue;
    umem_.take_back(id, number_);
    in_kernel_bytes_ -= pool_[id].length;
    pool_.free(id);
  }
  if (count > 0) completion_ring_.consume(count);
  in_kernel_ -= count;
}

PortLosses AfXdpPort::losses() {
  if (socket_ < 0) return losses_;
  xdp_statistics statistics{};
  socklen_t size = sizeof statistics;
  // Counted since the socket was opened; rx_dropped has those for which there was no chunk.
  if (::getsockopt(socket_, SOL_XDP, XDP_STATISTICS, &statistics, &size) == 0) {
    losses_.receive_overrun = overrun_before_ + statistics.rx_dropped + statistics.rx_ring_full;
  }
  return losses_;
}

}  // namespace weir
