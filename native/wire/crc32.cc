#include "wire/crc32.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {
namespace {

static_assert(std::endian::native == std::endian::little, "the tables take little-endian words");

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the remainder of byte b followed by k zero bytes (slicing-by-8, Kounavis and Berry 2005).
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
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

}  // namespace

uint32_t crc32_table(const uint8_t* data, size_t length, uint32_t seed) {
  uint32_t crc = ~seed;
  for (; length >= 8; data += 8, length -= 8) {
    uint64_t word;
    std::memcpy(&word, data, sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xff];
  }
  for (; length > 0; ++data, --length) crc = crc >> 8 ^ kTables[0][(crc ^ *data) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

namespace {

// Not a constant expression: false until static initialisation, where crc32() merely takes the tables.
const bool kCanFold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
constexpr size_t kFoldBlock = 64;

__attribute__((target("pclmul,sse4.1"))) inline __m128i load(const uint8_t* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}
__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i value, __m128i keys, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, keys, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, keys, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

}  // namespace

bool crc32_can_fold() { return kCanFold; }

// Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), with the
// constants of its table for the reflected IEEE polynomial: x^n mod P for n = 4*128+32, 4*128-32, 128+32, 128-32, 64.
__attribute__((target("pclmul,sse4.1"))) uint32_t crc32_folded(const uint8_t* data, size_t length, uint32_t seed) {
  if (length < kFoldBlock) return crc32_table(data, length, seed);
  const __m128i four_keys = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i one_keys = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const __m128i last_key = _mm_set_epi64x(0, 0x0163cd6124);
  const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);  // quotient, polynomial
  const __m128i low_words = _mm_setr_epi32(~0, 0, ~0, 0);

  __m128i lane[4];
  for (size_t i = 0; i < 4; ++i) lane[i] = load(data + 16 * i);
  lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128(static_cast<int>(~seed)));
  for (data += kFoldBlock, length -= kFoldBlock; length >= kFoldBlock; data += kFoldBlock, length -= kFoldBlock) {
    for (size_t i = 0; i < 4; ++i) lane[i] = fold(lane[i], four_keys, load(data + 16 * i));
  }
  __m128i value = lane[0];
  for (size_t i = 1; i < 4; ++i) value = fold(value, one_keys, lane[i]);
  for (; length >= 16; data += 16, length -= 16) value = fold(value, one_keys, load(data));

  // 128 bits to 64, then Barrett reduction to 32.
  value = _mm_xor_si128(_mm_srli_si128(value, 8), _mm_clmulepi64_si128(value, one_keys, 0x10));
  value = _mm_xor_si128(_mm_srli_si128(value, 4), _mm_clmulepi64_si128(_mm_and_si128(value, low_words), last_key, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(value, low_words), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), barrett, 0x00);
  const uint32_t crc = static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(value, quotient), 1));
  return crc32_table(data, length, ~crc);
}

#else

bool crc32_can_fold() { return false; }
uint32_t crc32_folded(const uint8_t* data, size_t length, uint32_t seed) { return crc32_table(data, length, seed); }

#endif

uint32_t crc32(const uint8_t* data, size_t length, uint32_t seed) {
  return crc32_can_fold() ? crc32_folded(data, length, seed) : crc32_table(data, length, seed);
}

}  // namespace weir
