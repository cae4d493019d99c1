/** Headers of frames and what is in them. The native core has its own in native/wire. */

/** Lengths, bytes; without FCS, IPv4 options and extensions of IPv6. */
export const kEthernetHeader = 14;
export const kVlanTag = 4;
export const kIpv4Header = 20;
export const kIpv6Header = 40;
export const kUdpHeader = 8;
export const kBth = 12;
export const kIcrc = 4;

export const kEtherType = {
  ipv4: 0x0800,
  arp: 0x0806,
  cnTag: 0x22e9,
  vlan: 0x8100,
  ipv6: 0x86dd,
  lldp: 0x88cc,
} as const;
/** Protocols of IPv4, and next headers of IPv6. */
export const kProtocol = { hopByHop: 0, icmp: 1, igmp: 2, udp: 17, icmpv6: 58 } as const;
/** The UDP destination port of RoCEv2. */
export const kRocePort = 4791;
/** Time to live and hop limit of packets that may cross routers. */
export const kHopLimit = 64;
