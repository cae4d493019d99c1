// A reliable connection of a program with a path of its own: should the program be killed, the daemon knows how far it had come.
#pragma once

#include <atomic>
#include <cstdint>

#include "transport/reliable_connection.h"

namespace weir {

class ToldConnection final : public ReliableConnection {
 public:
  using ReliableConnection::ReliableConnection;

  // Writes expected() there before an answer leaves, from now on, so that the peer has never heard of more. Null: nowhere.
  void tell_expected(std::atomic<uint32_t>* where) {
    where_ = where;
    tell();
  }
  void take_control(OutgoingPacket& out) override {
    tell();
    ReliableConnection::take_control(out);
  }
  bool take_data(Time now, OutgoingPacket& out) override {
    tell();
    return ReliableConnection::take_data(now, out);
  }

 private:
  void tell() {
    if (where_ != nullptr) where_->store(expected(), std::memory_order_relaxed);
  }

  std::atomic<uint32_t>* where_ = nullptr;
};

}  // namespace weir
