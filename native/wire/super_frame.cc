#include "wire/super_frame.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "wire/checksum.h"
#include "wire/segmentation.h"

namespace weir {
namespace {

constexpr uint32_t kLongestDatagram = 65'535;
constexpr uint32_t kUdpLength = 4;  // offset from the start of the UDP header

// A RoCEv2 packet that fills its frame, without IP options and a UDP checksum.
bool has_plain_headers(const uint8_t* frame, uint32_t length, uint32_t& l3, uint32_t& header) {
  if (length < kEthernetHeader + kIpv4Header + kUdpHeader + kLeastRoceSegment) return false;
  l3 = kEthernetHeader;
  uint16_t ethertype = load_be16(frame + 12);
  if (ethertype == kEthertypeVlan) {
    l3 += kVlanTag;
    ethertype = load_be16(frame + 16);
  }
  const uint8_t* ip = frame + l3;
  if (ethertype == kEthertypeIpv4) {
    if (ip[0] != 0x45 || ip[9] != kProtocolUdp || (load_be16(ip + 6) & 0x3fff) != 0) return false;
  } else if (ethertype != kEthertypeIpv6 || ip[0] >> 4 != 6 || ip[6] != kProtocolUdp) {
    return false;
  }
  header = l3 + ip_header_length(ip) + kUdpHeader;
  if (header + kLeastRoceSegment > length || l3 + ip_total_length(ip) != length) return false;
  return load_be16(frame + header - 6) == kRocePort && load_be16(frame + header - 2) == 0;
}

// Returns 0 if both have the same bytes at [from, to). Compares words, which overlap where the length is no multiple of theirs.
template <uint32_t from, uint32_t to>
uint64_t difference(const uint8_t* a, const uint8_t* b) {
  using Word = std::conditional_t<(to - from >= 8), uint64_t, std::conditional_t<(to - from >= 4), uint32_t, uint16_t>>;
  uint64_t all = 0;
  const auto compare = [&](uint32_t at) {
    Word one, other;
    std::memcpy(&one, a + at, sizeof one);
    std::memcpy(&other, b + at, sizeof other);
    all |= one ^ other;
  };
  for (uint32_t at = from; at + sizeof(Word) <= to; at += sizeof(Word)) compare(at);
  if ((to - from) % sizeof(Word) != 0) compare(to - sizeof(Word));
  return all;
}

// Whether all but lengths, identification and checksum is as in the first.
template <uint32_t l3>
bool same_headers(const uint8_t* first, const uint8_t* next) {
  if (first[l3] >> 4 == 4) {
    constexpr uint32_t kUdp = l3 + kIpv4Header;
    return (difference<0, l3 + 2>(first, next) | difference<l3 + 6, l3 + 10>(first, next) |
            difference<l3 + 12, kUdp + kUdpLength>(first, next) | difference<kUdp + 6, kUdp + 8>(first, next)) == 0;
  }
  constexpr uint32_t kUdp = l3 + kIpv6Header;
  return (difference<0, l3 + 4>(first, next) | difference<l3 + 6, kUdp + kUdpLength>(first, next) |
          difference<kUdp + 6, kUdp + 8>(first, next)) == 0;
}

}  // namespace

bool SuperFrameJoin::begin(const uint8_t* frame, uint32_t length) {
  first_ = frame;
  packets_ = 1;
  ended_ = false;
  if (!has_plain_headers(frame, length, l3_, header_)) {
    ended_ = true;
    return false;
  }
  total_ = segment_ = length - header_;
  return true;
}

bool SuperFrameJoin::add(const uint8_t* frame, uint32_t length) {
  if (ended_ || length > header_ + segment_ || length < header_ + kLeastRoceSegment) return false;
  const uint32_t body = length - header_;
  if (header_ - l3_ + total_ + body > kLongestDatagram) return false;
  const bool tagged = l3_ != kEthernetHeader;
  if (!(tagged ? same_headers<kEthernetHeader + kVlanTag> : same_headers<kEthernetHeader>)(first_, frame)) return false;
  const uint8_t* ip = frame + l3_;
  if (ip[0] >> 4 == 4 && load_be16(ip + 4) != static_cast<uint16_t>(load_be16(first_ + l3_ + 4) + packets_)) return false;
  if (l3_ + ip_total_length(ip) != length) return false;
  total_ += body;
  ended_ = body < segment_;
  ++packets_;
  return true;
}

void SuperFrameJoin::take_back(uint32_t length) {
  total_ -= length - header_;
  ended_ = false;
  --packets_;
}

uint32_t SuperFrameJoin::room_for(uint32_t length) const { return (kLongestDatagram - (header_ - l3_)) / (length - header_); }

void SuperFrameJoin::finish(uint8_t* header, Offload& offload) const {
  std::memcpy(header, first_, header_);
  uint8_t* ip = header + l3_;
  const bool ipv4 = ip[0] >> 4 == 4;
  ip_set_length(ip, static_cast<uint16_t>(header_ - l3_ + total_));
  uint8_t* udp = header + header_ - kUdpHeader;
  const uint32_t udp_length = kUdpHeader + total_;
  store_be16(udp + kUdpLength, static_cast<uint16_t>(udp_length));
  // The interface starts the checksum of each packet from this.
  const uint32_t sum = checksum_add(udp_length + kProtocolUdp, ip + (ipv4 ? 12 : 8), ipv4 ? 8 : 32);
  store_be16(udp + kUdpChecksum, checksum_fold(sum));
  offload = {.checksum_start = static_cast<uint16_t>(header_ - kUdpHeader),
             .checksum_offset = kUdpChecksum,
             .segment_size = static_cast<uint16_t>(segment_),
             .header_length = static_cast<uint16_t>(header_),
             .gso = Gso::udp,
             .needs_checksum = true};
}

bool is_roce_super_frame(const uint8_t* frame, const Offload& offload) {
  const uint32_t header = offload.header_length;
  return offload.gso == Gso::udp && header >= kEthernetHeader + kIpv4Header + kUdpHeader && header <= kLongestSuperHeader &&
         offload.segment_size >= kLeastRoceSegment && load_be16(frame + header - 6) == kRocePort;
}

SuperFrameSlices::SuperFrameSlices(uint8_t* frame, uint32_t length, const Offload& offload)
    : at_(frame),
      left_(length - offload.header_length),
      l3_(network_offset(frame, length)),
      header_(offload.header_length),
      segment_(offload.segment_size) {
  std::memcpy(headers_, frame, header_);
  uint8_t* ip = headers_ + l3_;
  store_be16(headers_ + header_ - 2, 0);
  if (ip[0] >> 4 != 4) return;
  identification_ = load_be16(ip + 4);
  store_be16(ip + 2, 0);
  store_be16(ip + 4, 0);
  store_be16(ip + 10, 0);
  ip_sum_ = checksum_add(0, ip, ip_header_length(ip));
}

const uint8_t* SuperFrameSlices::next(uint32_t& length) {
  if (left_ == 0) return nullptr;
  const uint32_t body = std::min(segment_, left_);
  length = header_ + body;
  uint8_t* ip = headers_ + l3_;
  const uint32_t total = length - l3_;
  if (ip[0] >> 4 == 4) {
    store_be16(ip + 2, static_cast<uint16_t>(total));
    store_be16(ip + 4, identification_);
    store_be16(ip + 10, static_cast<uint16_t>(~checksum_fold(ip_sum_ + total + identification_)));
    identification_ = static_cast<uint16_t>(identification_ + step_);
  } else {
    store_be16(ip + 4, static_cast<uint16_t>(total - kIpv6Header));
  }
  store_be16(headers_ + header_ - 4, static_cast<uint16_t>(kUdpHeader + body));
  std::memcpy(at_, headers_, header_);
  const uint8_t* const packet = at_;
  at_ += segment_;
  left_ -= body;
  return packet;
}

void SuperFrameSlices::hold_identification() {
  uint8_t* const last = at_ - segment_ + l3_;
  if (step_ == 0 || last[0] >> 4 != 4) return;
  step_ = 0;
  identification_ = static_cast<uint16_t>(identification_ - 2);
  store_be16(last + 4, identification_);
  ip_set_length(last, load_be16(last + 2));
}

}  // namespace weir
