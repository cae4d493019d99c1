// MAC control frames: PAUSE (IEEE 802.3 annex 31B) and priority-based flow control (annex 31D, IEEE 802.1Q clause 36).
#pragma once

#include <array>
#include <cstdint>

#include "wire/packet.h"

namespace weir {

inline constexpr uint64_t kMacControlAddress = 0x0180c2000001;  // 01-80-C2-00-00-01, never forwarded by a bridge
inline constexpr uint16_t kMacControlPause = 0x0001;
inline constexpr uint16_t kMacControlPfc = 0x0101;
// Bytes that a frame must have: Ethernet header, opcode and parameters.
inline constexpr uint32_t kPauseLength = 18;
inline constexpr uint32_t kPfcLength = 34;

struct PfcFrame {
  uint8_t enable = 0;                          // bit p: quanta[p] applies to priority p; others keep their state
  std::array<uint16_t, kPriorities> quanta{};  // quanta of 512 bit times each; 0 resumes, 0xffff is the longest pause
};

// False unless `data` is an untagged frame of that kind, whatever its destination address. The upper byte of the class-enable
// vector is reserved and ignored. Quanta of priorities that are not enabled are copied as they are.
bool parse_pfc(const uint8_t* data, uint32_t length, PfcFrame& frame);
bool parse_pause(const uint8_t* data, uint32_t length, uint16_t& quanta);

constexpr bool is_mac_control(FrameKind kind) {
  return kind == FrameKind::pause || kind == FrameKind::pfc || kind == FrameKind::mac_control;
}
// Calls pfc(enable, quanta) or pause(quanta) with what a MAC control frame says. False for one that we do not know.
template <class Pfc, class Pause>
bool read_mac_control(const uint8_t* data, uint32_t length, const Pfc& pfc, const Pause& pause) {
  PfcFrame frame;
  uint16_t quanta = 0;
  if (parse_pfc(data, length, frame)) {
    pfc(frame.enable, frame.quanta);
  } else if (parse_pause(data, length, quanta)) {
    pause(quanta);
  } else {
    return false;
  }
  return true;
}

// Writes kMinimumFrame (60) bytes, padded with zero, to `out`; returns that length.
uint32_t build_pfc(uint8_t* out, uint64_t source_mac, const PfcFrame& frame);
uint32_t build_pause(uint8_t* out, uint64_t source_mac, uint16_t quanta);

}  // namespace weir
