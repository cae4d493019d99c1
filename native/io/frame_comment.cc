#include "io/frame_comment.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "wire/mac_control.h"
#include "wire/qcn.h"

namespace weir {
namespace {

// Text that grows, up to the room there is.
class Text {
 public:
  explicit Text(std::span<char> out) : out_(out) {}

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list values;
    va_start(values, format);
    const int wanted = std::vsnprintf(out_.data() + size_, out_.size() - size_, format, values);
    va_end(values);
    if (wanted > 0) size_ = std::min(size_ + static_cast<size_t>(wanted), out_.size() - 1);
  }
  // What most comments are made of, at every frame of a capture: without the detour through a format.
  void append(std::string_view text) {
    const size_t room = std::min(text.size(), out_.size() - 1 - size_);
    text.copy(out_.data() + size_, room);
    size_ += room;
  }
  // Begins another statement.
  void next() {
    if (size_ > 0) append("; ");
  }
  std::string_view view() const { return {out_.data(), size_}; }

 private:
  std::span<char> out_;
  size_t size_ = 0;
};

void add_duration(Text& text, double ns) {
  if (ns < 1e3) {
    text.add("%.4g ns", ns);
  } else if (ns < 1e6) {
    text.add("%.4g us", ns / 1e3);
  } else {
    text.add("%.4g ms", ns / 1e6);
  }
}

void add_rate(Text& text, double rate) {
  if (rate >= 1e9) {
    text.add("%.4g Gb/s", rate / 1e9);
  } else {
    text.add("%.4g Mb/s", rate / 1e6);
  }
}

void add_quanta(Text& text, uint16_t quanta, const CommentRate& rate) {
  text.add(" paused for %u quanta", quanta);
  if (rate.rate <= 0) return;
  text.add(" = ");
  add_duration(text, quanta * double{kPauseQuantumBits} * 1e9 / static_cast<double>(rate.rate));
  text.add(" at ");
  add_rate(text, static_cast<double>(rate.rate));
  if (rate.meant) text.add(" (meant)");
}

// "priority 3", or "priorities 3, 4".
void add_priorities(Text& text, uint8_t mask) {
  text.add((mask & (mask - 1)) == 0 ? "priority" : "priorities");
  const char* separator = " ";
  for (int p = 0; p < 8; ++p) {
    if ((mask >> p & 1) == 0) continue;
    text.add("%s%d", separator, p);
    separator = ", ";
  }
}

// Priorities of one pause stand together.
void add_pfc(Text& text, const PfcFrame& pfc, const CommentRate& rate) {
  text.add("PFC: ");
  if (pfc.enable == 0) text.add("no priority");
  uint8_t left = pfc.enable;
  while (left != 0) {
    int first = 0;
    while ((left >> first & 1) == 0) ++first;
    uint8_t same = 0;
    for (int p = first; p < 8; ++p) {
      if ((left >> p & 1) != 0 && pfc.quanta[p] == pfc.quanta[first]) same |= static_cast<uint8_t>(1 << p);
    }
    if (left != pfc.enable) text.add(", ");
    add_priorities(text, same);
    if (pfc.quanta[first] > 0) {
      add_quanta(text, pfc.quanta[first], rate);
    } else {
      text.add(" may send");
    }
    left &= static_cast<uint8_t>(~same);
  }
}

void add_pause(Text& text, uint16_t quanta, const CommentRate& rate) {
  text.add("PAUSE: the link");
  if (quanta > 0) {
    add_quanta(text, quanta, rate);
  } else {
    text.add(" may send");
  }
}

void add_cnm(Text& text, const CongestionNotification& cnm) {
  text.add("CNM for priority %u: fb %u of %u (reaction point cuts), queue %" PRId64 " B %s its set point", cnm.priority,
           cnm.quantized_feedback, kCnmMaxQuantizedFeedback, std::abs(cnm.queue_offset),
           cnm.queue_offset < 0 ? "below" : "above");
  text.add(", %" PRId64 " B %s than at the sample before", std::abs(cnm.queue_delta), cnm.queue_delta < 0 ? "less" : "more");
  text.add(", congestion point %016" PRIx64, cnm.congestion_point);
}

void add_ecn(Text& text, const CapturedFrame& frame) {
  constexpr std::string_view kNames[] = {"Not-ECT: cannot be marked", "ECT(1)", "ECT(0)", "CE: congestion experienced"};
  if (frame.ecn != 0 || frame.kind == FrameKind::roce) text.append(kNames[frame.ecn & 3]);
}

}  // namespace

std::string_view comment_on(const CapturedFrame& frame, std::span<const uint8_t> bytes, const CommentRate& rate,
                            std::span<char> out) {
  Text text(out);
  const auto length = static_cast<uint32_t>(bytes.size());
  PfcFrame pfc;
  uint16_t quanta = 0;
  CongestionNotification cnm;
  switch (frame.kind) {
    case FrameKind::pfc:
      if (parse_pfc(bytes.data(), length, pfc)) add_pfc(text, pfc, rate);
      break;
    case FrameKind::pause:
      if (parse_pause(bytes.data(), length, quanta)) add_pause(text, quanta, rate);
      break;
    case FrameKind::cnm:
      if (parse_cnm(bytes.data(), length, cnm)) add_cnm(text, cnm);
      break;
    case FrameKind::cnp:
      text.add("CNP for QP 0x%x (reaction point cuts)", frame.destination_qp);
      break;
    case FrameKind::mac_control:
      text.add("MAC control of an unknown kind");
      break;
    case FrameKind::roce:
    case FrameKind::other:
      if (frame.is_ip) add_ecn(text, frame);
  }
  if (frame.refusal != Refusal::none) {
    text.next();
    text.add("not understood: %s", to_string(frame.refusal));
  }
  if (frame.segment_size > 0) {
    text.next();
    text.add("super-frame: the interface cuts it into segments of %u bytes", frame.segment_size);
  } else if (frame.needs_checksum) {
    text.next();
    text.append("checksum left to the interface");
  }
  return text.view();
}

}  // namespace weir
