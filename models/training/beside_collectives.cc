#include "models/training/beside_collectives.h"

#include <algorithm>

namespace lambcast {

double lost_to_collectives(const ProcessGroup& group, const GpuRates& rates) {
  const double blocks = std::min(32, 4 * group.per_node);
  return blocks / rates.multiprocessors;
}

}  // namespace lambcast
