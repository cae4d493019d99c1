// The commands of librdmacm as they are written: the beginning of each, and where it names what it is about (Linux,
// include/uapi/rdma/rdma_user_cm.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace weir {

// The beginning of every command of rdma_user_cm.h.
struct CommandHeader {
  uint32_t command;
  uint16_t in;
  uint16_t out;
};
enum : uint32_t { kCreateId = 0, kDestroyId = 1, kBindIp = 2, kResolveIp = 3, kResolveRoute = 4, kQueryRoute = 5, kConnect = 6 };
enum : uint32_t { kListen = 7, kAccept = 8, kReject = 9, kDisconnect = 10, kInitQpAttr = 11, kGetEvent = 12, kSetOption = 14 };
enum : uint32_t { kNotify = 15, kJoinGroup = 16, kLeaveGroup = 17, kMigrateId = 18, kLastCommand = 31 };
enum : uint32_t { kConnectRequest = 4, kDeviceRemoval = 11 };
inline constexpr size_t kEventBytes = 336;

template <class Value>
Value at(const void* bytes, size_t offset) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(bytes) + offset, sizeof value);
  return value;
}

using Bytes = std::vector<uint8_t>;

template <class Value>
void put(Bytes& bytes, size_t offset, Value value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Place where a command says that its answer goes; 0: it has none.
inline size_t response_offset(uint32_t command) {
  switch (command) {
    case kCreateId:
      return 16;
    case kDestroyId:
    case kQueryRoute:
    case kInitQpAttr:
    case kGetEvent:
    case kJoinGroup:
    case kLeaveGroup:
    case kMigrateId:
      return 8;
    default:
      return 0;
  }
}

// Place where it names its id; 0: it names none, or is not known.
inline size_t id_offset(uint32_t command) {
  switch (command) {
    case kDestroyId:
    case kQueryRoute:
    case kInitQpAttr:
    case kSetOption:
    case kLeaveGroup:
    case kMigrateId:
      return 16;
    case kResolveRoute:
    case kListen:
    case kReject:
    case kDisconnect:
    case kNotify:
      return 8;
    case kBindIp:
      return 44;
    case kResolveIp:
      return 64;
    case kConnect:
      return 280;
    case kAccept:
      return 288;
    case kJoinGroup:
      return 52;
    default:
      return 0;
  }
}

}  // namespace weir
