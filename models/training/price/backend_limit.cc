#include "models/training/price/backend_limit.h"

#include <fmt/format.h>

namespace lambcast {

std::optional<std::string> why_backend_fails(const TrainingPlan& training) {
  if (!is_onebit(training.optimizer())) return std::nullopt;
  if (training.backend() == Backend::compressed)
    return fmt::format(
        "DeepSpeed has the operator that it loads (PackbitsBuilder) for Intel XPU alone: on {} it "
        "ends with an error",
        training.device->name);
  const bool over_nodes = training.nodes() > 1;
  if (training.backend() == Backend::mpi_device && over_nodes &&
      training.cluster->network == NetworkKind::socket)
    return fmt::format("cuda_aware sends from GPU memory by RDMA, and {} has TCP",
                       training.cluster->name);
  return std::nullopt;
}

std::optional<Finding> find_backend_that_fails(const TrainingPlan& training) {
  const auto why = why_backend_fails(training);
  if (!why) return std::nullopt;
  return Finding{Severity::warning, "backend-fails",
                 fmt::format("the backend {} does not run here: {}; try --backend nccl",
                             traits_of(training.backend()).label, *why)};
}

}  // namespace lambcast
