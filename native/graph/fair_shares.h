// Max-min fair shares of links, by progressive filling (Bertsekas and Gallager, "Data Networks", 1992, 6.5.2): all rates grow
// together, and those of flows that cross a link stop when it is full.
//
// An allocation is max-min fair if and only if each flow has a bottleneck: a link that is full, and on which no flow has more. So
// when flows start and end, only those that are left without one need another rate. These are opened, filled into what the others
// leave, and the links that they touch are looked at: whoever has lost its bottleneck there, or has more than one that is held
// back there, is opened, too, until nobody is. What shares no link with them is never looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir {

// A link of a flow's way, and the part of the flow that crosses it: 1, or less where it is spread over several.
struct FairHop {
  uint32_t link = 0;
  double share = 1;
};

class FairShares {
 public:
  // `rates`: of each link, bit/s; 0: it has no limit.
  explicit FairShares(std::vector<double> rates);

  // A flow that does not yet run; returns its number. Flows are numbered from 0. A link is once on a way.
  uint32_t add(std::span<const FairHop> way);
  // From the next settle() on. Starts a flow that does not run, or stops one that does.
  void start(uint32_t flow);
  void stop(uint32_t flow);
  // Finds the rates after what has started and stopped; true when there was anything.
  bool settle();
  // Flows whose rates the last settle() has changed.
  std::span<const uint32_t> changed() const { return changed_; }
  // bit/s; infinite where nothing limits it.
  double rate(uint32_t flow) const { return flows_[flow].rate; }
  std::span<const FairHop> way(uint32_t flow) const {
    return std::span(hops_).subspan(first_hop_[flow], first_hop_[flow + 1] - first_hop_[flow]);
  }
  size_t links() const { return links_.size(); }
  // Flows that have been opened in all: the work that was done.
  uint64_t opened() const { return opened_; }

 private:
  // A flow that runs, at one of its links; `hop` in hops_.
  struct Use {
    uint32_t flow;
    uint32_t hop;
  };
  struct Link {
    double rate = 0;
    std::vector<Use> uses;
    uint64_t looked = 0;  // the settle() that has touched it
    uint64_t filled = 0;  // the fill() that has found it full
    double level = 0;     // that fill()'s, of the flows that are held back there
    // While it fills: what is left, by how much of that all flows at a rate of 1 would take, and how many flows that is.
    double left = 0;
    double weight = 0;
    uint32_t count = 0;
  };
  struct Flow {
    double rate = 0;
    double before = 0;  // the same when it was opened
    uint64_t opened = 0;
    uint64_t fixed = 0;  // the fill() that has given it its rate
    uint32_t bottleneck = 0;
    bool runs = false;
  };
  struct Candidate {
    double level;
    uint32_t link;
  };
  static bool later(const Candidate& a, const Candidate& b) { return a.level != b.level ? a.level > b.level : a.link > b.link; }

  void open(uint32_t flow);
  void touch(uint32_t link);
  void fill();
  void fix(uint32_t flow, double rate, uint32_t bottleneck);
  // Opens who needs another rate because of what a link carries now; true when there was one.
  bool look(uint32_t link);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<FairHop> hops_;
  std::vector<uint32_t> places_;        // by hop of a flow that runs: its place in the link's uses
  std::vector<uint32_t> first_hop_{0};  // by flow
  std::vector<uint32_t> open_, touched_, changed_, begun_;
  std::vector<Candidate> candidates_;  // a heap
  uint64_t settles_ = 1;
  uint64_t fills_ = 0;
  uint64_t opened_ = 0;
};

}  // namespace weir
