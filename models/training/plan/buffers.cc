#include "models/training/plan/buffers.h"

#include "models/training/plan/compressed_allreduce.h"

namespace lambcast {

std::vector<std::int64_t> compressed_buffers(const TrainingPlan& training) {
  const ExchangeLevels levels = levels_of(training.exchange, all_ranks(training));
  const auto padded = [&](std::int64_t elements) {
    return padded_share(levels, static_cast<double>(elements));
  };
  const ModelShape& model = *training.model;
  if (training.optimizer() == OptimizerType::onebit_lamb)
    return {padded(optimized_parameters(model))};
  std::vector<std::int64_t> buffers;
  if (is_flat(training.wrapper())) {
    for (const std::int64_t elements : flat_groups(training))
      buffers.push_back(padded(elements / training.shards()));
  } else {
    for (const Tensor& tensor : model.tensors)
      if (tensor.optimized) buffers.push_back(padded(tensor.elements));
  }
  return buffers;
}

std::vector<std::int64_t> flat_groups(const TrainingPlan& training) {
  // ZeRO and BF16_Optimizer pad groups to multiples of 2 n elements, so that shards begin at
  // multiples of 4 bytes.
  const std::int64_t alignment = is_sharded(training.wrapper()) ? 2 * training.gpus : 1;
  std::vector<std::int64_t> groups;
  for (const GroupSize& group : optimizer_groups(*training.model))
    groups.push_back((group.elements + alignment - 1) / alignment * alignment);
  return groups;
}

HostCopies host_copies(const Cluster& cluster, const Device& device) {
  const HostCopySpec& given = cluster.host_copy;
  return {given.pageable_to_host.value_or(device.pageable_d2h),
          given.pageable_to_device.value_or(device.pageable_h2d),
          given.staged_by_mpi.value_or(device.pinned_d2h),
          given.staged_by_mpi.value_or(device.pinned_h2d)};
}

}  // namespace lambcast
