// Needs of a socket for programs beyond Node.js: who is at the other end, and descriptors sent along or taken.
#pragma once

#include <napi.h>

#include <cstdint>

#include "base/describe.h"

namespace weir {

struct PeerCredentials {
  uint32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
};
void describe(auto& v, Of<PeerCredentials> auto& peer) {
  v.type("PeerCredentials", "Who has connected to a unix socket.");
  v("pid", peer.pid, field::any("Process; 0: of another pid namespace."));
  v("uid", peer.uid, field::any("Effective user."));
  v("gid", peer.gid, field::any("Effective group."));
}

// peerCredentials, takeDescriptor, readProgramRequest, programRequestBytes, mostPrograms, answerProgram.
void define_program_socket(Napi::Object& exports);

}  // namespace weir
