#include "wire/crc32.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
// GCC 12 takes the operands that AVX-512 intrinsics leave undefined for mistakes (its bug 105593).
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#ifndef __clang__
#pragma GCC diagnostic pop
#endif
#endif

namespace weir {
namespace {

static_assert(std::endian::native == std::endian::little, "the tables take little-endian words");

constexpr uint32_t kPolynomial = 0xedb88320;

constexpr uint32_t times_x(uint32_t value) { return value >> 1 ^ (value & 1 ? kPolynomial : 0); }

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the remainder of byte b followed by k zero bytes (slicing-by-8, Kounavis and Berry 2005).
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

uint32_t take_in(uint32_t crc, const uint8_t* data, size_t length) {
  for (; length >= 8; data += 8, length -= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xff];
  }
  for (; length > 0; ++data, --length) crc = crc >> 8 ^ kTables[0][(crc ^ *data) & 0xff];
  return crc;
}

uint32_t remainder_table(const uint8_t* data, size_t length, const CrcMask& mask) {
  uint8_t start[CrcMask::kBytes];
  const size_t masked = std::min(length, sizeof start);
  for (size_t i = 0; i < masked; ++i) start[i] = data[i] | mask.bits[i];
  return take_in(take_in(0, start, masked), data + masked, length - masked);
}

}  // namespace

uint32_t crc32(const uint8_t* data, size_t length, uint32_t seed) { return ~take_in(~seed, data, length); }

#if defined(__x86_64__)

// Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009): what a vector holds
// is multiplied by x to the power of the bits between it and a later one, and added to that. Here the odd bytes come first:
// zeros in front of them change nothing of a register that starts at 0, and so all else is whole vectors.
namespace {

#define WEIR_FOLD __attribute__((target("pclmul,ssse3,sse4.1")))
#define WEIR_FOLD_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul,ssse3,sse4.1")))

constexpr size_t kVector = 16;
constexpr size_t kWide = 64;

// x^n mod P as the multiplication of reflected words takes it.
constexpr int64_t power(int n) {
  uint32_t value = 0x80000000;
  for (int i = 0; i < n; ++i) value = times_x(value);
  return static_cast<int64_t>(value) << 1;
}
// The lower and the upper word of a vector are multiplied by these to move them `bits` on.
template <int bits>
inline constexpr int64_t kLow = power(bits + 32);
template <int bits>
inline constexpr int64_t kHigh = power(bits - 32);

WEIR_FOLD inline __m128i load(const uint8_t* data) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data)); }
WEIR_FOLD inline __m128i load(const uint8_t* data, const uint8_t* mask) { return _mm_or_si128(load(data), load(mask)); }
WEIR_FOLD inline __m128i fold(__m128i value, __m128i keys, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, keys, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, keys, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// 128 bits to 64, then Barrett reduction to 32.
WEIR_FOLD inline uint32_t reduce(__m128i value) {
  const __m128i low_words = _mm_setr_epi32(~0, 0, ~0, 0);
  const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);  // quotient, polynomial
  value = _mm_xor_si128(_mm_srli_si128(value, 8), _mm_clmulepi64_si128(value, _mm_cvtsi64_si128(kHigh<128>), 0x00));
  value = _mm_xor_si128(_mm_srli_si128(value, 4),
                        _mm_clmulepi64_si128(_mm_and_si128(value, low_words), _mm_cvtsi64_si128(power(64)), 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(value, low_words), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(value, quotient), 1));
}

// Control bytes of a shuffle that moves the first n bytes, read from kToEnd + n, to the end, behind zeros.
constexpr uint8_t kToEnd[2 * kVector] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                         0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,    2,    3,    4,    5,
                                         6,    7,    8,    9,    10,   11,   12,   13,   14,   15};

WEIR_FOLD uint32_t remainder_folded(const uint8_t* data, size_t length, const CrcMask& mask) {
  if (length < kVector) return remainder_table(data, length, mask);
  const __m128i keys = _mm_set_epi64x(kHigh<128>, kLow<128>);
  const uint8_t* bits = mask.bits.data();
  const size_t odd = (length - 1) % kVector + 1;
  __m128i value = _mm_shuffle_epi8(load(data, bits), load(kToEnd + odd));
  data += odd;
  bits += odd;
  length -= odd;
  if (length < 4 * kVector) {
    for (; length > 0; data += kVector, bits += kVector, length -= kVector) value = fold(value, keys, load(data, bits));
    return reduce(value);
  }
  // There are four, since each would have to wait for the one before; not in an array, which compilers keep in memory.
  const __m128i far_keys = _mm_set_epi64x(kHigh<512>, kLow<512>);
  __m128i first = fold(value, keys, load(data, bits));
  __m128i second = load(data + kVector, bits + kVector);
  __m128i third = load(data + 2 * kVector, bits + 2 * kVector);
  __m128i fourth = load(data + 3 * kVector, bits + 3 * kVector);
  for (data += 64, length -= 64; length >= 64; data += 64, length -= 64) {
    first = fold(first, far_keys, load(data));
    second = fold(second, far_keys, load(data + kVector));
    third = fold(third, far_keys, load(data + 2 * kVector));
    fourth = fold(fourth, far_keys, load(data + 3 * kVector));
  }
  const __m128i from_first = _mm_set_epi64x(kHigh<384>, kLow<384>), from_second = _mm_set_epi64x(kHigh<256>, kLow<256>);
  value = fold(first, from_first, fold(second, from_second, fold(third, keys, fourth)));
  for (; length > 0; data += kVector, length -= kVector) value = fold(value, keys, load(data));
  return reduce(value);
}

WEIR_FOLD_WIDE inline __m512i load_wide(const uint8_t* data) { return _mm512_loadu_si512(data); }
WEIR_FOLD_WIDE inline __m512i fold(__m512i value, __m512i keys, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(value, keys, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(value, keys, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

WEIR_FOLD_WIDE uint32_t remainder_wide(const uint8_t* data, size_t length, const CrcMask& mask) {
  if (length == 0) return 0;
  const __m512i keys = _mm512_broadcast_i32x4(_mm_set_epi64x(kHigh<512>, kLow<512>));
  const uint8_t* bits = mask.bits.data();
  const size_t odd = (length - 1) % kWide + 1;
  // Masked out bytes are not touched: what lies in front of `data` is not read.
  const __mmask64 there = ~uint64_t{0} << (kWide - odd);
  const auto before = [](const uint8_t* p, size_t n) {
    return reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(p) - n);
  };
  __m512i value = _mm512_or_si512(_mm512_maskz_loadu_epi8(there, before(data, kWide - odd)),
                                  _mm512_maskz_loadu_epi8(there, before(bits, kWide - odd)));
  data += odd;
  length -= odd;
  if (length > 0) {
    value = fold(value, keys, _mm512_or_si512(load_wide(data), load_wide(bits + odd)));
    data += kWide;
    length -= kWide;
  }
  if (length >= 3 * kWide) {
    const __m512i far_keys = _mm512_broadcast_i32x4(_mm_set_epi64x(kHigh<2048>, kLow<2048>));
    __m512i first = value, second = load_wide(data), third = load_wide(data + kWide), fourth = load_wide(data + 2 * kWide);
    for (data += 3 * kWide, length -= 3 * kWide; length >= 4 * kWide; data += 4 * kWide, length -= 4 * kWide) {
      first = fold(first, far_keys, load_wide(data));
      second = fold(second, far_keys, load_wide(data + kWide));
      third = fold(third, far_keys, load_wide(data + 2 * kWide));
      fourth = fold(fourth, far_keys, load_wide(data + 3 * kWide));
    }
    const __m512i from_first = _mm512_broadcast_i32x4(_mm_set_epi64x(kHigh<1536>, kLow<1536>));
    const __m512i from_second = _mm512_broadcast_i32x4(_mm_set_epi64x(kHigh<1024>, kLow<1024>));
    value = fold(first, from_first, fold(second, from_second, fold(third, keys, fourth)));
  }
  for (; length > 0; data += kWide, length -= kWide) value = fold(value, keys, load_wide(data));

  // The four vectors within one: each moved on to the last.
  const __m512i within = _mm512_set_epi64(0, 0, kHigh<128>, kLow<128>, kHigh<256>, kLow<256>, kHigh<384>, kLow<384>);
  const __m512i moved =
      _mm512_xor_si512(_mm512_clmulepi64_epi128(value, within, 0x00), _mm512_clmulepi64_epi128(value, within, 0x11));
  const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(moved), _mm512_extracti64x4_epi64(moved, 1));
  const __m128i sum = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  return reduce(_mm_xor_si128(sum, _mm512_extracti32x4_epi32(value, 3)));
}

#undef WEIR_FOLD
#undef WEIR_FOLD_WIDE

const std::array<CrcWay, 3> kAllWays = {{{"table", remainder_table}, {"folded", remainder_folded}, {"wide", remainder_wide}}};

// Returns how many of them this processor has. Not a constant expression: 0 until static initialisation.
size_t count_ways() {
  if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1")) return 1;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("vpclmulqdq");
  return wide ? 3 : 2;
}
const size_t kWays = count_ways();

}  // namespace

std::span<const CrcWay> crc32_ways() { return std::span(kAllWays).first(kWays); }

uint32_t crc32_remainder(const uint8_t* data, size_t length, const CrcMask& mask) {
  if (kWays == 3) return remainder_wide(data, length, mask);
  return kWays == 2 ? remainder_folded(data, length, mask) : remainder_table(data, length, mask);
}

#else

namespace {
constexpr CrcWay kTableWay{"table", remainder_table};
}

std::span<const CrcWay> crc32_ways() { return std::span(&kTableWay, 1); }
uint32_t crc32_remainder(const uint8_t* data, size_t length, const CrcMask& mask) { return remainder_table(data, length, mask); }

#endif

}  // namespace weir
