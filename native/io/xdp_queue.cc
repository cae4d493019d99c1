#include "io/xdp_queue.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
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
constexpr int kBindAttempts = 100;
constexpr timespec kBindPause{0, 20'000'000};

}  // namespace

XdpQueue::XdpQueue(const XdpQueueOptions& options, Umem& umem, uint8_t number, const PortClock& clock)
    : options_(options), umem_(umem), pool_(umem.pool()), number_(number), clock_(clock) {
  for (int attempt = 1; !bind(); ++attempt) {
    if (!options_.wait || attempt == kBindAttempts) {
      throw NativeError("EBUSY", EBUSY, "bind",
                        "queue " + std::to_string(options_.queue) + " of " + options_.interface + " has an AF_XDP socket already",
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
  if (options_.receive_ring > 0) refill();
}

XdpQueue::~XdpQueue() {
  umem_.left(socket_);
  close();
}

// When it has returned the kernel writes no frame into our memory any more (xsk_release() waits for that).
void XdpQueue::close() {
  receive_ring_.unmap();
  fill_ring_.unmap();
  transmit_ring_.unmap();
  completion_ring_.unmap();
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

// False: another socket has the queue, perhaps one that is closed already.
bool XdpQueue::bind() {
  socket_ = ::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_ < 0) {
    throw NativeError::from_errno("socket", "cannot open an AF_XDP socket on " + options_.interface,
                                  "needs CAP_NET_RAW and a kernel with CONFIG_XDP_SOCKETS; backend: af_packet does without");
  }
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = static_cast<uint32_t>(options_.interface_index);
  address.sxdp_queue_id = options_.queue;
  address.sxdp_flags = static_cast<uint16_t>(XDP_USE_NEED_WAKEUP | (umem_.multi_buffer() ? kUseMultiBuffer : 0));
  try {
    umem_.share(socket_, address);
    map_rings();
  } catch (...) {
    close();
    throw;
  }
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  const int error = errno;
  close();
  if (error == EBUSY) return false;
  errno = error;
  throw NativeError::from_errno("bind", "cannot bind an AF_XDP socket to " + options_.interface,
                                umem_.multi_buffer()
                                    ? "frames of more than 3840 bytes need Linux 6.6; backend: af_packet does without"
                                    : "backend: af_packet does without AF_XDP");
}

void XdpQueue::map_rings() {
  const auto make = [this](int option, uint32_t size) {
    if (::setsockopt(socket_, SOL_XDP, option, &size, sizeof size) != 0) {
      throw NativeError::from_errno("setsockopt", "cannot make ring " + std::to_string(option) + " for " + options_.interface,
                                    "ask for a smaller ring");
    }
  };
  const auto [receive, transmit] = std::pair(options_.receive_ring, options_.transmit_ring);
  if (receive > 0) make(XDP_RX_RING, receive);
  if (transmit > 0) make(XDP_TX_RING, transmit);
  // The kernel wants both of these even where only one is used.
  const uint32_t fill = std::max(receive, 1u), completion = std::max(transmit, 1u);
  make(XDP_UMEM_FILL_RING, fill);
  make(XDP_UMEM_COMPLETION_RING, completion);
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  if (::getsockopt(socket_, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0) {
    throw NativeError::from_errno("getsockopt", "cannot ask for the layout of AF_XDP rings", "needs Linux 5.11 or later");
  }
  if (receive > 0) receive_ring_.map(socket_, XDP_RX_RING, XDP_PGOFF_RX_RING, offsets.rx, receive);
  if (transmit > 0) transmit_ring_.map(socket_, XDP_TX_RING, XDP_PGOFF_TX_RING, offsets.tx, transmit);
  fill_ring_.map(socket_, XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, fill);
  completion_ring_.map(socket_, XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, completion);
}

void XdpQueue::refill() {
  const uint32_t room = fill_ring_.room(options_.receive_ring / 4);
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

size_t XdpQueue::receive(std::span<Frame> frames, uint32_t bytes_in_front) {
  const uint32_t waiting = receive_ring_.waiting(static_cast<uint32_t>(frames.size()));
  // The bytes in front of a frame are read at once.
  for (uint32_t i = 0; bytes_in_front > 0 && i < waiting && i < frames.size(); ++i) {
    __builtin_prefetch(umem_.at(receive_ring_[i].addr) - bytes_in_front);
  }
  size_t received = 0;
  uint32_t taken = 0;
  while (taken < waiting && received < frames.size()) {
    Frame& frame = frames[received];
    frame = {umem_.at(receive_ring_[taken].addr), 0, kNoPacket};
    const uint32_t pieces = gather(taken, waiting, frame.packet, frame.length);
    if (pieces == 0) break;
    taken += pieces;
    if (frame.packet != kNoPacket) ++received;
  }
  if (taken > 0) receive_ring_.consume(taken);
  return received;
}

// The frame that begins at an index of the receive ring: joins its pieces in the packet of the first one. Returns how many pieces
// there are, 0 when they are not all there; `packet` stays kNoPacket, and the frame is counted, when it is too long.
uint32_t XdpQueue::gather(uint32_t index, uint32_t waiting, PacketId& packet, uint32_t& length) {
  uint32_t end = index + 1;
  length = receive_ring_[index].len;
  while ((receive_ring_[end - 1].options & kPacketContinues) != 0) {
    if (end == waiting) return 0;
    length += receive_ring_[end++].len;
  }
  const bool fits = length <= options_.longest;
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
  if (!fits) ++truncated_;
  return end - index;
}

// A driver that reads our memory may have all of the ring.
Transmitted XdpQueue::transmit(std::span<const TxFrame> frames) {
  collect();
  const uint64_t most = zero_copy_ ? UINT64_MAX : kHostRoom;
  const uint32_t chunk = umem_.chunk();
  const uint32_t first_room = chunk - Umem::kHeadroom;
  const uint32_t room = transmit_ring_.room(static_cast<uint32_t>(frames.size()));
  uint32_t used = 0;
  Transmitted done;
  for (const TxFrame& frame : frames) {
    if (!umem_.holds(frame.packet)) {  // a long one: AF_XDP does not take super-frames
      ++transmit_errors_;
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
void XdpQueue::kick() {
  if (in_kernel_ == 0) return;
  uint32_t unread = transmit_ring_.unread();
  if (!zero_copy_ || transmit_ring_.needs_wakeup()) {
    // A call takes some tens of frames (EAGAIN: there are more).
    for (uint32_t before = UINT32_MAX; unread < before;) {
      const bool done = ::sendto(socket_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0;
      before = std::exchange(unread, transmit_ring_.unread());
      // EBUSY: the driver or the link partner threw one frame away. All else leaves the frames where they are, for later.
      if (!done && errno == EBUSY) ++transmit_dropped_;
      if (done || errno != EAGAIN) break;
    }
  }
  if (unread == 0 || !unsent_ || unread != unread_) unread_since_ = clock_.now;
  unread_ = unread;
  unsent_ = unread > 0;
  if (unsent_) kick_at_ = clock_.now + retry_delay(clock_.now - unread_since_);
}

void XdpQueue::collect() {
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

uint64_t XdpQueue::overruns() const {
  xdp_statistics statistics{};
  socklen_t size = sizeof statistics;
  // Counted since the socket was opened; rx_dropped has those for which there was no chunk.
  if (::getsockopt(socket_, SOL_XDP, XDP_STATISTICS, &statistics, &size) != 0) return 0;
  return statistics.rx_dropped + statistics.rx_ring_full;
}

}  // namespace weir
