// One interface with two backends: frames come in by one port and go out by another.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "io/packet_port.h"

namespace weir {

class MixedPort final : public PacketPort {
 public:
  MixedPort(std::unique_ptr<PacketPort> in, std::unique_ptr<PacketPort> out) : in_(std::move(in)), out_(std::move(out)) {}

  size_t receive(std::span<RxFrame> frames) override {
    out_->receive({});  // it has frames to look after that were sent
    return in_->receive(frames);
  }
  void release(size_t count) override { in_->release(count); }
  Transmitted transmit(std::span<const TxFrame> frames) override { return out_->transmit(frames); }
  PortCapabilities capabilities() const override {
    const PortCapabilities out = out_->capabilities();
    return {out.keeps_packets, in_->capabilities().tells_checksums, out.batch, out.joins};
  }
  int wait_descriptor() const override { return in_->wait_descriptor(); }
  Time next_deadline() const override { return std::min(in_->next_deadline(), out_->next_deadline()); }
  PortLosses losses() override {
    const PortLosses in = in_->losses();
    const PortLosses out = out_->losses();
    return {.receive_overrun = in.receive_overrun,
            .receive_truncated = in.receive_truncated,
            .transmit_errors = in.transmit_errors + out.transmit_errors,
            .transmit_dropped = in.transmit_dropped + out.transmit_dropped,
            .stamps_corrected = in.stamps_corrected,
            .super_frames_sent = out.super_frames_sent,
            .super_frames_received = in.super_frames_received};
  }
  PortState state() override {
    const PortState in = in_->state();
    return in == PortState::up ? out_->state() : in;
  }
  PortQueues queues() const override {
    const PortQueues in = in_->queues();
    return {in.receive, in.receive_zero_copy, out_->queues().transmit_zero_copy};
  }
  uint32_t mtu() override { return in_->mtu(); }
  void take_groups() override { in_->take_groups(); }
  int lend(uint16_t blocks) override { return in_->lend(blocks); }
  void take_back(uint16_t blocks) override { in_->take_back(blocks); }
  void reopen() override {
    in_->reopen();
    out_->reopen();
  }

 private:
  std::unique_ptr<PacketPort> in_;
  std::unique_ptr<PacketPort> out_;
};

}  // namespace weir
