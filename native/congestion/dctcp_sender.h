// DCTCP at the sender: a window of packets in flight, from acknowledgements that say whether their packets were marked.
//
// Sources: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010 (section 3.1, equations 1 and 2); RFC 8257 (section 3.3 to
// 3.5); RFC 5681 for slow start and congestion avoidance, which DCTCP leaves as they are. Parameters are called as Linux calls
// them (net/ipv4/tcp_dctcp.c, ip route) where it has them.
//
//   at the end of each window of data, F being the share of its packets whose acknowledgements carried the echo:
//     alpha = (1 - g) alpha + g F                                                      (1)
//   at an echo, once per window of data, with alpha as it then is:
//     cwnd = ssthresh = max(cwnd (1 - alpha / 2), min_window)                          (2)
//   at an acknowledgement of n packets without echo, if the window is what holds the sender back:
//     cwnd += n        while cwnd < ssthresh (slow start)
//     cwnd += n / cwnd afterwards
//   at a loss, once per window of data:  cwnd = ssthresh = max(cwnd / 2, min_window)
//   at a timeout:                        ssthresh = max(cwnd / 2, min_window), cwnd = 1
//   at a timeout of what a loss or a timeout has had sent again: cwnd = 1
//
// Readings:
//   - The unit is the packet, as in Linux and in the paper's analysis; RFC 8257 counts bytes. All packets but the last of a
//     message have one length.
//   - A window of data for (1) ends when what had been sent at its beginning is acknowledged. One for (2) begins with the cut,
//     and ends when a packet that was sent after it is acknowledged (RFC 3168 section 6.1.2).
//   - An acknowledgement that both ends a window and carries an echo first updates alpha, then cuts: the order of RFC 8257's
//     steps. RFC 8257 cuts at the end of a window; like RFC 3168, Linux and the paper's analysis ("one RTT later") we cut at the
//     first echo.
//   - After a cut, acknowledgements without echo let the window grow again (RFC 3168 forbids it only for those with echo; Linux
//     waits for the end of the window).
//   - A loss is answered as by TCP, also where an echo has just cut (RFC 8257 section 3.5). Its window of data begins and ends as
//     that of (2) does, and in it echoes change nothing either.
//   - A timeout counts as of what was sent again while the oldest packet in flight is from before the last loss or timeout: then
//     ssthresh stays (RFC 5681 section 3.1). All that was in flight at a timeout is sent again.
//   - The least window is min_window, 2 as in Linux; RFC 8257 says nothing of it. A timeout goes down to 1 (RFC 5681).
//
// Parameters: describe(), below. Sources of the defaults: src/congestion/dctcp.ts.
//
// It looks at no times: acknowledgements are its clock.
#pragma once

#include <cstdint>
#include <limits>

#include "base/describe.h"
#include "congestion/congestion_control.h"
#include "congestion/written.h"

namespace weir {

struct DctcpParameters {
  uint8_t shift_g = 4;
  double alpha_on_init = 1;
  uint32_t initial_window = 10;
  uint32_t min_window = 2;
};

void describe(auto& v, Of<DctcpParameters> auto& p) {
  using namespace written;
  v.type("NativeDctcp", "What senders of DCTCP run on.");
  v.defaults();
  v("dctcp_shift_g", p.shift_g, whole("Gain of alpha: g = 2^-dctcp_shift_g; 4 is the paper's 1/16.", "log2", 0, 10));
  v("alpha_on_init", p.alpha_on_init,
    as("dctcp_alpha_on_init", whole("alpha at the start; 1024 is 1.", "1/1024", 0, 1024),
       field::fraction("alpha at the start.")));
  v("initcwnd", p.initial_window, checked(1, field::kMany, whole("Packets in flight at the start.", "packets", 1, 65'536)));
  v("min_cwnd", p.min_window,
    checked(1, field::kMany, whole("Packets in flight that a cut leaves at least.", "packets", 1, 65'536)));
}

// One per sending queue pair of a reliable connection. Parameters that change meanwhile count from the next start() on.
class DctcpSender : public CongestionControl {
 public:
  using Parameters = DctcpParameters;
  static constexpr const char* kName = "dctcp";
  static constexpr uint8_t kHears = kHearsAcknowledgements;

  void configure(const DctcpParameters& shared, const FlowTerms& terms);
  void start(Time now, Rate initial_rate);
  void on_ack(const Ack& ack);
  void on_loss(const Loss& loss);

  // Packets that may be in flight.
  uint32_t window() const { return static_cast<uint32_t>(cwnd_); }
  double alpha() const { return alpha_; }
  ControllerState state() const { return {.alpha = alpha_, .alpha_runs = true, .window = static_cast<double>(window())}; }

 private:
  void grow(double packets);
  void shrink(double to, uint32_t in_flight);
  bool cut_before() const { return acknowledged_ < cut_until_; }

  const DctcpParameters* parameters_ = nullptr;
  double g_ = 0;
  double min_window_ = 1;
  double most_ = 1;
  double cwnd_ = 1;
  double ssthresh_ = std::numeric_limits<double>::infinity();
  double alpha_ = 0;
  // Packets count from the first on.
  uint64_t acknowledged_ = 0;
  uint64_t window_until_ = 0;  // end of the window of (1)
  uint64_t cut_until_ = 0;     // end of the window of (2); 0: never cut
  uint64_t loss_until_ = 0;    // end of the window after a loss, timeouts among them; 0: none so far
  // Counts in the window of (1).
  uint64_t window_packets_ = 0;
  uint64_t window_echoes_ = 0;
};

}  // namespace weir
