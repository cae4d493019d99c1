// The soft NIC: what a paced packet costs it, and a notification of congestion. Packets have headers only, so that what is
// measured is the NIC and not the ICRC of payloads.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_case.h"
#include "endpoint/wire_nic.h"
#include "wire/classify.h"
#include "wire/qcn.h"

namespace weir::bench {
namespace {

constexpr Rate k100G = 100'000'000'000;
constexpr uint64_t kNic = 0x025745000001;
constexpr uint64_t kPeer = 0x025745000002;
constexpr uint64_t kSwitch = 0x0257450000fe;

RocePath path_between(uint64_t from, uint64_t to, uint32_t number) {
  RocePath path;
  path.source_mac = from;
  path.destination_mac = to;
  path.source_ip[0] = path.destination_ip[0] = 10;
  path.source_ip[3] = static_cast<uint8_t>(from);
  path.destination_ip[3] = static_cast<uint8_t>(to);
  path.dscp = 26;
  path.ecn = 2;
  path.udp_source_port = static_cast<uint16_t>(0xc000 | (number & 0x3fff));
  return path;
}

class Nic : public BenchCase {
 public:
  // `pairs` queue pairs, all limited, which take `load` of the link together; `share`: of them, that are one flow of QCN.
  Nic(const CongestionParameters& control, uint32_t pairs, uint32_t share, double load = 0.5)
      : pool_(64, kHeaderStride),
        pairs_(pairs),
        nic_(parameters(control, pairs, share, load), queue_pairs(pairs, share), pool_) {}
  void run(uint64_t count) override {
    while (count > 0) {
      nic_.advance(nic_.next_deadline());
      for (PacketId id = nic_.transmit(); id != kNoPacket && count > 0; id = nic_.transmit()) {
        nic_.left(id);
        pool_.free(id);
        --count;
      }
    }
  }

 protected:
  static NicParameters parameters(const CongestionParameters& control, uint32_t pairs, uint32_t share, double load) {
    NicParameters p;
    p.rate = k100G;
    p.mac = kNic;
    p.congestion = control;
    p.grouping.most = FlowTable::kMost;
    p.grouping.selection = FlowSelection::application;
    p.line_rate_start = false;
    p.initial_rate = static_cast<Rate>(load * static_cast<double>(k100G) / pairs * share);
    const auto at_rest = [&](auto* algorithm) {
      if (algorithm == nullptr) return;
      algorithm->rpg_ai_rate = algorithm->rpg_hai_rate = 0;
      algorithm->rpg_min_rate = p.initial_rate;
    };
    at_rest(std::get_if<DcqcnParameters>(&p.congestion));
    at_rest(std::get_if<QcnParameters>(&p.congestion));
    return p;
  }
  static std::vector<QueuePairParameters> queue_pairs(uint32_t pairs, uint32_t share) {
    std::vector<QueuePairParameters> list(pairs);
    for (uint32_t i = 0; i < pairs; ++i) {
      list[i].remote_qpn = 0x1000 + i;
      list[i].path = path_between(kNic, kPeer, i);
      list[i].start = 0;
      list[i].application = i / share;
    }
    return list;
  }

  PacketPool pool_;
  uint32_t pairs_;
  WireNic nic_;
};

// CNPs or CNMs to all queue pairs in turn, each a microsecond after the one before. Hardly anything is sent.
class Notified : public Nic {
 public:
  Notified(const CongestionParameters& control, uint32_t pairs)
      : Nic(control, pairs, 1, 0.001), qcn_(std::holds_alternative<QcnParameters>(control)) {
    for (uint32_t i = 0; i < pairs; ++i) {
      std::vector<uint8_t> frame(kHeaderStride);
      if (qcn_) {
        LinkHeader envelope{.destination_mac = kNic, .source_mac = kSwitch};
        envelope.cn_flow = static_cast<uint16_t>(i + 1);
        CongestionNotification cnm;
        cnm.quantized_feedback = static_cast<uint8_t>(1 + i % 63);
        cnm.priority = 3;
        cnm.destination_mac = kPeer;
        frame.resize(build_cnm(frame.data(), envelope, cnm));
      } else {
        frame.resize(
            RoceTemplate(path_between(kPeer, kNic, i)).build_cnp(frame.data(), nic_.state().parameters.first_qpn + i, 48, 6));
      }
      frames_.push_back(std::move(frame));
    }
  }
  void run(uint64_t count) override {
    for (; count > 0; --count) {
      now_ += kMicrosecond;
      const std::vector<uint8_t>& frame = frames_[next_++ % pairs_];
      PacketMeta meta;
      const auto length = static_cast<uint32_t>(frame.size());
      const Refusal refusal = classify(frame.data(), length, meta);
      nic_.receive(now_, frame.data(), length, meta, refusal);
      for (PacketId id = nic_.transmit(); id != kNoPacket; id = nic_.transmit()) {
        nic_.left(id);
        pool_.free(id);
      }
    }
  }

 private:
  bool qcn_;
  std::vector<std::vector<uint8_t>> frames_;
  Time now_ = 0;
  uint64_t next_ = 0;
};

}  // namespace

void define_soft_nic_cases(BenchList& list) {
  const auto name = [](const CongestionParameters& control) {
    return std::string(std::holds_alternative<QcnParameters>(control) ? "QCN" : "DCQCN");
  };
  for (const CongestionParameters& control : std::initializer_list<CongestionParameters>{DcqcnParameters{}, QcnParameters{}}) {
    for (const uint32_t pairs : {100u, 4'096u}) {
      define<Nic>(list, "soft NIC sends, " + name(control) + ", " + std::to_string(pairs) + " flows", control, pairs, 1u);
    }
  }
  define<Nic>(list, "soft NIC sends, QCN, 64 flows of 64 queue pairs", QcnParameters{}, 4'096u, 64u);
  for (const CongestionParameters& control : std::initializer_list<CongestionParameters>{DcqcnParameters{}, QcnParameters{}}) {
    define<Notified>(list, "soft NIC is notified each us, " + name(control) + ", 4096 flows", control, 4'096u);
  }
}

}  // namespace weir::bench
