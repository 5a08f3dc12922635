#include "models/training/price/beside_collectives.h"

#include <algorithm>

namespace lambcast {

Duration beyond(Duration collective, Duration cover) {
  return collective > cover ? collective - cover : Duration();
}

Duration beyond_chunks(Duration collective, Duration product, int chunks, bool gathers) {
  const double n = chunks;
  const Duration rest = beyond(collective, product.scaled(1 - 1 / n));
  return gathers ? rest : std::max(collective.scaled(1 / n), rest);
}

double lost_to_collectives(const ProcessGroup& group, const GpuRates& rates) {
  const double blocks = std::min(32, 4 * group.per_node);
  return blocks / rates.multiprocessors;
}

Duration lost_beside(Duration collective, Duration kernels, double share) {
  const Duration while_it_runs = collective.scaled(share);
  if (share >= 1) return while_it_runs;
  return std::min(while_it_runs, kernels.scaled(share / (1 - share)));
}

Provenance lost_to_collectives_from() {
  return {Kind::assumed, "blocks of NCCL on the multiprocessors that compute"};
}

Provenance exchange_share_from() {
  return {Kind::assumed, "DeepEP and HybridEP: 16 to 32 multiprocessors of an H100 or B200"};
}

}  // namespace lambcast
