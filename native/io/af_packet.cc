#include "io/af_packet.h"

#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/native_error.h"
#include "io/network_namespace.h"
#include "io/packet_filter.h"
#include "wire/ethernet.h"

namespace weir {
namespace {

// The kernel puts the first byte of an Ethernet frame here in a slot: the network header is aligned behind the slot header and 16
// bytes of room for the link header (tpacket_rcv in net/packet/af_packet.c).
constexpr uint32_t kSlotHeader = TPACKET_ALIGN(TPACKET2_HDRLEN + 16) - ETH_HLEN;
constexpr uint32_t kBlockBytes = 64 * 1024;
constexpr uint32_t kMaxSlotBytes = 256 * 1024;
constexpr uint32_t kMaxSlots = 64 * 1024;
constexpr uint32_t kLongSlots = 512;
constexpr int kReceiveBuffer = 8 << 20;  // for frames that are longer than a slot

constexpr uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

void set_option(int socket, int option, int value, const char* what) {
  if (::setsockopt(socket, SOL_PACKET, option, &value, sizeof value) != 0) {
    throw NativeError::from_errno("setsockopt", std::string("packet socket: ") + what, "needs Linux 4.20 or later");
  }
}

// False: there is room for a handful of long frames. A NIC's peers send many; it has a slot for each then.
bool has_receive_buffer(int socket) {
  int granted = 0;
  socklen_t size = sizeof granted;
  ::getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &granted, &size);
  return granted >= kReceiveBuffer / 2;
}

bool grow_receive_buffer(int socket) {
  if (::setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer) == 0) return true;
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);  // as much as we may
  return has_receive_buffer(socket);
}

void limit_sending(int socket, const PortOptions& options) {
  // Past the queueing discipline the kernel does not segment for an interface that cannot: such frames would be lost. A NIC that
  // joins none has none.
  const bool plain = !options.offloads || (options.roce_only && options.join == 1);
  if (plain) set_option(socket, PACKET_QDISC_BYPASS, 1, "cannot bypass the queueing discipline");
  // The kernel doubles it for its own bookkeeping, and caps it at net.core.wmem_max.
  constexpr int kSendBuffer = kHostRoom / 2;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
}

void bind_to(int socket, int interface_index, const PortOptions& options) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = options.receive ? htons(ETH_P_ALL) : uint16_t{0};
  address.sll_ifindex = interface_index;
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw NativeError::from_errno("bind", "cannot bind to " + options.interface, "");
  }
}

// Whether a packet that ends a super-frame, for it is shorter, had better begin another: `frames` are it and those that follow,
// `most` how many of its length one takes. So all packets of a WRITE but the first, which has the longer header, are one.
bool begins_another(std::span<const TxFrame> frames, uint32_t most) {
  const uint32_t length = frames.front().length;
  const auto other = std::ranges::find_if(frames, [&](const TxFrame& frame) { return frame.length != length; });
  const auto alike = static_cast<size_t>(other - frames.begin());
  return (alike - 1) % most != 0;  // else that would make one more
}

void check_packets(const PortOptions& options) {
  if (options.slot_bytes < kMinimumFrame || options.slot_bytes > kMaxSlotBytes) {
    throw NativeError("INVALID_CONFIG", 0, "", "slot_bytes: " + std::to_string(options.slot_bytes) + " is out of range",
                      "must be between 60 and 262144");
  }
  if (options.receive_slots == 0 || options.receive_slots > kMaxSlots) {
    throw NativeError("INVALID_CONFIG", 0, "", "receive_slots: " + std::to_string(options.receive_slots) + " is out of range",
                      "must be between 1 and 65536");
  }
}

}  // namespace

AfPacketPort::AfPacketPort(const PortOptions& options, const PortClock& clock, PacketPool* pool)
    : InterfacePort(options),
      pool_(pool),
      long_frames_(options.offloads ? kLongFrames * kMaxSuperFrame : 0, true),
      stamps_(clock),
      join_(options.offloads ? options.join : 1) {
  check_packets(options);
  start();
}

void AfPacketPort::open(int interface_index, bool first) {
  if (options_.lent_socket >= 0) return open_lent(first);
  // Protocol 0: nothing is received until bind() names the interface and ETH_P_ALL in one step, so that no frame of
  // another interface, and none before the ring exists, is ever queued or counted.
  socket_ = packet_socket(SOCK_NONBLOCK);
  // Refused once the ring exists.
  if (options_.offloads) set_option(socket_, PACKET_VNET_HDR, 1, "cannot ask for offload headers");
  const bool many = !options_.offloads || grow_receive_buffer(socket_);
  if (options_.receive) {
    map_ring(!many && options_.roce_only);
    set_option(socket_, PACKET_IGNORE_OUTGOING, 1, "cannot ignore outgoing frames");
  }
  limit_sending(socket_, options_);
  if (options_.promiscuous) make_promiscuous();
  if (options_.roce_only) accept_roce_only(socket_, options_, static_cast<uint16_t>(~lent_blocks_), false);
  if (options_.source_prefix != 0) accept_source(socket_, options_.source_prefix);
  if (join_ > 1) mtu_ = mtu();
  bind_to(socket_, interface_index, options_);
}

// All that needs privileges was done by who lends it, and who lends it says when the interface is another.
void AfPacketPort::open_lent(bool first) {
  if (!first) throw NativeError("INTERFACE_REPLACED", ENODEV, "", options_.interface + " is another interface now", "");
  socket_ = ::fcntl(options_.lent_socket, F_DUPFD_CLOEXEC, 0);
  if (socket_ < 0) throw NativeError::from_errno("fcntl", "cannot take the socket of " + options_.interface, "");
  map_ring(options_.offloads && !has_receive_buffer(socket_));
  if (join_ > 1) mtu_ = mtu();
}

int AfPacketPort::lend(uint16_t blocks) {
  if (!options_.roce_only || !options_.receive || socket_ < 0) return -1;
  int opened = -1;
  inside([&] { opened = packet_socket(SOCK_NONBLOCK); });
  const Descriptor lent(opened);
  if (options_.offloads) set_option(lent.get(), PACKET_VNET_HDR, 1, "cannot ask for offload headers");
  if (options_.offloads) grow_receive_buffer(lent.get());
  set_option(lent.get(), PACKET_IGNORE_OUTGOING, 1, "cannot ignore outgoing frames");
  limit_sending(lent.get(), options_);
  accept_roce_only(lent.get(), options_, blocks, true);
  constexpr int kLocked = 1;
  if (::setsockopt(lent.get(), SOL_SOCKET, SO_LOCK_FILTER, &kLocked, sizeof kLocked) != 0) {
    throw NativeError::from_errno("setsockopt", "cannot lock a packet filter", "");
  }
  sockaddr_ll own{};
  socklen_t length = sizeof own;
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &length);
  bind_to(lent.get(), own.sll_ifindex, options_);
  const int out = ::fcntl(lent.get(), F_DUPFD_CLOEXEC, 0);
  if (out < 0) throw NativeError::from_errno("fcntl", "no descriptor is left", "raise the limit on open files");
  lent_blocks_ = static_cast<uint16_t>(lent_blocks_ | blocks);
  accept_roce_only(socket_, options_, static_cast<uint16_t>(~lent_blocks_), false);
  return out;
}

void AfPacketPort::take_back(uint16_t blocks) {
  lent_blocks_ = static_cast<uint16_t>(lent_blocks_ & ~blocks);
  if (socket_ >= 0) accept_roce_only(socket_, options_, static_cast<uint16_t>(~lent_blocks_), false);
}

// `long_slots`: each has room for a super-frame.
void AfPacketPort::map_ring(bool long_slots) {
  const uint32_t slot_bytes = long_slots ? kMaxSuperFrame : options_.slot_bytes;
  const uint32_t slots = long_slots ? std::min(options_.receive_slots, kLongSlots) : options_.receive_slots;
  const uint32_t page = static_cast<uint32_t>(::sysconf(_SC_PAGESIZE));
  const uint32_t slot = TPACKET_ALIGN(kSlotHeader + (options_.offloads ? kOffloadHeader : 0) + slot_bytes);
  const uint64_t wanted = uint64_t{slot} * slots;
  const uint32_t block = round_up(std::max(slot, static_cast<uint32_t>(std::min<uint64_t>(wanted, kBlockBytes))), page);
  const uint32_t slots_per_block = block / slot;
  tpacket_req request{};
  request.tp_block_size = block;
  request.tp_block_nr = (slots + slots_per_block - 1) / slots_per_block;
  request.tp_frame_size = slot;
  request.tp_frame_nr = request.tp_block_nr * slots_per_block;

  set_option(socket_, PACKET_VERSION, TPACKET_V2, "cannot select TPACKET_V2");
  if (options_.offloads) set_option(socket_, PACKET_COPY_THRESH, 1, "cannot ask for long frames");
  if (::setsockopt(socket_, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0) {
    throw NativeError::from_errno("setsockopt", "cannot make a receive ring for " + options_.interface,
                                  "ask for fewer receive_slots or a smaller slot_bytes");
  }
  ring_bytes_ = size_t{block} * request.tp_block_nr;
  void* memory = ::mmap(nullptr, ring_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket_, 0);
  if (memory == MAP_FAILED) {
    throw NativeError::from_errno("mmap", "cannot map the receive ring of " + options_.interface,
                                  "ask for fewer receive_slots or a smaller slot_bytes");
  }
  ring_ = static_cast<uint8_t*>(memory);
  slots_.reserve(request.tp_frame_nr);
  for (uint32_t i = 0; i < request.tp_frame_nr; ++i) {
    uint8_t* at = ring_ + size_t{i / slots_per_block} * block + size_t{i % slots_per_block} * slot;
    slots_.push_back(reinterpret_cast<tpacket2_hdr*>(at));
  }
  lent_ = Ring<Lent>(slots_.size());
}

void AfPacketPort::close() {
  if (socket_ >= 0) losses();  // the socket's counters end with it
  if (ring_ != nullptr) ::munmap(ring_, ring_bytes_);
  if (socket_ >= 0) ::close(socket_);
  ring_ = nullptr;
  socket_ = -1;
  slots_.clear();
  for (; !lent_.empty(); lent_.pop()) {
    if (lent_.front().packet != kNoPacket) pool_->free(lent_.front().packet);
  }
  next_slot_ = long_count_ = 0;
}

PortState AfPacketPort::state() {
  if (join_ > 1) mtu_ = mtu();
  int pending = 0;
  socklen_t size = sizeof pending;
  ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &pending, &size);  // left alone, it would keep poll() awake
  return InterfacePort::state();
}

size_t AfPacketPort::receive(std::span<RxFrame> frames) {
  size_t received = 0;
  stamps_.begin();
  while (received < frames.size() && !slots_.empty()) {
    tpacket2_hdr* slot = slots_[next_slot_];
    if (!lent_.empty() && slot == lent_.front().slot) break;  // went round: the caller holds the rest
    const uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
    if ((status & TP_STATUS_USER) == 0) {
      stamps_.emptied();
      break;
    }
    const bool fits = slot->tp_snaplen == slot->tp_len;
    const bool queued = (status & TP_STATUS_COPY) != 0;
    if (queued && long_count_ == kLongFrames) break;
    if (++next_slot_ == slots_.size()) next_slot_ = 0;
    Fetched fetched;
    if (queued) {
      fetched = fetch(slot);
    } else if (fits) {
      fetched.data = reinterpret_cast<const uint8_t*>(slot) + slot->tp_mac;
      if (options_.offloads) fetched.offload = load_offload(fetched.data - kOffloadHeader);
    }
    if (fetched.data == nullptr) {
      ++losses_.receive_truncated;
      __atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
      continue;
    }
    RxFrame& frame = frames[received++];
    frame.data = fetched.data;
    frame.length = slot->tp_len;
    frame.offload = fetched.offload;
    if (frame.offload.gso != Gso::none) ++losses_.super_frames_received;
    frame.stamp = stamps_.convert(Time{slot->tp_sec} * kSecond + slot->tp_nsec);
    frame.vlan_stripped = (status & TP_STATUS_VLAN_VALID) != 0;
    frame.vlan_tci = frame.vlan_stripped ? slot->tp_vlan_tci : uint16_t{0};
    frame.vlan_tpid = frame.vlan_stripped ? slot->tp_vlan_tpid : uint16_t{0};
    Lent& lent = lent_.push({slot, fetched.packet});
    frame.packet = fetched.packet != kNoPacket ? &lent.packet : nullptr;
  }
  return received;
}

// The kernel queues a frame on the socket before it hands over its slot, both in the same order.
AfPacketPort::Fetched AfPacketPort::fetch(const tpacket2_hdr* slot) {
  const bool tagged = (slot->tp_status & TP_STATUS_VLAN_VALID) != 0;  // its tag belongs into the frame, which is copied then
  const PacketId packet = pool_ != nullptr && !tagged ? pool_->allocate(slot->tp_len) : kNoPacket;
  uint8_t* const data = packet != kNoPacket ? pool_->data(packet) : long_frames_.data() + long_next_ * kMaxSuperFrame;
  std::array<uint8_t, kOffloadHeader> header;
  std::array<iovec, 2> parts{{{header.data(), header.size()}, {data, packet != kNoPacket ? slot->tp_len : kMaxSuperFrame}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ssize_t got = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) got = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_TRUNC);  // the first told of an earlier error
  if (got != static_cast<ssize_t>(slot->tp_len + kOffloadHeader) || slot->tp_len > kMaxSuperFrame) {
    if (packet != kNoPacket) pool_->free(packet);
    return {};
  }
  if (packet == kNoPacket) long_next_ = (long_next_ + 1) % kLongFrames;
  ++long_count_;
  return {data, packet, load_offload(header.data())};
}

void AfPacketPort::release(size_t count) {
  for (count = std::min<size_t>(count, lent_.size()); count > 0; --count) {
    const auto [slot, packet] = lent_.pop();
    if (packet != kNoPacket) pool_->free(packet);
    if ((slot->tp_status & TP_STATUS_COPY) != 0) --long_count_;
    __atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
  }
  if (long_count_ == 0) long_next_ = 0;  // the same few again and again stay in the caches
}

Transmitted AfPacketPort::transmit(std::span<const TxFrame> frames) {
  Transmitted done;
  while (done.sent < frames.size()) {
    const size_t prepared = prepare(frames.subspan(done.sent));
    // A refusal in mid-batch only shortens the count; the next call meets it first and gets its reason.
    const int sent = ::sendmmsg(socket_, messages_.data(), static_cast<unsigned>(prepared), MSG_DONTWAIT);
    if (sent > 0) {
      for (size_t i = 0; i < static_cast<size_t>(sent); ++i) {
        done.sent += carried_[i];
        if (carried_[i] > 1) ++losses_.super_frames_sent;
      }
      continue;
    }
    if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) break;
    if (carried_[0] > 1 && errno == EINVAL) {  // Linux before 6.2 knows no such frames
      join_ = 1;
      continue;
    }
    ++losses_.transmit_errors;
    done.refused = true;
    break;
  }
  return done;
}

size_t AfPacketPort::prepare(std::span<const TxFrame> frames) {
  const size_t count = std::min(frames.size(), kBatch);
  size_t message = 0;
  size_t vector = 0;
  for (size_t i = 0; i < count; ++message) {
    const TxFrame& first = frames[i];
    size_t end = i + 1;
    SuperFrameJoin join;
    if (join_ > 1 && end < count && !first.offload.pending() && join.begin(first.data, first.length) &&
        join.datagram_bytes() <= mtu_) {
      const size_t most = std::min<size_t>(count, i + join_);
      while (end < most && !frames[end].offload.pending() && join.add(frames[end].data, frames[end].length)) ++end;
      const uint32_t last = frames[end - 1].length;
      if (join.ended() && begins_another(frames.subspan(end - 1, count - end + 1), std::min(join_, join.room_for(last)))) {
        join.take_back(last);
        --end;
      }
      // Cut short by the batch it is the first of the next.
      if (end == count && end < std::min(frames.size(), i + join_) && message > 0) break;
    }
    uint8_t* const header = headers_[message].data();
    msghdr& to = messages_[message].msg_hdr;
    to.msg_iov = vectors_.data() + vector;
    if (end == i + 1) {
      if (options_.offloads) {
        store_offload(header, first.offload);
        vectors_[vector++] = {header, kOffloadHeader};
      }
      vectors_[vector++] = {const_cast<uint8_t*>(first.data), first.length};
    } else {
      Offload offload;
      join.finish(header + kOffloadHeader, offload);
      store_offload(header, offload);
      vectors_[vector++] = {header, kOffloadHeader + join.header_length()};
      for (size_t j = i; j < end; ++j) {
        vectors_[vector++] = {const_cast<uint8_t*>(frames[j].data) + join.header_length(),
                              frames[j].length - join.header_length()};
      }
    }
    to.msg_iovlen = static_cast<size_t>(vectors_.data() + vector - to.msg_iov);
    carried_[message] = static_cast<uint32_t>(end - i);
    i = end;
  }
  return message;
}

bool AfPacketPort::passed_on() {
  int bytes = 0;
  return ::ioctl(socket_, SIOCOUTQ, &bytes) == 0 && bytes == 0;
}

PortLosses AfPacketPort::losses() {
  tpacket_stats statistics{};
  socklen_t size = sizeof statistics;
  // The kernel's counters start again at every read.
  if (::getsockopt(socket_, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0) {
    losses_.receive_overrun += statistics.tp_drops;
  }
  int pending = 0;
  size = sizeof pending;
  ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &pending, &size);
  losses_.stamps_corrected = stamps_.corrected();
  return losses_;
}

}  // namespace weir
