#include "congestion/red_marker.h"

namespace weir {

double red_probability(const RedParameters& parameters, double queue_bytes) {
  const double kmin = static_cast<double>(parameters.kmin);
  const double kmax = static_cast<double>(parameters.kmax);
  if (queue_bytes > kmax) return 1;
  if (queue_bytes <= kmin) return 0;
  return parameters.pmax * (queue_bytes - kmin) / (kmax - kmin);
}

bool RedMarker::draw(uint64_t queue_bytes, Random& random) {
  double length = static_cast<double>(queue_bytes);
  if (parameters_.averaged) {
    average_ += parameters_.weight * (length - average_);
    length = average_;
  }
  const double probability = red_probability(parameters_, length);
  if (probability <= 0) return false;
  return probability >= 1 || random.uniform() < probability;
}

}  // namespace weir
