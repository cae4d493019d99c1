// The provider's data of work that was posted and is not done with, in memory that is there from when its queue is made: lists of
// several pieces, and inline data. To the transport each is one piece of a region that the queue has for itself. All of it needs
// the NIC's lock.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "transport/memory_table.h"
#include "transport/work.h"
#include "verbs/abi.h"

namespace weir {

// Place of a work request's memory, as the transport wants it.
struct PostedMemory {
  uint64_t address = 0;
  uint32_t key = 0;
};

// Lists of pieces, one for each place of a queue.
class PostedLists {
 public:
  // False: no key is left. Throws std::bad_alloc.
  bool make(MemoryTable& memory, uint32_t domain, uint32_t places, uint32_t pieces) {
    if (pieces < 2) return true;
    lists_ = std::make_unique<PieceLists>(places, pieces);
    MemoryRegion region;
    region.domain = domain;
    region.lists = lists_.get();
    key_ = memory.add(region);
    return key_ != 0;
  }
  void release(MemoryTable& memory) {
    if (key_ != 0) memory.remove(std::exchange(key_, 0));
    lists_.reset();
  }
  // Works as PieceLists::grow().
  void grow(uint32_t places) {
    if (lists_ != nullptr) lists_->grow(places);
  }
  // Puts down at most as many as there is room for; one piece has no list.
  PostedMemory put(uint32_t place, const ibv_sge* pieces, int count) {
    if (count == 0) return {};
    if (count == 1) return {pieces->addr, pieces->lkey};
    MemoryPiece* to = lists_->set(place, static_cast<uint32_t>(count));
    for (int i = 0; i < count; ++i) to[i] = {pieces[i].addr, pieces[i].length, pieces[i].lkey};
    return {PieceLists::address_of(place), key_};
  }

 private:
  std::unique_ptr<PieceLists> lists_;
  uint32_t key_ = 0;
};

// Sends, which are done with in the order in which they were posted.
class PostedSends {
 public:
  // Works as PostedLists::make().
  bool make(MemoryTable& memory, uint32_t domain, const ibv_qp_cap& cap) {
    const uint32_t places = std::bit_ceil(cap.max_send_wr);
    most_ = cap.max_send_wr;
    most_inline_ = cap.max_inline_data;
    opcodes_.resize(places);
    const uint64_t bytes = uint64_t{places} * most_inline_;
    inline_.reset(new uint8_t[bytes]);
    MemoryRegion region;
    region.data = inline_.get();
    region.address = reinterpret_cast<uintptr_t>(region.data);
    region.length = bytes;
    region.domain = domain;
    key_ = memory.add(region);
    return key_ != 0 && lists_.make(memory, domain, places, cap.max_send_sge);
  }
  void release(MemoryTable& memory) {
    if (key_ != 0) memory.remove(std::exchange(key_, 0));
    lists_.release(memory);
  }
  uint32_t room() const { return most_ - (tail_ - head_); }
  bool empty() const { return tail_ == head_; }

  // These need room, and are for the next that is pushed.
  PostedMemory put(const ibv_sge* pieces, int count) { return lists_.put(place(tail_), pieces, count); }
  // Copies no more than the queue pair takes inline.
  PostedMemory copy(const ibv_sge* pieces, int count) {
    uint8_t* const first = inline_.get() + uint64_t{place(tail_)} * most_inline_;
    uint8_t* to = first;
    for (const ibv_sge* piece = pieces; piece != pieces + count; ++piece) {
      if (piece->length > 0) std::memcpy(to, reinterpret_cast<const void*>(piece->addr), piece->length);
      to += piece->length;
    }
    return {reinterpret_cast<uintptr_t>(first), key_};
  }
  // `opcode`: what its completion says; IBV_WC_SEND: what the transport says.
  void push(ibv_wc_opcode opcode) { opcodes_[place(tail_++)] = opcode; }
  // There must be one.
  ibv_wc_opcode pop() { return opcodes_[place(head_++)]; }

 private:
  uint32_t place(uint32_t count) const { return count & (static_cast<uint32_t>(opcodes_.size()) - 1); }

  uint32_t most_ = 0;
  uint32_t most_inline_ = 0;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t key_ = 0;  // key of the inline data
  std::vector<ibv_wc_opcode> opcodes_;
  std::unique_ptr<uint8_t[]> inline_;
  PostedLists lists_;
};

// Receives, which the transport knows by their places here.
class PostedReceives {
 public:
  // Works as PostedLists::make().
  bool make(MemoryTable& memory, uint32_t domain, uint32_t places, uint32_t pieces) {
    grow(places);
    return lists_.make(memory, domain, places, pieces);
  }
  // Grows to at least so many places. Throws std::bad_alloc.
  void grow(uint32_t places) {
    const auto before = static_cast<uint32_t>(ids_.size());
    if (places <= before) return;
    lists_.grow(places);
    free_.reserve(places);
    ids_.resize(places);
    for (uint32_t place = places; place > before; --place) free_.push_back(place - 1);
  }
  void release(MemoryTable& memory) { lists_.release(memory); }
  uint32_t size() const { return static_cast<uint32_t>(ids_.size() - free_.size()); }

  // There must be room.
  ReceiveWork add(const ibv_recv_wr& wr, uint32_t length) {
    const uint32_t place = free_.back();
    free_.pop_back();
    ids_[place] = wr.wr_id;
    const PostedMemory memory = lists_.put(place, wr.sg_list, wr.num_sge);
    return {place, memory.address, length, memory.key};
  }
  // It is done with; what the program calls it.
  uint64_t take(uint64_t place) {
    free_.push_back(static_cast<uint32_t>(place));
    return ids_[place];
  }

 private:
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> free_;
  PostedLists lists_;
};

}  // namespace weir
