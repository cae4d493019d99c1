/** Headers of frames and what is in them. The native core has its own in native/wire. */

/** Lengths, bytes; without FCS, IPv4 options and extensions of IPv6. */
export const kEthernetHeader = 14;
export const kVlanTag = 4;
export const kIpv4Header = 20;
export const kIpv6Header = 40;
export const kUdpHeader = 8;
export const kBth = 12;
export const kIcrc = 4;

export const kProtocolUdp = 17;
/** The UDP destination port of RoCEv2. */
export const kRocePort = 4791;
/** Time to live and hop limit of packets that may cross routers. */
export const kHopLimit = 64;
