#include "io/pcap_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/native_error.h"

namespace weir {
namespace {

constexpr uint32_t kMagicNanoseconds = 0xa1b23c4d;
constexpr uint32_t kMagicMicroseconds = 0xa1b2c3d4;
constexpr uint32_t kMagicPcapng = 0x0a0d0d0a;  // the same in both byte orders
constexpr uint32_t kLinkTypeEthernet = 1;
constexpr size_t kFileHeader = 24;
constexpr size_t kRecordHeader = 16;
constexpr size_t kMaxFile = size_t{1} << 30;

uint32_t host_word(const uint8_t* at) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

NativeError invalid(const std::string& message, const std::string& hint) {
  return {"INVALID_PCAP", 0, "", "not a capture that can be read: " + message, hint};
}

std::vector<uint8_t> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) throw NativeError::from_errno("open", "cannot open " + path, "");
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> chunk(1 << 20);
  size_t got = 0;
  while ((got = std::fread(chunk.data(), 1, chunk.size(), file.get())) > 0) {
    if (bytes.size() + got > kMaxFile) {
      throw NativeError("FILE_TOO_LARGE", 0, "", path + " is larger than 1 GiB", "cut it, for example with editcap -c");
    }
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got));
  }
  if (std::ferror(file.get()) != 0) throw NativeError::from_errno("read", "cannot read " + path, "");
  return bytes;
}

}  // namespace

PcapReader::PcapReader(std::span<const uint8_t> file) : file_(file), at_(kFileHeader) {
  if (file.size() < kFileHeader) throw invalid("shorter than a file header", "");
  const uint32_t magic = host_word(file.data());
  const uint32_t reversed = __builtin_bswap32(magic);
  swapped_ = reversed == kMagicNanoseconds || reversed == kMagicMicroseconds;
  if (magic == kMagicPcapng) throw invalid("it is in pcapng format", "convert it with editcap -F nsecpcap");
  if (!swapped_ && magic != kMagicNanoseconds && magic != kMagicMicroseconds) throw invalid("no pcap magic number", "");
  unit_ = magic == kMagicNanoseconds || reversed == kMagicNanoseconds ? 1 : kMicrosecond;
  const bool big_endian = swapped_ == (std::endian::native == std::endian::little);
  const int major = big_endian ? file[4] << 8 | file[5] : file[5] << 8 | file[4];
  if (major != 2) throw invalid("version " + std::to_string(major) + ", and only 2 is known", "");
  snap_length_ = word(16);
  const uint32_t link_type = word(20);
  if (link_type != kLinkTypeEthernet) {
    throw invalid("link type " + std::to_string(link_type) + " is not Ethernet (1)", "capture on one Ethernet interface");
  }
}

uint32_t PcapReader::word(size_t at) const {
  const uint32_t value = host_word(file_.data() + at);
  return swapped_ ? __builtin_bswap32(value) : value;
}

bool PcapReader::next(PcapRecord& record) {
  const size_t left = file_.size() - at_;
  if (left == 0) return false;
  const uint32_t length = left < kRecordHeader ? 0 : word(at_ + 8);
  if (left < kRecordHeader || length > kMaxPcapRecord || length > left - kRecordHeader) {
    ++malformed_;
    at_ = file_.size();
    return false;
  }
  record.stamp = Time{word(at_)} * kSecond + Time{word(at_ + 4)} * unit_;
  record.bytes = file_.subspan(at_ + kRecordHeader, length);
  record.original_length = word(at_ + 12);
  at_ += kRecordHeader + length;
  return true;
}

PcapReaderPort::PcapReaderPort(const std::string& path, Time start, const PortClock& clock)
    : file_(read_file(path)), reader_(file_), clock_(clock), start_(start), due_(start) {
  advance();
}

void PcapReaderPort::advance() {
  do {
    if (!reader_.next(record_)) {
      due_ = kNever;
      return;
    }
    if (!begun_) first_stamp_ = record_.stamp;
    begun_ = true;
    if (record_.bytes.size() < record_.original_length) ++losses_.receive_truncated;
  } while (record_.bytes.size() < record_.original_length);
  due_ = std::max(due_, start_ + (record_.stamp - first_stamp_));
}

size_t PcapReaderPort::receive(std::span<RxFrame> frames) {
  size_t count = 0;
  for (; count < frames.size() && due_ != kNever && due_ <= clock_.now; advance()) {
    frames[count] = RxFrame{};
    frames[count].data = record_.bytes.data();
    frames[count].length = static_cast<uint32_t>(record_.bytes.size());
    frames[count].stamp = due_;
    ++count;
  }
  return count;
}

PcapRecordHeader pcap_record_header(Time stamp, uint32_t captured_length, uint32_t original_length) {
  stamp = std::max<Time>(stamp, 0);
  const std::array<uint32_t, 4> words = {static_cast<uint32_t>(stamp / kSecond), static_cast<uint32_t>(stamp % kSecond),
                                         captured_length, original_length};
  return std::bit_cast<PcapRecordHeader>(words);
}

PcapWriter::PcapWriter(const std::string& path, uint32_t snap_length)
    : file_(std::fopen(path.c_str(), "wbe")), snap_length_(std::min(snap_length, kMaxPcapRecord)) {
  if (file_ == nullptr) throw NativeError::from_errno("open", "cannot write " + path, "");
  const std::array<uint32_t, 6> header = {
      kMagicNanoseconds, std::endian::native == std::endian::little ? 0x0004'0002u : 0x0002'0004u, 0, 0, snap_length_,
      kLinkTypeEthernet};
  write_encoded(std::bit_cast<std::array<uint8_t, kFileHeader>>(header));
}

PcapWriter::~PcapWriter() { std::fclose(file_); }

void PcapWriter::write(Time stamp, std::span<const uint8_t> frame) {
  const auto original = static_cast<uint32_t>(frame.size());
  const uint32_t captured = std::min(original, snap_length_);
  write_encoded(pcap_record_header(stamp, captured, original));
  write_encoded(frame.first(captured));
}

void PcapWriter::write_encoded(std::span<const uint8_t> records) {
  if (error_ != 0 || records.empty()) return;
  if (std::fwrite(records.data(), 1, records.size(), file_) != records.size()) error_ = errno;
}

void PcapWriter::flush() {
  if (error_ == 0 && std::fflush(file_) != 0) error_ = errno;
}

}  // namespace weir
