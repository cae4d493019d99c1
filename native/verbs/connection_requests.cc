#include "verbs/connection_requests.h"

#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "verbs/connection_ids.h"
#include "verbs/connection_nics.h"

namespace weir {
namespace {

// They are never destroyed, as threads of the program run while it ends.
ConnectionIds& ids = *new ConnectionIds;
std::mutex ids_mutex;
ConnectionCommands commands[kMostNics];

// Reads a word of an answer that may be too short for it.
uint32_t word_of(const ConnectionAnswer& answer, size_t offset) {
  return answer.bytes.size() >= offset + sizeof(uint32_t) ? at<uint32_t>(answer.bytes.data(), offset) : 0;
}

ConnectionAnswer refused(int error) { return {.error = error, .taken = 0, .bytes = {}}; }

ConnectionAnswer word(uint32_t value) {
  Bytes bytes(sizeof value);
  put(bytes, 0, value);
  return {.error = 0, .taken = 0, .bytes = bytes};
}

Bytes small_command(uint32_t command, size_t length) {
  Bytes bytes(length);
  put(bytes, 0, CommandHeader{command, static_cast<uint16_t>(length - sizeof(CommandHeader)), 0});
  return bytes;
}

// The daemon's part of an id ends; also that of a daemon that is gone, so that librdmacm lets go of it.
ConnectionAnswer end_at(size_t nic, uint64_t key, uint32_t command, uint32_t number) {
  Bytes bytes = small_command(command, 24);
  put(bytes, 16, number);
  ConnectionAnswer answer = commands[nic].ask(connection_nics()[nic].daemon, key, bytes, {});
  return answer.error == ENODEV || answer.error == EBADF ? word(0) : answer;
}

ConnectionAnswer create(ConnectionRequest& request) {
  ConnectionId id{.key = request.key, .uid = at<uint64_t>(request.bytes.data(), 8)};
  int error = ENODEV;
  const size_t nics = connection_nics().size();
  for (size_t nic = 0; nic < nics && (error == 0 || error == ENODEV); ++nic) {
    const ConnectionAnswer answer = request.ask(nic, 0);
    if (answer.error == 0) id.numbers[nic] = word_of(answer, 0);
    if (answer.error != ENODEV) error = answer.error;
  }
  uint32_t number = 0;
  if (error == 0) {
    const std::lock_guard lock(ids_mutex);
    number = ids.add(id);
    if (number == 0) error = ENOMEM;
  }
  if (error == 0) return word(number);
  for (size_t nic = 0; nic < nics; ++nic) {
    if (id.numbers[nic] != 0) end_at(nic, request.key, kDestroyId, id.numbers[nic]);
  }
  return refused(error);
}

ConnectionAnswer destroy(const ConnectionRequest& request, const ConnectionId& id) {
  uint32_t reported = 0;
  ConnectionAnswer last;
  for (size_t nic = 0; nic < connection_nics().size(); ++nic) {
    if (id.numbers[nic] == 0) continue;
    last = end_at(nic, request.key, request.header.command, id.numbers[nic]);
    if (last.error != 0) return last;
    reported += word_of(last, 0);
  }
  const std::lock_guard lock(ids_mutex);
  ids.remove(request.id);
  const uint32_t taken = last.taken;
  last = word(reported);
  last.taken = taken;
  return last;
}

// It is one NIC's from now on.
void settle(const ConnectionRequest& request, ConnectionId& id, size_t chosen) {
  const size_t nic = id.numbers[chosen] != 0 ? chosen : id.nic();
  for (size_t other = 0; other < connection_nics().size(); ++other) {
    if (other == nic || id.numbers[other] == 0) continue;
    end_at(other, request.key, kDestroyId, id.numbers[other]);
    id.numbers[other] = 0;
  }
}

// Asks all NICs at which it is. A refusal of one of them counts, unless it is gone.
ConnectionAnswer ask_all(ConnectionRequest& request, const ConnectionId& id) {
  ConnectionAnswer first = refused(ENODEV);
  for (size_t nic = 0; nic < connection_nics().size(); ++nic) {
    if (id.numbers[nic] == 0) continue;
    ConnectionAnswer answer = request.ask(nic, id.numbers[nic]);
    if (answer.error == ENODEV) continue;
    if (answer.error != 0) return answer;
    if (first.error != 0) first = std::move(answer);
  }
  return first;
}

// Binds to all addresses: with one port at all NICs, which the first of them chooses if the program does not.
ConnectionAnswer bind_all(ConnectionRequest& request, const ConnectionId& id) {
  constexpr size_t kPort = 16 + 2;
  if (at<uint16_t>(request.bytes.data(), kPort) != 0) return ask_all(request, id);
  const size_t first = id.nic();
  ConnectionAnswer answer = request.ask(first, id.numbers[first]);
  Bytes query = small_command(kQueryRoute, 24);
  put(query, 16, id.numbers[first]);
  if (answer.error != 0) return answer;
  const ConnectionAnswer route = commands[first].ask(connection_nics()[first].daemon, request.key, query, {});
  if (route.error != 0 || route.bytes.size() < 140) return refused(ENODEV);
  put(request.bytes, kPort, at<uint16_t>(route.bytes.data(), 136 + 2));
  ConnectionId others = id;
  others.numbers[first] = 0;
  return others.places() == 0 ? answer : ask_all(request, others);
}

// Asks before the id has one NIC.
ConnectionAnswer ask_somewhere(ConnectionRequest& request, ConnectionId& id) {
  switch (request.header.command) {
    case kSetOption:
      return ask_all(request, id);
    case kBindIp: {
      const auto address = address_at(request.bytes.data(), 16);
      id.bound = true;
      if (address && is_any(*address)) return bind_all(request, id);
      if (address) settle(request, id, nic_with(*address).value_or(0));
      break;
    }
    case kListen: {
      if (!id.bound) {
        ConnectionRequest bind = request;
        bind.header.command = kBindIp;
        bind.bytes = small_command(kBindIp, 48);
        put(bind.bytes, 16, uint16_t{AF_INET6});
        if (ConnectionAnswer answer = bind_all(bind, id); answer.error != 0) return answer;
        id.bound = true;
      }
      return ask_all(request, id);
    }
    case kResolveIp: {
      const auto source = address_at(request.bytes.data(), 8);
      const auto destination = address_at(request.bytes.data(), 36);
      if (source && !is_any(*source)) {
        settle(request, id, nic_with(*source).value_or(0));
      } else if (destination) {
        settle(request, id, is_any(*destination) ? id.nic() : nic_towards(*destination));
      }
      break;
    }
    default:
      break;
  }
  const size_t nic = id.nic();
  return nic == kMostNics ? refused(ENODEV) : request.ask(nic, id.numbers[nic]);
}

ConnectionAnswer migrate(ConnectionRequest& request, const ConnectionId& id) {
  uint32_t reported = 0;
  uint32_t taken = 0;
  for (size_t nic = 0; nic < connection_nics().size(); ++nic) {
    if (id.numbers[nic] == 0) continue;
    const ConnectionAnswer answer = request.ask(nic, id.numbers[nic]);
    if (answer.error == ENODEV && has_several_nics()) continue;
    if (answer.error != 0) return answer;
    reported += word_of(answer, 0);
    taken += answer.taken;
  }
  const std::lock_guard lock(ids_mutex);
  ids.move(request.id, request.key);
  ConnectionAnswer answer = word(reported);
  answer.taken = taken;
  return answer;
}

// The number of something new at a NIC, as librdmacm is told of it.
ConnectionAnswer renumbered(ConnectionAnswer answer, size_t offset, ConnectionId id, size_t nic) {
  id.numbers[nic] = word_of(answer, offset);
  const std::lock_guard lock(ids_mutex);
  const uint32_t number = ids.add(id);
  if (number == 0) return refused(ENOMEM);
  put(answer.bytes, offset, number);
  return answer;
}

}  // namespace

ConnectionAnswer ConnectionRequest::ask(size_t nic, uint32_t number) {
  if (const size_t offset = id_offset(header.command); offset != 0) put(bytes, offset, number);
  return commands[nic].ask(connection_nics()[nic].daemon, key, bytes, extra);
}

ConnectionAnswer run_connection_request(ConnectionRequest& request) {
  if (request.header.command == kCreateId) return create(request);
  ConnectionId id;
  {
    const std::lock_guard lock(ids_mutex);
    const ConnectionId* known = ids.find(request.id);
    if (known != nullptr && id_offset(request.header.command) != 0) {
      id = *known;
    } else if (has_several_nics() && id_offset(request.header.command) != 0) {
      return refused(ENOENT);
    } else {
      // Made by a parent, or not known at all.
      id.key = request.key;
      id.numbers[0] = request.id;
    }
  }
  switch (request.header.command) {
    case kDestroyId:
    case kLeaveGroup:
      return destroy(request, id);
    case kMigrateId:
      return migrate(request, id);
    default:
      break;
  }
  if (id_offset(request.header.command) == 0) return request.ask(0, 0);
  const ConnectionId before = id;
  ConnectionAnswer answer = ask_somewhere(request, id);
  if (request.header.command == kAccept) {
    const auto uid = at<uint64_t>(request.bytes.data(), 8);
    if (answer.error == 0 && uid != 0) id.uid = uid;
  }
  if (id.numbers != before.numbers || id.uid != before.uid || id.bound != before.bound) {
    const std::lock_guard lock(ids_mutex);
    if (ConnectionId* known = ids.find(request.id)) *known = id;
  }
  if (request.header.command != kJoinGroup || answer.error != 0) return answer;
  const ConnectionId membership{.key = request.key, .uid = at<uint64_t>(request.bytes.data(), 16), .owner = request.id};
  return renumbered(std::move(answer), 0, membership, id.nic());
}

ConnectionAnswer next_connection_event(uint64_t key, size_t nic) {
  ConnectionAnswer answer = commands[nic].ask(connection_nics()[nic].daemon, key, small_command(kGetEvent, 16), {});
  // A daemon that has come after the channel's does not know it.
  if (answer.error == EBADF) answer.error = ENODEV;
  if (answer.error != 0 || word_of(answer, 12) != kConnectRequest) return answer;
  return renumbered(std::move(answer), 8, {.key = key}, nic);
}

ConnectionAnswer connection_removal(uint64_t key, size_t nic) {
  const std::lock_guard lock(ids_mutex);
  const uint32_t number = ids.tell(key, nic);
  if (number == 0) return refused(ENODEV);
  Bytes event(kEventBytes);
  put(event, 0, ids.find(number)->uid);
  put(event, 8, number);
  put(event, 12, uint32_t{kDeviceRemoval});
  return {.error = 0, .taken = 0, .bytes = event};
}

uint32_t untold_removals(uint64_t key, size_t nic) {
  const std::lock_guard lock(ids_mutex);
  return ids.untold(key, nic);
}

void lock_connection_requests() {
  for (ConnectionCommands& one : commands) one.lock();
  ids_mutex.lock();
}

void unlock_connection_requests(bool in_child) {
  ids_mutex.unlock();
  for (ConnectionCommands& one : commands) {
    if (in_child) one.close();
    one.unlock();
  }
}

}  // namespace weir
