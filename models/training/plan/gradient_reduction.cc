#include "models/training/plan/gradient_reduction.h"

#include <algorithm>
#include <cmath>

#include "models/training/plan/buffers.h"

namespace lambcast {
namespace {

// Fills buckets that are closed once they exceed `limit` elements.
std::vector<std::int64_t> filled_over(const std::vector<std::int64_t>& pieces, double limit) {
  std::vector<std::int64_t> buckets;
  std::int64_t filled = 0;
  for (const std::int64_t piece : pieces) {
    filled += piece;
    if (static_cast<double>(filled) <= limit) continue;
    buckets.push_back(filled);
    filled = 0;
  }
  if (filled > 0) buckets.push_back(filled);
  return buckets;
}

// Fills buckets that are closed before they would exceed `limit` elements. A larger piece is a
// bucket of its own.
std::vector<std::int64_t> filled_up_to(const std::vector<std::int64_t>& pieces,
                                       std::int64_t limit) {
  std::vector<std::int64_t> buckets;
  std::int64_t filled = 0;
  for (const std::int64_t piece : pieces) {
    if (filled > 0 && piece > limit - filled) {
      buckets.push_back(filled);
      filled = 0;
    }
    filled += piece;
  }
  if (filled > 0) buckets.push_back(filled);
  return buckets;
}

std::vector<std::int64_t> tensor_sizes(const ModelShape& model, bool optimized_only,
                                       bool backwards) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(model.tensors.size());
  for (const Tensor& tensor : model.tensors)
    if (tensor.optimized || !optimized_only) sizes.push_back(tensor.elements);
  if (backwards) std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

constexpr double engine_bucket = 500e6;            // elements
constexpr double ddp_bucket = 25.0 * 1024 * 1024;  // bytes

// Returns DDP's buckets, from the last layer to the first.
std::vector<std::int64_t> ddp_buckets(const TrainingPlan& training) {
  return filled_over(tensor_sizes(*training.model, false, true), ddp_bucket_elements(training));
}

GradientReduction of_ddp(const TrainingPlan& training) {
  GradientReduction reduction;
  reduction.buckets = ddp_buckets(training);
  reduction.overlapped = true;
  return reduction;
}

// Returns the bytes moved to convert an element of `from` bytes into one of `to` bytes.
double conversion(double from, double to) { return from == to ? 0 : from + to; }

GradientReduction of_bf16_optimizer(const TrainingPlan& training) {
  const double sent = gradient_bytes(training);
  GradientReduction reduction;
  const std::vector<std::int64_t> groups = flat_groups(training);
  reduction.buckets = filled_over(groups, engine_bucket);
  if (reduction.buckets.size() < groups.size()) reduction.fill_bytes = 4 + 4;
  reduction.scale_bytes = 2 * sent + 2 * conversion(4, sent) + 4 + 4;
  return reduction;
}

GradientReduction of_zero(const TrainingPlan& training) {
  const Zero& zero = training.recipe.zero;
  const double held = bytes_of(training.recipe.precision.weights);
  const double sent = gradient_bytes(training);
  const double share = 1.0 / training.data_parallel();
  GradientReduction reduction;
  reduction.each_micro_batch = zero.stage >= 2;
  reduction.overlapped = reduction.double_buffered = zero.overlap;
  // Hooks fill the buckets during the backward pass; stage 1 without overlap fills them afterwards.
  const bool backwards = reduction.each_micro_batch || reduction.overlapped;
  reduction.buckets = filled_up_to(tensor_sizes(*training.model, true, backwards), zero.bucket);
  reduction.fill_bytes = 2 * held;
  // The bucket is averaged, and the rank's share moved to the gradients of its shard. With
  // reduce_scatter the bucket is flattened before, and the share copied back after.
  reduction.scale_bytes = 2 * held + 2 * conversion(held, sent) + 2 * held * share;
  if (zero.reduce_scatter) reduction.scale_bytes += 2 * held + 2 * held * share;
  return reduction;
}

GradientReduction of_engine(const TrainingPlan& training) {
  const double sent = gradient_bytes(training);
  GradientReduction reduction;
  reduction.buckets = filled_over(tensor_sizes(*training.model, false, false), engine_bucket);
  reduction.fill_bytes = 2 * sent;
  reduction.scale_bytes = 4 * sent;
  return reduction;
}

}  // namespace

double ddp_bucket_elements(const TrainingPlan& training) {
  if (!training.parallelism) return ddp_bucket / gradient_bytes(training);
  const Framework& framework = training.parallelism->framework;
  return std::max(framework.least_bucket,
                  framework.bucket_per_rank * training.parallelism->replicas());
}

std::int64_t bucket_count(const TrainingPlan& training, double elements) {
  const Framework& framework = training.parallelism->framework;
  const bool ddp =
      framework.name == FrameworkName::pytorch || framework.name == FrameworkName::bagua;
  if (ddp && training.model->experts == 0) return std::ssize(ddp_buckets(training));
  return std::max<std::int64_t>(1,
                                std::llround(std::ceil(elements / ddp_bucket_elements(training))));
}

double gradient_bytes(const TrainingPlan& training) {
  const auto& how = training.parallelism;
  if (how && how->framework.name != FrameworkName::deepspeed) return how->gradient_bytes();
  return bytes_of(training.recipe.precision.on_wire());
}

bool overlaps_reduction(const TrainingPlan& training) {
  return training.overlap == Overlap::ddp ||
         (training.wrapper() == Wrapper::zero && training.recipe.zero.overlap);
}

bool waits_for_sums(const TrainingPlan& training) {
  const Framework& framework =
      training.parallelism ? training.parallelism->framework : framework_of(training.framework);
  return framework.reduces_sums && training.batch.gas > 1;
}

bool exchanges_momenta_in_hooks(const TrainingPlan& training, StepKind kind) {
  return compresses(kind) && training.exchange.is_overlapped() && training.data_parallel() > 1;
}

GradientReduction gradient_reduction(const TrainingPlan& training) {
  if (training.overlap == Overlap::ddp || training.exchange.is_overlapped())
    return of_ddp(training);
  if (training.has_bf16_optimizer()) return of_bf16_optimizer(training);
  return training.wrapper() == Wrapper::zero ? of_zero(training) : of_engine(training);
}

}  // namespace lambcast
