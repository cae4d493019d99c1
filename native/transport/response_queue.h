// Answers of a responder that wait, in the order of the requests: acknowledgements, READ responses, results of atomics (IBTA
// volume 1, 9.7.5.1.5, 9.4.5).
#pragma once

#include <cstdint>

#include "base/ring.h"
#include "transport/psn.h"

namespace weir {

struct Response {
  enum class Kind : uint8_t { acknowledge, negative, read, atomic };
  Kind kind = Kind::acknowledge;
  bool repeated = false;   // read, atomic: executed before
  bool echo = false;       // acknowledge, negative: of packets that met congestion
  uint8_t syndrome = 0;    // negative
  uint32_t psn = 0;        // that of the (next) packet
  uint32_t first_psn = 0;  // read
  uint32_t end_psn = 0;    // the one behind the last packet
  uint32_t sequence = 0;   // MSN
  uint32_t key = 0;        // read
  uint64_t address = 0;    // read: of the packet at first_psn
  uint32_t length = 0;     // read: from first_psn on
  uint64_t original = 0;   // atomic

  bool has_data() const { return kind == Kind::read || kind == Kind::atomic; }
};

class ResponseQueue : public Ring<Response> {
 public:
  ResponseQueue() = default;
  // Room for all that a peer may have under way, a READ or an atomic and an ACK in turns, and as much again that is repeated.
  // ACKs and NAKs that follow one another take one place.
  explicit ResponseQueue(uint32_t most_data) : Ring(std::bit_ceil(4 * (most_data + 1))) {}

  // READs and atomics that wait, those apart that are only repeated.
  uint32_t waiting_data() const {
    uint32_t data = 0;
    for (uint32_t i = 0; i < size(); ++i) data += (*this)[i].has_data() && !(*this)[i].repeated;
    return data;
  }
  // Takes back whatever waits for `psn` and later: it is asked for again.
  void truncate(uint32_t psn, uint32_t path_mtu) {
    while (!empty() && psn_distance(back().end_psn, psn) > 0 && psn_distance(back().psn, psn) >= 0) pop_back();
    if (!empty() && psn_distance(back().end_psn, psn) > 0 && back().kind == Response::Kind::read) {
      back().length = static_cast<uint32_t>(psn_distance(psn, back().first_psn)) * path_mtu;
      back().end_psn = psn;
    }
  }
};

}  // namespace weir
