// An IP address as two words, for whoever looks it up by its bits.
#pragma once

#include <cstdint>

#include "wire/bytes.h"
#include "wire/ip.h"

namespace weir {

// An IP address from the most significant bit of `high` on; what is behind it is 0.
struct AddressBits {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const AddressBits&) const = default;

  // Loads 4 or 16 bytes in network order.
  static AddressBits load(uint8_t version, const uint8_t* bytes) {
    if (version == 6) return {load_be64(bytes), load_be64(bytes + 8)};
    return {uint64_t{load_be32(bytes)} << 32, 0};
  }
  static AddressBits of(const IpAddress& address) { return load(address.version, address.bytes); }
  void store(uint8_t version, uint8_t* bytes) const {
    if (version == 6) {
      store_be64(bytes, high);
      store_be64(bytes + 8, low);
    } else {
      store_be32(bytes, static_cast<uint32_t>(high >> 32));
    }
  }
  // Returns the address with all bits from `length` on cleared.
  AddressBits first(uint32_t length) const {
    if (length >= 128) return *this;
    if (length > 64) return {high, low & ~(~uint64_t{0} >> (length - 64))};
    return {length == 64 ? high : high & ~(~uint64_t{0} >> length), 0};
  }
  // Six bits from `depth` on; 0 behind the end.
  uint32_t chunk(uint32_t depth) const {
    if (depth <= 58) return static_cast<uint32_t>(high >> (58 - depth)) & 63;
    if (depth < 64) return static_cast<uint32_t>(high << (depth - 58) | low >> (122 - depth)) & 63;
    return depth <= 122 ? static_cast<uint32_t>(low >> (122 - depth)) & 63 : 0;
  }
};

}  // namespace weir
