// Extension headers of InfiniBand packets (IBTA volume 1 chapter 9), behind the BTH.
//
// load_* and store_* take a place with enough bytes (k...Header); classify() has checked them for received frames.
#pragma once

#include <cstdint>

#include "wire/bytes.h"

namespace weir {

// RDMA extended transport header: WRITE first/only and READ requests.
struct Reth {
  uint64_t virtual_address = 0;
  uint32_t rkey = 0;
  uint32_t dma_length = 0;  // bytes of the whole message
};

inline Reth load_reth(const uint8_t* p) { return {load_be64(p), load_be32(p + 8), load_be32(p + 12)}; }
inline void store_reth(uint8_t* p, const Reth& reth) {
  store_be64(p, reth.virtual_address);
  store_be32(p + 8, reth.rkey);
  store_be32(p + 12, reth.dma_length);
}

// ACK extended transport header.
struct Aeth {
  uint8_t syndrome = 0;  // 0x00..0x1f ACK with credits, 0x20..0x3f RNR NAK with timer, 0x60.. NAK code
  uint32_t msn = 0;      // 24 bits: completed messages
};

inline Aeth load_aeth(const uint8_t* p) { return {p[0], load_be32(p) & 0xffffff}; }
inline void store_aeth(uint8_t* p, const Aeth& aeth) {
  store_be32(p, static_cast<uint32_t>(aeth.syndrome) << 24 | (aeth.msn & 0xffffff));
}

// Atomic extended transport header: COMPARE & SWAP, FETCH & ADD.
struct AtomicEth {
  uint64_t virtual_address = 0;  // a multiple of 8
  uint32_t rkey = 0;
  uint64_t swap_add = 0;  // value to swap in or to add
  uint64_t compare = 0;
};

inline AtomicEth load_atomic(const uint8_t* p) { return {load_be64(p), load_be32(p + 8), load_be64(p + 12), load_be64(p + 20)}; }
inline void store_atomic(uint8_t* p, const AtomicEth& atomic) {
  store_be64(p, atomic.virtual_address);
  store_be32(p + 8, atomic.rkey);
  store_be64(p + 12, atomic.swap_add);
  store_be64(p + 20, atomic.compare);
}

// Datagram extended transport header.
struct Deth {
  uint32_t queue_key = 0;
  uint32_t source_qp = 0;  // 24 bits
};

inline Deth load_deth(const uint8_t* p) { return {load_be32(p), load_be32(p + 4) & 0xffffff}; }
inline void store_deth(uint8_t* p, const Deth& deth) {
  store_be32(p, deth.queue_key);
  store_be32(p + 4, deth.source_qp & 0xffffff);
}

}  // namespace weir
