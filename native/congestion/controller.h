// The algorithms that there are, and one of them at work for one flow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "congestion/congestion_control.h"
#include "congestion/dcqcn_reaction_point.h"
#include "congestion/dctcp_sender.h"
#include "congestion/hpcc_sender.h"
#include "congestion/library_sender.h"
#include "congestion/nscc_sender.h"
#include "congestion/qcn_reaction_point.h"
#include "congestion/swift_sender.h"
#include "congestion/timely_sender.h"

namespace weir {

template <class... Algorithm>
struct AlgorithmList {
  using Controllers = std::variant<Algorithm...>;
  using Parameters = std::variant<typename Algorithm::Parameters...>;
  static constexpr std::array kNames = {Algorithm::kName...};
  static constexpr uint8_t kHears[] = {Algorithm::kHears...};
};

// The one place where an algorithm is listed.
using Algorithms = AlgorithmList<CongestionControl, DcqcnReactionPoint, QcnReactionPoint, DctcpSender, TimelySender, SwiftSender,
                                 HpccSender, NsccSender, LibrarySender>;

// Holds the algorithm's choice, and its parameters.
using CongestionParameters = Algorithms::Parameters;

inline uint8_t hears(const CongestionParameters& parameters) { return Algorithms::kHears[parameters.index()]; }

// Whether it hears of congestion by acknowledgements alone. The end that READs has them, and it is its rate and window that hold
// what it asks for; the end that sends that has none, and keeps to no rate.
inline bool controls_reads(const CongestionParameters& parameters) {
  return (hears(parameters) & (kHearsAcknowledgements | kHearsCnps | kHearsCnms)) == kHearsAcknowledgements;
}

// Each has its name in descriptions, and those that describe their parameters have these in a field of that name.
constexpr auto words_of(const CongestionParameters&) { return Algorithms::kNames; }

// Takes events without knowing of which algorithm they are. CongestionControl says what they mean.
class Controller {
 public:
  // None.
  Controller() = default;
  // `shared` must outlive this object, and keep its algorithm.
  void configure(const CongestionParameters& shared, const FlowTerms& terms) { configure(shared, terms, kEach); }

  bool none() const { return algorithm_.index() == 0; }
  // Several of them at a time, for one look at which it is.
  template <class Visitor>
  decltype(auto) visit(Visitor visitor) {
    return std::visit(visitor, algorithm_);
  }
  template <class Visitor>
  decltype(auto) visit(Visitor visitor) const {
    return std::visit(visitor, algorithm_);
  }
  // Null: it is another.
  template <class Algorithm>
  const Algorithm* as() const {
    return std::get_if<Algorithm>(&algorithm_);
  }

 private:
  static constexpr std::make_index_sequence<std::variant_size_v<CongestionParameters>> kEach{};

  template <size_t... I>
  void configure(const CongestionParameters& shared, const FlowTerms& terms, std::index_sequence<I...>) {
    const auto make = [&]<size_t i>() {
      if (shared.index() == i) algorithm_.emplace<i>().configure(std::get<i>(shared), terms);
    };
    (make.template operator()<I>(), ...);
  }

  Algorithms::Controllers algorithm_;
};

}  // namespace weir
