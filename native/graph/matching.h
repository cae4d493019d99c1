// Receives and the messages that they take, by the order of MPI: messages of one source and tag are taken in the order in which
// they were sent, and of several receives that could take a message, the first posted does (MPI 4.1, 3.5). Messages that nobody
// waits for wait themselves.
//
// Messages are numbers of their sends, receives are numbers of operations; both have their links in one list, which all ranks
// share: an operation waits at most once.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/message_graph.h"

namespace weir {

// Of some ranks, which are numbered from 0 here.
class Matching {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `links`: one for each operation of the graph.
  Matching(const MessageGraph& graph, std::span<uint32_t> links) : graph_(graph), links_(links), slots_(kFewest) {}

  // A message has come to a rank: the receive that takes it, or kNone: it waits.
  uint32_t arrive(uint32_t rank, uint32_t source, uint32_t message) {
    if (graph_.takes_any(rank)) return arrive_in_order(rank, source, message);
    return meet({rank, source, graph_.tag(message)}, message, true);
  }
  // A rank receives: the message that it takes, or kNone: it waits.
  uint32_t post(uint32_t rank, uint32_t receive) {
    if (graph_.takes_any(rank)) return post_in_order(rank, receive);
    return meet({rank, graph_.peer(receive), graph_.tag(receive)}, receive, false);
  }

 private:
  struct Key {
    uint32_t rank = kNone;
    uint32_t source = 0;
    uint32_t tag = 0;
    bool operator==(const Key&) const = default;
  };
  // A queue of receives or of messages; never of both.
  struct Slot {
    Key key;  // rank kNone: it is free
    uint32_t head = kNone;
    uint32_t tail = kNone;
    bool messages = false;
  };
  // Where somebody takes from anybody: all in their order.
  struct InOrder {
    std::list<uint32_t> receives;
    struct Message {
      uint32_t source;
      uint32_t message;
    };
    std::list<Message> messages;
  };

  static constexpr size_t kFewest = 16;

  static uint64_t hash(const Key& key) {
    uint64_t mixed = (uint64_t{key.rank} << 32 | key.source) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 29) ^ key.tag) * 0xbf58476d1ce4e5b9;
    return mixed ^ (mixed >> 32);
  }
  size_t home(const Key& key) const { return hash(key) & (slots_.size() - 1); }
  // Takes the first of the other kind that waits, or joins those of its own.
  uint32_t meet(const Key& key, uint32_t own, bool message);
  void remove(size_t place);
  void grow();

  bool takes(uint32_t receive, uint32_t source, uint32_t message) const;
  uint32_t arrive_in_order(uint32_t rank, uint32_t source, uint32_t message);
  uint32_t post_in_order(uint32_t rank, uint32_t receive);

  const MessageGraph& graph_;
  std::span<uint32_t> links_;
  std::vector<Slot> slots_;  // a hash table: a power of two, linear probing
  size_t used_ = 0;
  std::unordered_map<uint32_t, InOrder> in_order_;  // by rank
};

}  // namespace weir
