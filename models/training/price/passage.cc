#include "models/training/price/passage.h"

#include <algorithm>
#include <cmath>

#include "models/training/plan/layout_contents.h"
#include "models/training/price/measured_program.h"
#include "models/training/price/own_scale.h"
#include "models/training/price/slowest_rank.h"

namespace lambcast {
namespace {

// Whether kernels can be priced by shape. The kernels of a ViT's image patches cannot
// (models/device/image_time.h).
bool has_kernels(const ModelShape& model, const Device& device) {
  return device.rates && model.hidden > 0 && model.ffn > 0 &&
         (model.max_seq_len > 0 || !model.pyramid.empty());
}

// Whether the model has convolutions, whose kernels are known by program and format.
bool has_convolution_kernels(const TrainingPlan& training) {
  return training.device->rates && !training.model->convolutions.empty();
}

// Returns the program whose times the forecast uses: the program of the cluster's figures, or, for
// a net of convolutions, the program named by the user.
std::string implementation_of(const TrainingPlan& training) {
  const bool named = !steps_as_deepspeed(training.framework);
  return has_convolution_kernels(training) && named ? std::string(name_of(training.framework))
                                                    : training.cluster->stack.implementation;
}

MicroBatchTime by_whole_models(const TrainingPlan& training, std::int64_t seq_len) {
  const bool half = training.recipe.precision.is_half() || !has_convolution_kernels(training);
  return micro_batch_time(*training.device, *training.model, implementation_of(training),
                          training.batch.micro, seq_len,
                          half ? MatrixFormat::half : MatrixFormat::single);
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
  passage.kernels->paced = {};  // added below
  const Sourced<Duration>& launch = training.device->framework_launch;
  const Duration kernels = passage.forward + passage.backward - all.reads.paced;
  const Duration start = rates_of_slowest(whole, 1).kernel_start.value;
  // The host starts every priced kernel, and more kernels if the program does not fuse them.
  const double launches = start > Duration() ? all.reads.kernels[Rate::start] / start : 0;
  const double least = whole.parallelism->captured ? 0 : launch.value.scaled(launches) / kernels;
  const double unfused = unfused_launches(*training.device, *training.model) / kernels;
  if (unfused > 1 && !training.program)
    passage.width = {std::max(passage.width.log, std::log(unfused)), std::nullopt};
  // The launch time is a source if it takes at least half of the kernels' time: an error by a
  // factor of 2 then changes the result.
  if (unfused > 1 || least > 0.5) passage.rests_on = {{"framework_launch", launch.provenance}};
  if (least > 2) passage.kernels.reset();
  return passage;
}

// Adds the GPU's rates that determine a ratio of kernel times.
void read_ratio(const GpuRates& rates, std::vector<NumberRead>& rests_on) {
  rests_on.push_back({"matrix_share_single", rates.of(MatrixFormat::single).share.provenance});
  rests_on.push_back({"matrix_share", rates.of(MatrixFormat::half).share.provenance});
  rests_on.push_back({"memory_rate", rates.memory.provenance});
  rests_on.push_back({"vector_peak", rates.peak_vector.provenance});
  rests_on.push_back({"exponentials", rates.exponentials.provenance});
  rests_on.push_back({"kernel_start", rates.kernel_start.provenance});
}

// Forward and backward times of the run's kernels, without communication.
struct KernelTimes {
  Duration forward, backward;
};

KernelTimes kernels_of(const TrainingPlan& training, std::int64_t seq_len, CollectiveCosts& costs) {
  TrainingPlan whole = training;
  whole.parallelism = undivided(training);
  const ChunkPrice chunk =
      price_pipeline(computation_of(whole, seq_len), whole, costs, End::expected, 0).chunks.front();
  return {chunk.forward.time(), chunk.input_gradient.time() + chunk.weight_gradient.time()};
}

// Factors by which the run's pass options prolong passes that were timed without them.
struct OptionRatio {
  double forward = 1, backward = 1;
};

OptionRatio option_ratio(const TrainingPlan& training, std::int64_t seq_len,
                         CollectiveCosts& costs) {
  if (!training.passes) return {};
  TrainingPlan usual = training;
  usual.passes = usual_pass_options(training);
  const KernelTimes with = kernels_of(training, seq_len, costs);
  const KernelTimes without = kernels_of(usual, seq_len, costs);
  return {with.forward / without.forward, with.backward / without.backward};
}

struct KernelSums {
  Duration all, products;
};

KernelSums kernels_in(DataType weights, const TrainingPlan& training, std::int64_t seq_len,
                      CollectiveCosts& costs) {
  TrainingPlan in = training;
  in.passes.reset();
  in.recipe.precision.weights = weights;
  in.parallelism = undivided(in);
  const ChunkPrice price =
      price_pipeline(computation_of(in, seq_len), in, costs, End::expected, 0).chunks.front();
  RateTimes times = price.reads.kernels;
  Duration all;
  for (const Duration time : times.of) all += time;
  return {all, times[rate_of(in.parallelism->format)]};
}

// Returns how much longer passes take in fp32 than in half precision, in which they took
// `measured`:
//
//   T = K_32 + (C - K_16) (K_32 - P_32) / (K_16 - P_16)   if C > K_16
//   T = K_32 C / K_16                                     else
//
// The ratio is T / C. C is the measured time, K the time of all kernels and P that of the products
// among them, in both formats. All programs use one library for products, so a program slower than
// its kernels loses time outside its products: the excess grows as the other kernels do. Without
// the GPU's rates, the ratio is that of the peaks.
double single_over_half(const TrainingPlan& training, std::int64_t seq_len, Duration measured,
                        CollectiveCosts& costs) {
  const Device& device = *training.device;
  if (!has_kernels(*training.model, device))
    return device.peak_half.value / device.peak_single.value;
  const KernelSums half = kernels_in(DataType::fp16, training, seq_len, costs);
  const KernelSums single = kernels_in(DataType::fp32, training, seq_len, costs);
  if (measured <= half.all) return single.all / half.all;
  const double beside = (single.all - single.products) / (half.all - half.products);
  return (single.all + (measured - half.all).scaled(beside)) / measured;
}

// Widens the interval by the part of the time that options add or save, which depends on the GPU's
// rates.
void widen_by_options(Passage& passage, Duration without, const TrainingPlan& training) {
  const Duration with = passage.forward + passage.backward;
  const double changed = std::abs(1 - without / with);
  passage.width.log = std::hypot(passage.width.log, changed * width_of_passes(training).log);
  if (changed > 0) read_ratio(*training.device->rates, passage.rests_on);
}

// Returns the passage from measured curves, which are curves of half-precision training.
Passage by_curves(const TrainingPlan& training, MicroBatchTime time, std::int64_t seq_len,
                  CollectiveCosts& costs) {
  const Device& device = *training.device;
  const StackSpec& stack = training.cluster->stack;
  const bool half = training.recipe.precision.is_half() || has_convolution_kernels(training);
  const double scale =
      stack.compute_scale.value * level_of(training) * slowest_over_mean(training) *
      (half ? 1 : single_over_half(training, seq_len, time.forward + time.backward, costs));
  const double from_own = distance_from_own(stack.compute_scale.value, own_scale_of(training));
  const bool own_curve =
      time.basis == Basis::this_device && stack.implementation == framework_of_run(training);
  const bool near_own =
      own_curve && std::hypot(held_out::this_machine.off, from_own) < held_out::this_device.off;
  const Basis basis = training.program ? Basis::this_machine
                      : !half          ? Basis::rate
                      : near_own       ? Basis::this_machine
                                       : time.basis;
  ComputeWidth width = compute_width(basis, time.micro_batch_doublings, time.seq_len_doublings);
  if (basis == Basis::this_machine && near_own) width.log = std::hypot(width.log, from_own);
  if (!half) {
    time.rests_on.push_back({"matrix_peak", device.peak_half.provenance});
    time.rests_on.push_back({"matrix_peak_single", device.peak_single.provenance});
    if (has_kernels(*training.model, device)) read_ratio(*device.rates, time.rests_on);
  }
  const OptionRatio ratio = option_ratio(training, seq_len, costs);
  if (basis == Basis::kernels) width = width_of_passes(training);
  Passage passage{time.forward.scaled(scale * ratio.forward),
                  time.backward.scaled(scale * ratio.backward),
                  basis == Basis::kernels
                      ? width
                      : width_of_passes(training, width, own_curve || basis > Basis::blocks),
                  basis,
                  std::move(time.rests_on),
                  {},
                  {}};
  if (training.passes)
    widen_by_options(passage, (time.forward + time.backward).scaled(scale), training);
  return passage;
}

// Returns the timings of other programs; none if the run's own program was timed on this GPU or by
// a step of the user's.
std::vector<OtherTiming> other_timings(const TrainingPlan& training, std::int64_t seq_len) {
  std::vector<OtherTiming> timings;
  if (training.program || !training.recipe.precision.is_half() ||
      by_whole_models(training, seq_len).measured)
    return timings;
  for (const TrainingCurve& curve : training.device->training_curves) {
    const MicroBatchTime time = micro_batch_time(
        *training.device, *training.model, curve.implementation, training.batch.micro, seq_len);
    if (time.basis == Basis::this_device && time.measured)
      timings.push_back({curve.implementation, curve.provenance, time.forward + time.backward,
                         held_out::micro_batch.off * time.micro_batch_doublings +
                             held_out::seq_len.off * time.seq_len_doublings});
  }
  return timings;
}

// Returns the half-width, in logarithms, that reaches from the passes to another program's timing.
double width_to(const OtherTiming& timing, const Passage& passage) {
  return std::abs(std::log(timing.passes / (passage.forward + passage.backward))) -
         timing.uncertainty;
}

Passage by_best(const TrainingPlan& training, std::int64_t seq_len, CollectiveCosts& costs) {
  MicroBatchTime time = by_whole_models(training, seq_len);
  if (!time.measured && has_kernels(*training.model, *training.device))
    return by_kernels(training, seq_len, costs);
  return by_curves(training, std::move(time), seq_len, costs);
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
  if (training.passes) set_pass_options(how, *training.passes);
  return how;
}

std::optional<PassOptions> usual_pass_options(const TrainingPlan& training) {
  TrainingPlan usual = training;
  usual.passes.reset();
  const std::optional<Parallelism> how = undivided(usual);
  if (!how) return {};
  PassOptions options = pass_options_of(*how);
  if (keeps_scores(usual)) options.attention = AttentionKernel::unfused;
  return options;
}

std::optional<Parallelism> priced_as(const TrainingPlan& training) {
  if (training.parallelism) return training.parallelism;
  if (by_whole_models(training, training.seq_len).measured) return {};
  return undivided(training);
}

std::optional<Parallelism> stated_layout(const TrainingPlan& training) {
  if (training.parallelism || !training.passes) return training.parallelism;
  std::optional<Parallelism> how = undivided(training);
  how->sharding = static_cast<parallel::Sharding>(training.recipe.zero.stage);
  if (how->sharding != parallel::Sharding::none) how->shard_ranks = training.gpus;
  return how;
}

AttentionKernel usual_attention(const ModelShape& model, const Device& device) {
  return model.pyramid.empty() && model.distances == 0 ? newest_attention(*device.rates)
                                                       : AttentionKernel::unfused;
}

bool keeps_scores(const TrainingPlan& training) {
  if (training.passes) return training.passes->attention == AttentionKernel::unfused;
  const std::optional<Parallelism> how = priced_as(training);
  return how ? how->attention == AttentionKernel::unfused : !training.model->flash_attention;
}

Passage passage(const TrainingPlan& training, std::int64_t seq_len, CollectiveCosts& costs) {
  Passage passage = by_best(training, seq_len, costs);
  for (OtherTiming& timing : other_timings(training, seq_len)) {
    const double reaches = width_to(timing, passage);
    if (reaches <= passage.width.log) continue;
    passage.width = {reaches, std::nullopt};
    passage.contradicted_by = std::move(timing);
  }
  return passage;
}

}  // namespace lambcast
