#include "models/training/framework.h"

#include "sim/base/check.h"

namespace lambcast {
namespace {

using parallel::Axis;
using parallel::SplitMethod;

constexpr parallel::AxisOrder data_outside = {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};

const std::vector<Framework>& frameworks() {
  static const std::vector<Framework> rows{{.name = "deepspeed",
                                            .split = SplitMethod::spread,
                                            .sends_parts = true,
                                            .hides_sharding = false,
                                            .prefetch_bucket = 5e7,
                                            .shard_handling_us = 8,
                                            .least_bucket = 5e8,
                                            .exchanges_heads = true},
                                           {.name = "megatron",
                                            .fp32_gradients = true,
                                            .overlaps_gradients = true,
                                            .overlaps_weights = true,
                                            .tensor_overlap = TensorOverlap::backward,
                                            .overlaps_sends = true,
                                            .least_bucket = 40e6,
                                            .bucket_per_rank = 1e6},
                                           {.name = "torchtitan",
                                            .split = SplitMethod::spread,
                                            .fp32_gradients = true,
                                            .overlaps_gradients = true,
                                            .overlaps_weights = true,
                                            .overlaps_sends = true,
                                            .shards_fp32 = true,
                                            .unused_memory = 0.03,
                                            .least_bucket = 25e6,
                                            .fusion = Fusion::compiled,
                                            .dtensor = true,
                                            .separate_products = true,
                                            .ring = Ring::eager},
                                           {.name = "colossalai",
                                            .order = data_outside,
                                            .split = SplitMethod::spread,
                                            .overlaps_gradients = true,
                                            .least_bucket = 12e6}};
  return rows;
}

}  // namespace

const std::vector<std::string>& tensor_overlap_names() {
  static const std::vector<std::string> names{"none", "backward", "all"};
  return names;
}

const std::vector<std::string>& framework_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Framework& framework : frameworks()) all.emplace_back(framework.name);
    return all;
  }();
  return names;
}

const Framework& framework_of(std::string_view name) {
  for (const Framework& framework : frameworks())
    if (framework.name == name) return framework;
  LAMBCAST_CHECK(false, "no framework '{}'", name);
  return frameworks().front();
}

}  // namespace lambcast
