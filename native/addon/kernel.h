// Requests of JavaScript to the kernel: see src/native/types.ts.
#pragma once

#include <napi.h>

namespace weir {

// openSocket, holdUdpPort, openTcpSocket, tcpInfo, openLinkSocket, readLink, ethtool, tryXdpProgram, tryLiveFrames, peerRunsXdp.
void define_kernel(Napi::Object& exports);

}  // namespace weir
