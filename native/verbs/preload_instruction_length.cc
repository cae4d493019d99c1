#include "verbs/preload_instruction_length.h"

#include <algorithm>
#include <iterator>

namespace weir {
namespace {

constexpr size_t kLongest = 15;

// What follows an opcode.
struct Rest {
  bool modrm = false;
  size_t immediate = 0;
  bool known = true;
};
constexpr Rest kUnknown{.known = false};

struct Prefixes {
  bool operand = false;  // 66: words instead of doublewords
  bool address = false;  // 67
  bool wide = false;     // REX.W
};

template <size_t n>
bool is_of(uint8_t opcode, const uint8_t (&list)[n]) {
  return std::find(std::begin(list), std::end(list), opcode) != std::end(list);
}

size_t doubleword(const Prefixes& prefixes) { return prefixes.operand && !prefixes.wide ? 2 : 4; }

// Table A-2. Prefixes and escapes are not asked for.
Rest of_one_byte(uint8_t opcode, const Prefixes& prefixes) {
  constexpr uint8_t kNone[] = {0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37,
                               0x3f, 0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea};
  if (is_of(opcode, kNone)) return kUnknown;
  const uint8_t column = opcode & 7;
  if (opcode < 0x40) return column < 4 ? Rest{true} : Rest{false, column == 4 ? 1 : doubleword(prefixes)};
  if (opcode < 0x60) return {};
  if (opcode < 0x70) {
    if (opcode == 0x63) return {true};
    if (opcode == 0x68) return {false, doubleword(prefixes)};
    if (opcode == 0x69) return {true, doubleword(prefixes)};
    if (opcode == 0x6a) return {false, 1};
    if (opcode == 0x6b) return {true, 1};
    return {};
  }
  if (opcode < 0x80) return {false, 1};
  if (opcode < 0x84) return {true, opcode == 0x81 ? doubleword(prefixes) : 1};
  if (opcode < 0x90) return {true};
  if (opcode < 0xa0) return {};
  if (opcode < 0xa4) return {false, prefixes.address ? size_t{4} : size_t{8}};
  if (opcode < 0xb0) return {false, opcode == 0xa8 ? 1 : opcode == 0xa9 ? doubleword(prefixes) : 0};
  if (opcode < 0xb8) return {false, 1};
  if (opcode < 0xc0) return {false, prefixes.wide ? 8 : doubleword(prefixes)};
  switch (opcode) {
    case 0xc0:
    case 0xc1:
    case 0xc6:
      return {true, 1};
    case 0xc2:
    case 0xca:
      return {false, 2};
    case 0xc7:
      return {true, doubleword(prefixes)};
    case 0xc8:
      return {false, 3};
    case 0xcd:
      return {false, 1};
    default:
      break;
  }
  if (opcode >= 0xd0 && opcode <= 0xdf) return {opcode != 0xd7};
  // In 64-bit mode the displacement of a near call or jump is a doubleword; 66 before it means one thing to some processors and
  // another to others.
  if (opcode == 0xe8 || opcode == 0xe9) return prefixes.operand && !prefixes.wide ? kUnknown : Rest{false, 4};
  if (opcode >= 0xe0 && opcode <= 0xeb) return {false, opcode < 0xe8 || opcode == 0xeb ? size_t{1} : size_t{0}};
  return {opcode == 0xf6 || opcode == 0xf7 || opcode >= 0xfe};
}

// Table A-3, behind 0f, which VEX and EVEX have as their first map.
Rest of_two_bytes(uint8_t opcode) {
  constexpr uint8_t kAlone[] = {0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0e, 0x30, 0x31, 0x32, 0x33,
                                0x34, 0x35, 0x37, 0x77, 0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa};
  constexpr uint8_t kByte[] = {0x0f, 0x70, 0x71, 0x72, 0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6};
  constexpr uint8_t kNone[] = {0x04, 0x0a, 0x0c, 0x24, 0x25, 0x26, 0x27, 0x36, 0x39, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f};
  if (is_of(opcode, kNone)) return kUnknown;
  if (is_of(opcode, kAlone) || (opcode >= 0xc8 && opcode <= 0xcf)) return {};
  if (opcode >= 0x80 && opcode <= 0x8f) return {false, 4};
  return {true, is_of(opcode, kByte) ? size_t{1} : size_t{0}};
}

Rest of_map(unsigned map, uint8_t opcode) {
  if (map == 1) return opcode == 0x77 ? Rest{} : of_two_bytes(opcode);
  if (map == 2 || map == 5 || map == 6) return {true};
  return map == 3 ? Rest{true, 1} : kUnknown;
}

// The bytes of an instruction, one after another.
class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> code) : code_(code.first(std::min(code.size(), kLongest))) {}
  uint8_t next() { return at_ < code_.size() ? code_[at_++] : (ended_ = true, uint8_t{0}); }
  uint8_t peek() const { return at_ < code_.size() ? code_[at_] : 0; }
  void advance(size_t bytes) { at_ += bytes; }
  size_t length() const { return ended_ || at_ > code_.size() ? 0 : at_; }

 private:
  std::span<const uint8_t> code_;
  size_t at_ = 0;
  bool ended_ = false;
};

// ModR/M, SIB and displacement (tables 2-2 and 2-3). Returns ModR/M.
uint8_t skip_operand(Bytes& bytes) {
  const uint8_t modrm = bytes.next();
  const unsigned mod = modrm >> 6;
  if (mod == 3) return modrm;
  unsigned base = modrm & 7;
  if (base == 4) base = bytes.next() & 7;
  if (mod == 1) bytes.advance(1);
  if (mod == 2 || (mod == 0 && base == 5)) bytes.advance(4);
  return modrm;
}

}  // namespace

size_t instruction_length(std::span<const uint8_t> code) {
  constexpr uint8_t kLegacy[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3};
  Bytes bytes(code);
  Prefixes prefixes;
  while (is_of(bytes.peek(), kLegacy)) {
    const uint8_t prefix = bytes.next();
    prefixes.operand |= prefix == 0x66;
    prefixes.address |= prefix == 0x67;
  }
  if ((bytes.peek() & 0xf0) == 0x40) prefixes.wide = (bytes.next() & 8) != 0;
  const uint8_t opcode = bytes.next();
  Rest rest;
  if (opcode == 0xc5) {
    bytes.advance(1);
    rest = of_map(1, bytes.next());
  } else if (opcode == 0xc4) {
    const unsigned map = bytes.next() & 0x1f;
    bytes.advance(1);
    rest = of_map(map, bytes.next());
  } else if (opcode == 0x62) {
    const unsigned map = bytes.next() & 7;
    bytes.advance(2);
    rest = of_map(map, bytes.next());
  } else if (opcode == 0x0f) {
    const uint8_t second = bytes.next();
    if (second == 0x38)
      rest = of_map(2, bytes.next());
    else if (second == 0x3a)
      rest = of_map(3, bytes.next());
    else
      rest = of_two_bytes(second);
  } else {
    rest = of_one_byte(opcode, prefixes);
  }
  if (!rest.known) return 0;
  const uint8_t modrm = rest.modrm ? skip_operand(bytes) : 0;
  // Of these groups, TEST alone has an immediate.
  if ((opcode == 0xf6 || opcode == 0xf7) && ((modrm >> 3) & 7) < 2) rest.immediate = opcode == 0xf6 ? 1 : doubleword(prefixes);
  bytes.advance(rest.immediate);
  return bytes.length();
}

}  // namespace weir
