// Building RoCEv2 frames of one path: the headers below BTH are prepared once per queue pair.
#pragma once

#include <cstdint>
#include <optional>

#include "base/describe.h"
#include "wire/bth.h"
#include "wire/ethernet.h"
#include "wire/extension_headers.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace weir {

// The most that a frame has beyond its payload: tags, IPv6, the longest extension headers (those of a WRITE with immediate data
// and telemetry), pad and ICRC. No CNP is longer.
inline constexpr uint32_t kMaxHeaders = kEthernetHeader + kVlanTag + kCnTag + kIpv6Header + kUdpHeader + kBthHeader +
                                        kRethHeader + kImmediateHeader + kTelemetryHeader + 3 + kIcrc;

struct RocePath : LinkHeader {
  uint8_t ip_version = 4;           // 4 or 6
  uint8_t source_ip[16] = {};       // network order; IPv4 in the first 4
  uint8_t destination_ip[16] = {};  // the same
  uint8_t dscp = 0;                 // 0..63
  uint8_t ecn = 0;                  // 2 is ECT(0)
  uint8_t ttl = 64;
  uint16_t udp_source_port = 0;  // entropy for next-hop groups: 0xc000..0xffff by convention
};
void describe(auto& v, Of<RocePath> auto& path) {
  v.type("NativePath", "Addresses and headers of what a queue pair sends.");
  v("destination_mac", path.destination_mac, field::any("0: not known yet."));
  v("source_mac", path.source_mac, field::any("Of the NIC, or its own."));
  v("tagged", path.tagged, field::any("Frames have an 802.1Q tag."));
  v("vlan_tci", path.vlan_tci, field::any("When tagged."));
  v("ip_version", path.ip_version, field::any("4 or 6."));
  v("source_ip", path.source_ip, field::any("Network order; IPv4: 4 bytes."));
  v("destination_ip", path.destination_ip, field::any("The same."));
  v("dscp", path.dscp, field::within(0, 63, "Of the IP header."));
  v("ecn", path.ecn, field::within(0, 3, "Codepoint; 2 is ECT(0)."));
  v("ttl", path.ttl, field::optional(field::within(1, 255, "Or hop limit; 64.")));
  v("udp_source_port", path.udp_source_port, field::any("Entropy for next-hop groups: 0xc000 to 0xffff by convention."));
}

// Contents of BTH and extension headers; of the latter those are written that the opcode has. Writing counts the pad.
struct DataHeader : Bth {
  Deth deth;
  Reth reth;
  Aeth aeth;
  AtomicEth atomic;
  uint64_t atomic_original = 0;        // original value in an ATOMIC ACKNOWLEDGE
  uint32_t immediate = 0;              // or the R_Key of a SEND with invalidate
  uint16_t entropy = 0;                // entropy of the frame: see sprayed_port()
  const uint8_t* telemetry = nullptr;  // kTelemetryHeader bytes; null: with nothing written yet
};

// The UDP source port of a frame with that entropy value, where the path's is `port`: of the same quarter of all ports.
constexpr uint16_t sprayed_port(uint16_t port, uint16_t entropy) {
  return static_cast<uint16_t>((port & 0xc000) | ((port + entropy) & 0x3fff));
}

class RoceTemplate {
 public:
  explicit RoceTemplate(const RocePath& path);

  // Writes a whole frame without FCS and without Ethernet padding to `out`, which has room for kMaxHeaders + payload_length
  // bytes; returns its length. payload_length is at most a path MTU (4096 bytes). UDP checksum 0, pad bytes 0, MigReq 0.
  // `identification`: of an IPv4 header.
  uint32_t build_data(uint8_t* out, const DataHeader& header, const uint8_t* payload, uint32_t payload_length,
                      uint16_t identification = 0) const;

  // The same without the ICRC, which seal() writes. A reader that follows at once waits for the processor's store buffer.
  uint32_t build_unsealed(uint8_t* out, const DataHeader& header, const uint8_t* payload, uint32_t payload_length,
                          uint16_t identification) const;
  // `frame`, of `length` bytes with the ICRC, has its IP header at `l3_offset`.
  static void seal(uint8_t* frame, uint32_t l3_offset, uint32_t length);

  // build_data() up to the payload, which is left out with all that follows; returns the length of the whole frame.
  uint32_t build_headers(uint8_t* out, const DataHeader& header, uint32_t payload_length) const;

  // A congestion notification packet (annex A17.9.3): opcode 0x81, PSN 0, BECN, the P_Key of the packet that was marked, 16 zero
  // bytes. Sent as Not-ECT, so that no marker ever touches it; `pcp` (0..7) replaces the path's priority when tagged.
  uint32_t build_cnp(uint8_t* out, uint32_t destination_qp, uint8_t dscp, uint8_t pcp,
                     uint16_t partition_key = kDefaultPartitionKey) const;

  // Gives a frame that it has built another DSCP, and if it is tagged another priority. The ICRC does not cover them (IBTA
  // volume 1, A17.3.3).
  void set_class(uint8_t* frame, uint8_t dscp, uint8_t pcp) const;

  uint32_t l3_offset() const { return l3_offset_; }
  uint32_t bth_offset() const { return bth_offset_; }

 private:
  void write_headers(uint8_t* out) const;
  // Writes BTH and extension headers; returns where they end.
  uint32_t write_transport(uint8_t* out, const DataHeader& header, uint32_t pad) const;
  // Writes the lengths of a frame of `length` bytes, and the checksum of an IPv4 header whose words sum up to `ip_sum` without
  // its length.
  void set_length(uint8_t* out, uint32_t length, uint32_t ip_sum) const;

  uint32_t l3_offset_;
  uint32_t bth_offset_;
  uint32_t ip_sum_ = 0;
  uint8_t headers_[kEthernetHeader + kVlanTag + kCnTag + kIpv6Header + kUdpHeader] = {};
};

}  // namespace weir
