// Capture files in the classic libpcap format (draft-ietf-opsawg-pcap), link type Ethernet: a total parser, a port that
// replays a file, and a writer.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "io/packet_port.h"

namespace weir {

// The longest record that libpcap itself writes or reads.
inline constexpr uint32_t kMaxPcapRecord = 262'144;

struct PcapRecord {
  Time stamp = 0;                  // ns since the epoch
  std::span<const uint8_t> bytes;  // as captured
  uint32_t original_length = 0;    // on the wire; more than bytes.size() if the capture had a snap length
};

// Walks over the bytes of a file, in either byte order, with microsecond or nanosecond stamps. Reads nothing outside.
class PcapReader {
 public:
  // `file` must outlive the reader. Throws NativeError INVALID_PCAP if the file header is not one we can read.
  explicit PcapReader(std::span<const uint8_t> file);

  // False at the end of the file, or at a record that is cut off or longer than kMaxPcapRecord: nothing after it can
  // be trusted, so the reader stops there for good and malformed() is 1.
  bool next(PcapRecord& record);
  uint64_t malformed() const { return malformed_; }
  bool nanoseconds() const { return unit_ == 1; }
  uint32_t snap_length() const { return snap_length_; }

 private:
  uint32_t word(size_t at) const;

  std::span<const uint8_t> file_;
  size_t at_ = 0;
  Time unit_ = 1;  // of the second word of a stamp, in ns
  bool swapped_ = false;
  uint32_t snap_length_ = 0;
  uint64_t malformed_ = 0;
};

// Replays the frames of a file: the first at `start` (in the worker's clock), the others as long after it as they were
// captured. Records that a snap length cut short are left out and counted as receive_truncated. Transmitted frames
// are consumed and forgotten.
class PcapReaderPort final : public PacketPort {
 public:
  // Reads the whole file, at most 1 GiB. Throws NativeError: ENOENT and the like, FILE_TOO_LARGE, INVALID_PCAP.
  PcapReaderPort(const std::string& path, Time start, const PortClock& clock);

  size_t receive(std::span<RxFrame> frames) override;
  void release(size_t) override {}
  Transmitted transmit(std::span<const TxFrame> frames) override { return {frames.size()}; }
  Time next_deadline() const override { return due_; }  // kNever when the file is over
  PortLosses losses() override { return losses_; }
  uint64_t malformed() const { return reader_.malformed(); }

 private:
  void advance();

  std::vector<uint8_t> file_;
  PcapReader reader_;
  const PortClock& clock_;
  const Time start_;
  bool begun_ = false;
  Time first_stamp_ = 0;
  PcapRecord record_;  // the next one
  Time due_;           // when it is due; never earlier than the one before
  PortLosses losses_;
};

using PcapRecordHeader = std::array<uint8_t, 16>;
// `stamp` in ns since the epoch, taken as 0 if negative.
PcapRecordHeader pcap_record_header(Time stamp, uint32_t captured_length, uint32_t original_length);

// Writes nanosecond files. Buffered; the destructor flushes.
class PcapWriter {
 public:
  // Replaces the file. Throws NativeError with the errno of open.
  PcapWriter(const std::string& path, uint32_t snap_length = kMaxPcapRecord);
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  // Keeps the first `snap_length` bytes of the frame.
  void write(Time stamp, std::span<const uint8_t> frame);
  // Bytes that already are records, or a part of one.
  void write_encoded(std::span<const uint8_t> records);
  void flush();
  // errno of the first write that failed (after which nothing more is written), 0 if none did.
  int error() const { return error_; }

 private:
  std::FILE* file_;
  uint32_t snap_length_;
  int error_ = 0;
};

}  // namespace weir
