#include "models/training/passage.h"

#include <algorithm>
#include <cmath>

#include "models/training/layout_contents.h"
#include "models/training/measured_program.h"
#include "models/training/slowest_rank.h"

namespace lambcast {
namespace {

// Of the images' patches of a ViT the kernels are not known (models/device/image_time.h).
bool has_kernels(const ModelShape& model, const Device& device) {
  return device.rates && model.hidden > 0 && model.ffn > 0 &&
         (model.max_seq_len > 0 || !model.pyramid.empty());
}

MicroBatchTime by_whole_models(const TrainingPlan& training, std::int64_t seq_len) {
  return micro_batch_time(*training.device, *training.model, training.cluster->stack.implementation,
                          training.batch.micro, seq_len);
}

Passage by_kernels(const TrainingPlan& training, std::int64_t seq_len, CollectiveCosts& costs) {
  TrainingPlan whole = training;
  whole.parallelism = undivided(training);
  const PipelinePrice price =
      price_pipeline(computation_of(whole, seq_len), whole, costs, End::expected, 0);
  ChunkPrice all = price.chunks.front();
  Passage passage{all.forward.time(),
                  all.input_gradient.time() + all.weight_gradient.time(),
                  width_of_passes(training),
                  training.program ? Basis::this_machine : Basis::kernels,
                  {},
                  all.reads,
                  whole.parallelism->experts};
  passage.kernels->paced = {};  // noted below
  const Sourced<Duration>& launch = training.device->framework_launch;
  const Duration kernels = passage.forward + passage.backward - all.reads.paced;
  const Duration start = rates_of_slowest(whole, 1).kernel_start.value;
  // The host starts every kernel that is priced, and more where the program does not fuse them.
  const double launches = start > Duration() ? all.reads.kernels[Rate::start] / start : 0;
  const double least = launch.value.scaled(launches) / kernels;
  const double unfused = unfused_launches(*training.device, *training.model) / kernels;
  if (unfused > 1 && !training.program)
    passage.width = {std::max(passage.width.log, std::log(unfused)), std::nullopt};
  // What is as much as half of the other moves the time where it errs by two.
  if (unfused > 1 || least > 0.5) passage.rests_on = {{"framework_launch", launch.provenance}};
  if (least > 2) passage.kernels.reset();
  return passage;
}

// The rates that a ratio of kernels' times rests on.
void read_ratio(const GpuRates& rates, std::vector<NumberRead>& rests_on) {
  rests_on.push_back({"matrix_share_single", rates.of(MatrixFormat::single).share.provenance});
  rests_on.push_back({"matrix_share", rates.of(MatrixFormat::half).share.provenance});
  rests_on.push_back({"memory_rate", rates.memory.provenance});
  rests_on.push_back({"vector_peak", rates.peak_vector.provenance});
  rests_on.push_back({"exponentials", rates.exponentials.provenance});
  rests_on.push_back({"kernel_start", rates.kernel_start.provenance});
}

// How much longer passes take in fp32 than in half precision: the ratio of their kernels' times if
// the GPU's rates are known, since only products change their peak and fp32 reaches more of its
// own; else the ratio of the peaks.
double single_over_half(const TrainingPlan& training, std::int64_t seq_len,
                        CollectiveCosts& costs) {
  const Device& device = *training.device;
  if (!has_kernels(*training.model, device))
    return device.peak_half.value / device.peak_single.value;
  const auto kernels_in = [&](DataType weights) {
    TrainingPlan in = training;
    in.recipe.precision.weights = weights;
    const Passage passage = by_kernels(in, seq_len, costs);
    return passage.forward + passage.backward;
  };
  return kernels_in(DataType::fp32) / kernels_in(DataType::fp16);
}

// Curves are of half-precision training.
Passage by_curves(const TrainingPlan& training, MicroBatchTime time, std::int64_t seq_len,
                  CollectiveCosts& costs) {
  const Device& device = *training.device;
  const StackSpec& stack = training.cluster->stack;
  const bool half = training.recipe.precision.is_half();
  const double scale =
      stack.compute_scale.value * level_of(training) *
      slowest_over_mean(stack.compute_spread.value, training.batch.gas, training.data_parallel()) *
      (half ? 1 : single_over_half(training, seq_len, costs));
  const Basis basis = training.program ? Basis::this_machine
                      : !half          ? Basis::rate
                      : time.basis == Basis::this_device && is_own(stack.compute_scale)
                          ? Basis::this_machine
                          : time.basis;
  if (!half) {
    time.rests_on.push_back({"matrix_peak", device.peak_half.provenance});
    time.rests_on.push_back({"matrix_peak_single", device.peak_single.provenance});
    if (has_kernels(*training.model, device)) read_ratio(*device.rates, time.rests_on);
  }
  return {time.forward.scaled(scale),
          time.backward.scaled(scale),
          width_of_passes(training,
                          compute_width(basis, time.micro_batch_doublings, time.seq_len_doublings)),
          basis,
          std::move(time.rests_on),
          {},
          {}};
}

}  // namespace

std::optional<Parallelism> undivided(const TrainingPlan& training) {
  if (!has_kernels(*training.model, *training.device)) return {};
  Parallelism how;
  how.framework = framework_of(FrameworkName::deepspeed);
  how.layout.dp = training.gpus;
  how.layout.gpus_per_node = training.gpus_per_node;
  how.format = training.recipe.precision.is_half() ? MatrixFormat::half : MatrixFormat::single;
  how.framework.fp32_gradients = how.format == MatrixFormat::single;
  how.attention = usual_attention(*training.model, *training.device);
  if (training.model->experts > 0) how.experts = deepspeed_experts;
  return how;
}

std::optional<Parallelism> priced_as(const TrainingPlan& training) {
  if (training.parallelism) return training.parallelism;
  if (by_whole_models(training, training.seq_len).measured) return {};
  return undivided(training);
}

AttentionKernel usual_attention(const ModelShape& model, const Device& device) {
  return model.pyramid.empty() ? newest_attention(*device.rates) : AttentionKernel::unfused;
}

bool keeps_scores(const TrainingPlan& training) {
  const std::optional<Parallelism> how = priced_as(training);
  return how ? how->attention == AttentionKernel::unfused : !training.model->flash_attention;
}

Passage passage(const TrainingPlan& training, std::int64_t seq_len, CollectiveCosts& costs) {
  MicroBatchTime time = by_whole_models(training, seq_len);
  if (!time.measured && has_kernels(*training.model, *training.device))
    return by_kernels(training, seq_len, costs);
  return by_curves(training, std::move(time), seq_len, costs);
}

}  // namespace lambcast
