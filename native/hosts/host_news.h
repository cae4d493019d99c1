// What hosts of programs in virtual time have for connection management, which is TypeScript's.
#pragma once

#include <array>
#include <cstdint>

#include "base/describe.h"
#include "base/types.h"

namespace weir {

struct HostNews {
  // frame: the NIC has received one for queue pair 1; said: a program of librdmacm has said something at the NIC's socket; gone:
  // that session is over.
  enum class Kind : uint8_t { frame, said, gone };

  Kind kind = Kind::frame;
  uint32_t nic = 0;
  uint32_t session = 0;
  uint32_t process = 0;
  Column<uint8_t> bytes{};
};
constexpr auto words_of(HostNews::Kind) { return std::array{"frame", "said", "gone"}; }
void describe(auto& v, Of<HostNews> auto& news) {
  v.type("HostNews", "What a host with programs in virtual time has for connection management.");
  v("kind", news.kind,
    field::any("frame: for queue pair 1; said: by a program at the NIC's socket; gone: that session is over."));
  v("nic", news.nic, field::any("Of the host."));
  v("session", news.session, field::any("Number of it at that NIC; of a frame 0."));
  v("process", news.process, field::any("That has the session; of a frame 0."));
  v("bytes", news.bytes, field::any("Frame without FCS, or what was said."));
}

}  // namespace weir
