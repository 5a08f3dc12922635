#include "models/training/memory_remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/parallel/layout_rules.h"
#include "models/training/memory.h"

namespace lambcast {
namespace {

// The same batch in micro steps of `micro`, which divides the samples of a GPU.
TrainingPlan in_steps_of(TrainingPlan training, std::int64_t micro) {
  training.batch.gas = training.batch.micro * training.batch.gas / micro;
  training.batch.micro = micro;
  return training;
}

// The largest divisor of `samples` up to `most`.
std::int64_t largest_divisor(std::int64_t samples, std::int64_t most) {
  std::int64_t largest = 1;
  for (std::int64_t low = 1; low * low <= samples; ++low) {
    if (samples % low != 0) continue;
    for (const std::int64_t divisor : {low, samples / low})
      if (divisor <= most) largest = std::max(largest, divisor);
  }
  return largest;
}

// With the largest micro batch that fits, up to the run's own; nothing where not even 1 does.
std::optional<TrainingPlan> smaller_steps(const TrainingPlan& training) {
  const auto fits = [&](std::int64_t micro) {
    TrainingPlan with = training;
    with.batch.micro = micro;
    return forecast_memory(with).fits;
  };
  if (!fits(1)) return std::nullopt;
  std::int64_t low = 1, high = training.batch.micro + 1;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return in_steps_of(training, largest_divisor(training.batch.micro * training.batch.gas, low));
}

std::string steps_flags(const TrainingPlan& training) {
  return fmt::format("--micro-batch {} --grad-accum {}", training.batch.micro, training.batch.gas);
}

std::string with_peak(const std::string& flags, const TrainingPlan& training) {
  return fmt::format("{} ({})", flags, to_text(forecast_memory(training).peak));
}

bool has_zero(const TrainingPlan& training) {
  const OptimizerModel& optimizer = model_of(training.optimizer());
  const bool tested = optimizer.of_deepspeed && !optimizer.is_lamb;
  return (tested || training.recipe.zero.any_optimizer) && !optimizer.onebit;
}

// The first higher stage that is enough by itself, else the first with a smaller micro batch.
std::optional<std::string> higher_stage(const TrainingPlan& training) {
  if (!has_zero(training)) return std::nullopt;
  for (const bool smaller : {false, true}) {
    TrainingPlan divided = training;
    for (int& stage = divided.recipe.zero.stage; ++stage <= 2;) {
      const std::string flag = fmt::format("--zero-stage {}", stage);
      if (forecast_memory(divided).fits) return with_peak(flag, divided);
      if (!smaller) continue;
      if (const auto in_steps = smaller_steps(divided))
        return with_peak(fmt::format("{} {}", flag, steps_flags(*in_steps)), *in_steps);
    }
  }
  return std::nullopt;
}

struct DeviceMemory {
  std::string name;
  Bytes capacity;
};

// Of the devices that ship, the smallest first. Read once: every point of a sweep that does not fit
// asks.
const std::vector<DeviceMemory>& device_memories() {
  static const std::vector<DeviceMemory> memories = [] {
    std::vector<DeviceMemory> all;
    for (const std::string& name : device_names())
      all.push_back({name, load_device(name).memory_capacity});
    std::ranges::stable_sort(all, {}, &DeviceMemory::capacity);
    return all;
  }();
  return memories;
}

std::optional<std::string> larger_device(const TrainingPlan& training) {
  const Bytes peak = forecast_memory(training).peak;
  for (const auto& [name, capacity] : device_memories())
    if (capacity >= peak)
      return fmt::format("--device {} ({} of {})", name, to_text(peak), to_text(capacity));
  return std::nullopt;
}

// --- under a layout ---

std::optional<std::string> more_recomputation(const TrainingPlan& training) {
  TrainingPlan with = training;
  Parallelism& how = *with.parallelism;
  for (const auto recompute : {parallel::Recompute::selective, parallel::Recompute::full}) {
    if (recompute <= training.parallelism->recompute) continue;
    how.recompute = recompute;
    if (forecast_memory(with).fits)
      return with_peak(fmt::format("--recompute {}", parallel::name_of(recompute)), with);
  }
  return std::nullopt;
}

std::optional<std::string> more_sharing(const TrainingPlan& training) {
  if (is_onebit(training.optimizer())) return std::nullopt;
  TrainingPlan with = training;
  Parallelism& how = *with.parallelism;
  const bool pipeline = how.framework.name == FrameworkName::deepspeed && how.layout.pp > 1;
  const auto most = pipeline ? parallel::Sharding::optimizer : parallel::Sharding::weights;
  how.shard_ranks = how.replicas();
  while (how.sharding < most) {
    how.sharding = static_cast<parallel::Sharding>(static_cast<int>(how.sharding) + 1);
    if (forecast_memory(with).fits)
      return with_peak(fmt::format("--zero-stage {}", static_cast<int>(how.sharding)), with);
  }
  return std::nullopt;
}

// Twice as much of one axis, and again, from the ranks that hold the same weights.
std::optional<std::string> more_division(const TrainingPlan& training, const char* flag,
                                         int parallel::ParallelLayout::*axis) {
  TrainingPlan with = training;
  Parallelism& how = *with.parallelism;
  parallel::ParallelLayout& layout = how.layout;
  while (layout.dp % 2 == 0) {
    layout.dp /= 2;
    layout.*axis *= 2;
    with.batch.gas *= 2;
    if (how.sharding != parallel::Sharding::none) how.shard_ranks = how.replicas();
    const parallel::LayoutUse use{training.gpus,
                                  static_cast<int>(with.batch.gas),
                                  training.seq_len,
                                  how.sequence_parallel,
                                  how.schedule,
                                  how.framework.split,
                                  how.framework.context_exchange == ContextExchange::heads};
    for (const Finding& finding : parallel::check(layout, *training.model, use))
      if (finding.severity == Severity::error || finding.code == "layout-beyond-node")
        return std::nullopt;
    if (forecast_memory(with).fits)
      return with_peak(fmt::format("{} {}", flag, layout.*axis), with);
  }
  return std::nullopt;
}

std::vector<std::string> layout_remedies(const TrainingPlan& training) {
  std::vector<std::string> remedies;
  for (auto& remedy : {more_recomputation(training), more_sharing(training),
                       more_division(training, "--tp", &parallel::ParallelLayout::tp),
                       more_division(training, "--pp", &parallel::ParallelLayout::pp)})
    if (remedy) remedies.push_back(*remedy);
  return remedies;
}

}  // namespace

std::vector<std::string> memory_remedies(const TrainingPlan& training) {
  std::vector<std::string> remedies;
  if (training.batch.micro > 1)
    if (const auto in_steps = smaller_steps(training))
      remedies.push_back(with_peak(steps_flags(*in_steps), *in_steps));
  if (training.parallelism) {
    for (std::string& remedy : layout_remedies(training)) remedies.push_back(std::move(remedy));
    if (auto device = larger_device(training)) remedies.push_back(std::move(*device));
    return remedies;
  }
  if (is_onebit(training.optimizer()) && training.kernels != Kernels::fused) {
    TrainingPlan fused = training;
    fused.kernels = Kernels::fused;
    if (forecast_memory(fused).fits) remedies.push_back(with_peak("--kernels fused", fused));
  }
  if (auto stage = higher_stage(training)) remedies.push_back(std::move(*stage));
  if (auto device = larger_device(training)) remedies.push_back(std::move(*device));
  return remedies;
}

std::string how_to_fit(const TrainingPlan& training) {
  const MemoryForecast one = forecast_memory(in_steps_of(training, 1));
  const Bytes activations = activation_bytes(*training.model, 1, training.seq_len);
  std::string text;
  if (!one.fits && training.parallelism)
    text = fmt::format("even --micro-batch 1 needs {}; ", to_text(one.peak));
  else if (!one.fits)
    text = fmt::format(
        "even --micro-batch 1 needs {}, {} of it weights, gradients and optimizer state{}; ",
        to_text(one.peak), to_text(one.peak - activations),
        has_zero(training) ? ""
                           : fmt::format(", which DeepSpeed cannot divide among ranks with {}",
                                         name_of(training.optimizer())));
  const std::vector<std::string> remedies = memory_remedies(training);
  if (remedies.empty())
    return text + "it takes weights divided among GPUs: " +
           (is_onebit(training.optimizer()) ? "--tp or --pp" : "--zero-stage 3, --tp or --pp");
  return fmt::format("{}what fits: {}", text, fmt::join(remedies, ", or "));
}

}  // namespace lambcast
