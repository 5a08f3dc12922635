#include "models/training/plan/framework.h"

#include "sim/base/check.h"

namespace lambcast {
namespace {

using parallel::Axis;
using parallel::SplitMethod;

constexpr parallel::AxisOrder data_outside = {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};

const std::vector<Framework>& described_frameworks() {
  static const std::vector<Framework> rows{{.name = FrameworkName::deepspeed,
                                            .split = SplitMethod::spread,
                                            .in_buckets = true,
                                            .sends_parts = true,
                                            .hides_sharding = false,
                                            .prefetch_bucket = 5e7,
                                            .persistent_tensor = 1e5,
                                            .shard_handling_us = 8,
                                            .live_elements = 1e9,
                                            .reuse_elements = 1e9,
                                            .flat_buckets = true,
                                            .sums_beside = true,
                                            .least_bucket = 5e8,
                                            .context_exchange = ContextExchange::heads},
                                           {.name = FrameworkName::megatron,
                                            .fp32_gradients = true,
                                            .keeps_buffers = true,
                                            .overlaps_gradients = true,
                                            .overlaps_weights = true,
                                            .tensor_overlap = TensorOverlap::backward,
                                            .overlaps_sends = true,
                                            .copies_gradients = true,
                                            .least_bucket = 40e6,
                                            .bucket_per_rank = 1e6},
                                           {.name = FrameworkName::torchtitan,
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
                                           {.name = FrameworkName::colossalai,
                                            .order = data_outside,
                                            .split = SplitMethod::spread,
                                            .overlaps_gradients = true,
                                            .least_bucket = 12e6,
                                            .most_sharing = parallel::Sharding::gradients},
                                           {.name = FrameworkName::pytorch,
                                            .fp32_gradients = true,
                                            .overlaps_gradients = true,
                                            .exchanges_in_hooks = true,
                                            .least_bucket = 25 * 1024 * 1024 / 4.,
                                            .fusion = Fusion::eager,
                                            .autocast = true,
                                            .kernels = Kernels::foreach_adam,
                                            .divides_model = false,
                                            .most_sharing = parallel::Sharding::none}};
  return rows;
}

void reduce_sums(Framework& tensorflow) {
  constexpr double fusion_buffer = 64 * 1024 * 1024;  // bytes
  tensorflow.reduces_sums = tensorflow.in_buckets = true;
  tensorflow.least_bucket = fusion_buffer / 4;
  tensorflow.kernels = Kernels::unfused_adam;
}

void expose_communication(Framework& paddle) {
  paddle.fp32_gradients = paddle.copies_gradients = false;
  paddle.overlaps_gradients = paddle.overlaps_weights = paddle.overlaps_sends = false;
  paddle.tensor_overlap = TensorOverlap::none;
  paddle.sends_parts = true;
  paddle.hides_sharding = false;
}

// Returns the described frameworks, then those that differ from one of them in the name and at most
// the values set here.
std::vector<Framework> all_frameworks() {
  constexpr std::pair<FrameworkName, FrameworkName> alike[] = {
      {FrameworkName::nvidia, FrameworkName::deepspeed},
      {FrameworkName::nemo, FrameworkName::megatron},
      {FrameworkName::paddle, FrameworkName::megatron},
      {FrameworkName::tensorflow, FrameworkName::pytorch},
      {FrameworkName::jax, FrameworkName::torchtitan},
      {FrameworkName::bagua, FrameworkName::pytorch},
      {FrameworkName::other, FrameworkName::pytorch}};
  std::vector<Framework> rows = described_frameworks();
  for (const auto& [name, like] : alike) {
    rows.push_back(rows[static_cast<std::size_t>(like)]);
    rows.back().name = name;
    rows.back().divides_model &= name != FrameworkName::nvidia;
  }
  Framework& other = rows.back();
  other.divides_model = true;
  other.most_sharing = parallel::Sharding::weights;
  reduce_sums(rows[static_cast<std::size_t>(FrameworkName::tensorflow)]);
  expose_communication(rows[static_cast<std::size_t>(FrameworkName::paddle)]);
  return rows;
}

}  // namespace

const std::vector<std::string>& tensor_overlap_names() {
  static const std::vector<std::string> names{"none", "backward", "all", "chunks"};
  return names;
}

const std::vector<std::string>& context_exchange_names() {
  static const std::vector<std::string> names{"ring", "heads"};
  return names;
}

const std::vector<std::string>& framework_names() {
  static const std::vector<std::string> names{"deepspeed",  "megatron", "torchtitan", "colossalai",
                                              "pytorch",    "nvidia",   "nemo",       "paddle",
                                              "tensorflow", "jax",      "bagua",      "other"};
  return names;
}

std::string_view name_of(FrameworkName name) {
  return framework_names()[static_cast<std::size_t>(name)];
}

const Framework& framework_of(FrameworkName name) {
  static const std::vector<Framework> frameworks = all_frameworks();
  const Framework& framework = frameworks[static_cast<std::size_t>(name)];
  LAMBCAST_CHECK(framework.name == name, "rows of frameworks are out of order at {}",
                 name_of(name));
  return framework;
}

}  // namespace lambcast
