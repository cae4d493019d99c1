#include "graph/fair_shares.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir {

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// What sums of rates may be off by: rates that differ by less are the same.
constexpr double kSame = 1e-11;

}  // namespace

FairShares::FairShares(std::vector<double> rates) : links_(rates.size()) {
  for (size_t i = 0; i < rates.size(); ++i) links_[i].rate = rates[i] > 0 ? rates[i] : kUnlimited;
}

uint32_t FairShares::add(std::span<const FairHop> way) {
  for (const FairHop& hop : way) {
    if (links_[hop.link].rate < kUnlimited) hops_.push_back(hop);
  }
  places_.resize(hops_.size());
  first_hop_.push_back(static_cast<uint32_t>(hops_.size()));
  flows_.emplace_back();
  return static_cast<uint32_t>(flows_.size() - 1);
}

// Its rate is 0 until it is filled, so that it takes nothing from others before they have been asked.
void FairShares::start(uint32_t flow) {
  Flow& own = flows_[flow];
  own.runs = true;
  own.rate = 0;
  for (uint32_t hop = first_hop_[flow]; hop < first_hop_[flow + 1]; ++hop) {
    Link& link = links_[hops_[hop].link];
    places_[hop] = static_cast<uint32_t>(link.uses.size());
    link.uses.push_back({flow, hop});
    touch(hops_[hop].link);
  }
  begun_.push_back(flow);
}

void FairShares::stop(uint32_t flow) {
  flows_[flow].runs = false;
  for (uint32_t hop = first_hop_[flow]; hop < first_hop_[flow + 1]; ++hop) {
    std::vector<Use>& uses = links_[hops_[hop].link].uses;
    const Use last = uses.back();
    uses[places_[hop]] = last;
    places_[last.hop] = places_[hop];
    uses.pop_back();
    touch(hops_[hop].link);
  }
}

void FairShares::touch(uint32_t link) {
  if (std::exchange(links_[link].looked, settles_) != settles_) touched_.push_back(link);
}

void FairShares::open(uint32_t flow) {
  Flow& own = flows_[flow];
  own.opened = settles_;
  own.before = own.rate;
  open_.push_back(flow);
  ++opened_;
  for (uint32_t hop = first_hop_[flow]; hop < first_hop_[flow + 1]; ++hop) touch(hops_[hop].link);
}

bool FairShares::settle() {
  changed_.clear();
  if (touched_.empty() && begun_.empty()) return false;
  for (const uint32_t flow : begun_) {
    if (flows_[flow].runs && flows_[flow].opened != settles_) open(flow);
  }
  for (bool again = true; again;) {
    fill();
    again = false;
    // Links that are touched meanwhile are looked at after they have been filled.
    for (size_t i = 0, count = touched_.size(); i < count; ++i) again |= look(touched_[i]);
  }
  for (const uint32_t flow : open_) {
    if (flows_[flow].rate != flows_[flow].before) changed_.push_back(flow);
  }
  open_.clear();
  touched_.clear();
  begun_.clear();
  ++settles_;
  return true;
}

void FairShares::fill() {
  ++fills_;
  candidates_.clear();
  for (const uint32_t number : touched_) {
    Link& link = links_[number];
    link.left = link.rate;
    link.weight = 0;
    link.count = 0;
    for (const Use& use : link.uses) {
      const double share = hops_[use.hop].share;
      if (flows_[use.flow].opened == settles_) {
        link.weight += share;
        ++link.count;
      } else {
        link.left -= flows_[use.flow].rate * share;
      }
    }
    link.left = std::max(link.left, 0.0);
    if (link.count > 0) candidates_.push_back({link.left / link.weight, number});
  }
  std::ranges::make_heap(candidates_, later);
  while (!candidates_.empty()) {
    const Candidate next = candidates_.front();
    std::ranges::pop_heap(candidates_, later);
    candidates_.pop_back();
    Link& link = links_[next.link];
    if (link.count == 0) continue;
    // Flows that other links have held back leave it more than it had when it was put here.
    const double level = std::max(next.level, link.left / link.weight);
    if (level > next.level) {
      candidates_.push_back({level, next.link});
      std::ranges::push_heap(candidates_, later);
      continue;
    }
    link.filled = fills_;
    link.level = level;
    for (const Use& use : link.uses) {
      const Flow& flow = flows_[use.flow];
      if (flow.opened == settles_ && flow.fixed != fills_) fix(use.flow, level, next.link);
    }
  }
  for (const uint32_t flow : open_) {
    if (flows_[flow].fixed != fills_) flows_[flow].rate = kUnlimited;
  }
}

void FairShares::fix(uint32_t flow, double rate, uint32_t bottleneck) {
  Flow& own = flows_[flow];
  own.rate = rate;
  own.bottleneck = bottleneck;
  own.fixed = fills_;
  for (uint32_t hop = first_hop_[flow]; hop < first_hop_[flow + 1]; ++hop) {
    Link& link = links_[hops_[hop].link];
    link.left = std::max(0.0, link.left - rate * hops_[hop].share);
    link.weight -= hops_[hop].share;
    --link.count;
  }
}

bool FairShares::look(uint32_t number) {
  Link& link = links_[number];
  double carried = 0, greatest = 0;
  for (const Use& use : link.uses) {
    carried += flows_[use.flow].rate * hops_[use.hop].share;
    greatest = std::max(greatest, flows_[use.flow].rate);
  }
  const bool full = carried >= link.rate * (1 - kSame);
  bool found = false;
  for (const Use& use : link.uses) {
    const Flow& flow = flows_[use.flow];
    if (flow.opened == settles_) continue;
    const bool has_lost = flow.bottleneck == number && (!full || flow.rate < greatest * (1 - kSame));
    const bool has_more = link.filled == fills_ && flow.rate > link.level * (1 + kSame);
    if (!has_lost && !has_more) continue;
    open(use.flow);
    found = true;
  }
  return found;
}

}  // namespace weir
