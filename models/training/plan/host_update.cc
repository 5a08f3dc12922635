#include "models/training/plan/host_update.h"

namespace lambcast {

const std::vector<std::string>& offload_names() {
  static const std::vector<std::string> names{"none", "cpu"};
  return names;
}

std::vector<StepPart> host_update(double elements, bool weights_shared, std::int64_t micro_batches,
                                  int ranks_at_once) {
  const auto times = static_cast<double>(micro_batches);
  HostCopy gradients;
  const bool accumulates = weights_shared || micro_batches > 1;
  gradients.down_bytes = elements * ((accumulates ? 2 * times : 0) + (weights_shared ? 0 : 4));
  gradients.up_bytes = elements * 2 * (times - 1);
  gradients.pinned = true;
  HostCopy weights;
  weights.up_bytes = elements * 2;
  weights.pinned = true;
  const double bytes = 16 + 12 + 8 + 6 + (weights_shared ? 6 : 0);
  return {
      {"gradients to the host", Category::optimizer, gradients},
      {"optimizer on the host", Category::optimizer, HostUpdate{elements * bytes, ranks_at_once}},
      {"weights to the GPU", Category::optimizer, weights}};
}

}  // namespace lambcast
