#include "io/packet_filter.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <span>
#include <vector>

#include "base/native_error.h"
#include "wire/ethernet.h"
#include "wire/qcn.h"
#include "wire/udp.h"

namespace weir {
namespace {

void attach_filter(int socket, std::span<sock_filter> program) {
  const sock_fprog filter{static_cast<uint16_t>(program.size()), program.data()};
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0) {
    throw NativeError::from_errno("setsockopt", "cannot attach a packet filter", "");
  }
}

}  // namespace

// Classic BPF over the Ethernet frame; the kernel has taken any 802.1Q tag out before. It reads at constant offsets only, so what
// looks at a frame is there twice: for those with a CN-TAG, and for those without.
void accept_roce_only(int socket, const PortOptions& options, uint16_t blocks, bool alone) {
  constexpr uint16_t kLoadWord = BPF_LD | BPF_W | BPF_ABS, kLoadHalf = BPF_LD | BPF_H | BPF_ABS,
                     kLoadByte = BPF_LD | BPF_B | BPF_ABS, kHalfBehind = BPF_LD | BPF_H | BPF_IND,
                     kByteBehind = BPF_LD | BPF_B | BPF_IND, kHeaderLength = BPF_LDX | BPF_B | BPF_MSH;
  constexpr uint16_t kWordBehind = BPF_LD | BPF_W | BPF_IND, kAlu = BPF_ALU | BPF_K;
  constexpr uint8_t kRoce4 = 41, kRoce6 = 43, kBlock = 44, kDrop = 51, kAccept = 52;
  const uint8_t others = alone ? kDrop : kAccept;
  constexpr uint16_t kAll = UINT16_MAX;
  const uint8_t roce4 = blocks == kAll ? kAccept : kRoce4, roce6 = blocks == kAll ? kAccept : kRoce6;
  // Instruction number `at` goes to one number or another.
  const auto jump = [](uint16_t how, uint32_t value, int at, int if_so, int if_not) {
    return sock_filter{static_cast<uint16_t>(BPF_JMP | how | BPF_K), static_cast<uint8_t>(if_so - at - 1),
                       static_cast<uint8_t>(if_not - at - 1), value};
  };
  const auto equal = [&](uint32_t value, int at, int if_so, int if_not) { return jump(BPF_JEQ, value, at, if_so, if_not); };
  const int cnms = options.cnm_datagrams && !alone ? 40 : kDrop;
  const auto select = [&](uint32_t tag) {
    return std::to_array<sock_filter>({
        {kLoadHalf, 0, 0, tag + 12},  // 0 ethertype
        equal(kEthertypeMacControl, 1, kAccept, 2),
        equal(kEthertypeCnm, 2, others, 3),
        equal(ETH_P_ARP, 3, others, 4),
        equal(kEthertypeIpv4, 4, 5, 25),
        {kLoadByte, 0, 0, tag + 23},  // 5 protocol
        equal(IPPROTO_UDP, 6, 20, 7),
        equal(IPPROTO_ICMP, 7, 8, kDrop),
        {kLoadHalf, 0, 0, tag + 20},  // 8 flags and fragment offset
        jump(BPF_JSET, 0x3fff, 9, kDrop, 10),
        {kHeaderLength, 0, 0, tag + 14},  // 10
        {kByteBehind, 0, 0, tag + 14},    // 11 type: echo request 8, unreachable 3
        equal(8, 12, 13, 15),
        {kLoadWord, 0, 0, tag + 30},  // 13 destination
        equal(options.arp_address, 14, options.arp_address != 0 ? others : kDrop, kDrop),
        equal(3, 15, 16, kDrop),
        {kByteBehind, 0, 0, tag + 31},  // 16 protocol of the packet that is quoted
        equal(IPPROTO_UDP, 17, 18, kDrop),
        {kHalfBehind, 0, 0, tag + 44},  // 18 its UDP destination port, behind a header without options
        equal(kRocePort, 19, others, kDrop),
        {kLoadHalf, 0, 0, tag + 20},  // 20 fragment offset
        jump(BPF_JSET, alone ? 0x3fff : 0x1fff, 21, kDrop, 22),
        {kHeaderLength, 0, 0, tag + 14},  // 22
        {kHalfBehind, 0, 0, tag + 16},    // 23 UDP destination port
        equal(kRocePort, 24, roce4, cnms),
        equal(kEthertypeIpv6, 25, 26, kDrop),
        {kLoadByte, 0, 0, tag + 20},  // 26 next header
        equal(IPPROTO_UDP, 27, 38, 28),
        equal(IPPROTO_ICMPV6, 28, 29, kDrop),
        {kLoadByte, 0, 0, tag + 54},  // 29 type
        equal(135, 30, others, 31),   // neighbour solicitation
        equal(136, 31, others, 32),   // and advertisement
        equal(128, 32, options.echo_ipv6 ? others : kDrop, 33),
        equal(1, 33, 34, kDrop),      // unreachable
        {kLoadByte, 0, 0, tag + 68},  // 34 next header of the packet that is quoted
        equal(IPPROTO_UDP, 35, 36, kDrop),
        {kLoadHalf, 0, 0, tag + 104},  // 36 its UDP destination port
        equal(kRocePort, 37, others, kDrop),
        {kLoadHalf, 0, 0, tag + 56},  // 38 UDP destination port
        equal(kRocePort, 39, roce6, cnms),
        equal(kCnmUdpPort, 40, kAccept, kDrop),
        {kWordBehind, 0, 0, tag + 26},  // 41 kRoce4: the BTH's destination queue pair, behind 8 reserved bits
        {BPF_JMP | BPF_JA, 0, 0, kBlock - 43},
        {kLoadWord, 0, 0, tag + 66},              // 43 kRoce6: the same
        {kAlu | BPF_RSH, 0, 0, kLentBlockShift},  // 44 kBlock
        {kAlu | BPF_AND, 0, 0, kLentBlocks - 1},
        {BPF_MISC | BPF_TAX, 0, 0, 0},
        {BPF_LD | BPF_IMM, 0, 0, blocks},
        {BPF_ALU | BPF_RSH | BPF_X, 0, 0, 0},
        {kAlu | BPF_AND, 0, 0, 1},
        equal(1, 50, kAccept, kDrop),
        {BPF_RET | BPF_K, 0, 0, 0},           // 51 kDrop
        {BPF_RET | BPF_K, 0, 0, UINT32_MAX},  // 52 kAccept
    });
  };
  const auto with = select(kCnTag), without = select(0);
  std::vector<sock_filter> program = {{kLoadHalf, 0, 0, 12}};
  if (options.lldp && !alone) {
    program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kEthertypeLldp});
    program.push_back({BPF_RET | BPF_K, 0, 0, UINT32_MAX});
  }
  program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, static_cast<uint8_t>(with.size()), kEthertypeCnTag});
  program.insert(program.end(), with.begin(), with.end());
  program.insert(program.end(), without.begin(), without.end());
  attach_filter(socket, program);
}

void accept_source(int socket, uint16_t prefix) {
  constexpr uint32_t kSourceAddress = 6;
  auto program = std::to_array<sock_filter>({
      {BPF_LD | BPF_H | BPF_ABS, 0, 0, kSourceAddress},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, prefix},
      {BPF_RET | BPF_K, 0, 0, UINT32_MAX},
      {BPF_RET | BPF_K, 0, 0, 0},
  });
  attach_filter(socket, program);
}

}  // namespace weir
