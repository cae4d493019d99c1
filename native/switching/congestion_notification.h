// Congestion notification (QCN) in a switch: IEEE 802.1Q clauses 30 to 33, formerly IEEE 802.1Qau.
//
// Up to 7 of the 8 priorities are congestion notification priority values (CNPVs). An egress queue at a CNPV has a congestion
// point (congestion/qcn_congestion_point.h), which samples the data frames that enter it and sends congestion notification
// messages (CNMs, wire/qcn.h) to their sources.
//
//   CNM           is
//   destination   the source of the sampled frame; leaves by the port where that frame came in
//   source        the address of the congested port
//   CPID          that address, then 13 bits of port number and 3 of priority
//   tags          those of the sampled frame: its VLAN, at the CNM's priority, and its CN-TAG
//   priority      cnm_priority. So has every CNM that passes, whatever it says: without a tag it says nothing, and has no DSCP
//   buffer        charged as if it had come in by the congested port, at cnm_priority: CNMs enter a bridge by the ingress
//                 multiplexer of the port whose queue they are about. Reasons for dropping one are counted at that port
//
// A switch that routes sends its CNMs as datagrams (wire/qcn.h, SwitchParameters::cnms_by_ip): from the router's address at the
// interface where its route to the source of the sampled frame leads, by that route, with a DSCP that is mapped to cnm_priority
// here. They encapsulate enough for a flow to be known. Their way is that of any packet, and neighbours are asked for. There is
// none where the sampled frame is no IP packet (cn_cp_sourceless_frames), or no route leads back (drop_ip_no_route). Those that
// pass have the priority of their DSCP, and the rules of edges here hold for them, too.
//
// CNMs that pass are forwarded by their destination as any frame is, and no CNM is ever sampled. A GSO super-frame for such a
// queue is cut into frames before it.
//
// The ports whose neighbours take part are a congestion notification domain, at each CNPV by itself. Its defence, by port and
// CNPV (clause 32.1, cnpdDefenseMode):
//
//   mode            at input                           at output                 queue
//   disabled        as if this were no CNPV            as if this were no CNPV   no congestion point
//   interior        the priority stays                 CN-TAGs are taken off     congestion point
//   interior ready  the priority stays                 CN-TAGs stay              congestion point
//   edge            gets the alternate priority        CN-TAGs are taken off     congestion point
//
// The alternate priority is that of the frame from there on, and is written into its 802.1Q tag, if it has one. It is not written
// into a DSCP: where the next switch trusts that, it has an edge of its own.
// CN-TAGs are of the priority at which the frame leaves; so those of CNMs stay, without which a source does not know its flow.
// A CNM that comes in by a port that is edge or disabled at the CNPV it is about is not of the domain, and is dropped: else a
// host outside could slow down those inside. The standard leaves that to the source's own checks.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"

namespace weir {

enum class CnDefence : uint8_t { disabled, interior, interior_ready, edge };
constexpr auto words_of(CnDefence) { return std::array{"disabled", "interior", "interior-ready", "edge"}; }

// Defence of a port whose neighbour is not known to take CN-TAGs.
inline constexpr std::array<CnDefence, kPriorities> kInterior{CnDefence::interior, CnDefence::interior, CnDefence::interior,
                                                              CnDefence::interior, CnDefence::interior, CnDefence::interior,
                                                              CnDefence::interior, CnDefence::interior};

}  // namespace weir
