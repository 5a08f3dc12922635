#include "models/training/memory/memory_remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/parallel/layout_rules.h"
#include "models/training/memory/memory.h"

namespace lambcast {
namespace {

// Returns the run with the same batch in micro batches of `micro`, which must divide a GPU's
// samples.
TrainingPlan in_steps_of(TrainingPlan training, std::int64_t micro) {
  training.batch.gas = training.batch.micro * training.batch.gas / micro;
  training.batch.micro = micro;
  return training;
}

// Returns the largest divisor of `samples` that is at most `most`.
std::int64_t largest_divisor(std::int64_t samples, std::int64_t most) {
  std::int64_t largest = 1;
  for (std::int64_t low = 1; low * low <= samples; ++low) {
    if (samples % low != 0) continue;
    for (const std::int64_t divisor : {low, samples / low})
      if (divisor <= most) largest = std::max(largest, divisor);
  }
  return largest;
}

// Returns the run with the largest micro batch that fits, up to its own; nothing if not even 1
// does.
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

std::string steps_flags(const Batch& batch) {
  return fmt::format("--micro-batch {} --grad-accum {}", batch.micro, batch.gas);
}

std::string with_peak(const std::string& flags, const TrainingPlan& training) {
  return fmt::format("{} ({})", flags, to_text(forecast_memory(training).peak));
}

bool has_zero(const Recipe& recipe) {
  const OptimizerModel& optimizer = model_of(recipe.optimizer);
  const bool tested = optimizer.of_deepspeed && !optimizer.is_lamb;
  return (tested || recipe.zero.any_optimizer) && !optimizer.onebit;
}

// Returns the first higher ZeRO stage that is sufficient on its own, or else with a smaller micro
// batch.
std::optional<std::string> higher_stage(const TrainingPlan& training) {
  if (!has_zero(training.recipe)) return std::nullopt;
  for (const bool smaller : {false, true}) {
    TrainingPlan divided = training;
    for (int& stage = divided.recipe.zero.stage; ++stage <= 2;) {
      const std::string flag = fmt::format("--zero-stage {}", stage);
      if (forecast_memory(divided).fits) return with_peak(flag, divided);
      if (!smaller) continue;
      if (const auto in_steps = smaller_steps(divided))
        return with_peak(fmt::format("{} {}", flag, steps_flags(in_steps->batch)), *in_steps);
    }
  }
  return std::nullopt;
}

struct DeviceMemory {
  std::string name;
  Bytes capacity;
};

// Memory capacities of the device presets, smallest first. They are read once, because every point
// of a sweep that does not fit needs them.
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

// The flags that were changed, and the changed run.
struct Change {
  std::string flags;
  TrainingPlan training;
};
// Changes of one kind, in increasing strength.
using Changes = std::vector<Change>;

// Returns the change that sends tokens to experts by copies instead of products with one-hot
// tensors.
Changes copied_tokens(const TrainingPlan& training) {
  if (training.model->experts == 0 || training.parallelism->experts.routing != Routing::one_hot)
    return {};
  TrainingPlan with = training;
  with.parallelism->experts.routing = Routing::sparse;
  return {{"--expert-routing sparse", with}};
}

TrainingPlan recomputing(TrainingPlan training, parallel::Recompute recompute, Repeated repeated) {
  training.parallelism->recompute = recompute;
  training.parallelism->repeated = repeated;
  return training;
}

Changes more_recomputation(const TrainingPlan& training) {
  using enum parallel::Recompute;
  const Parallelism& how = *training.parallelism;
  Changes changes;
  if (how.recompute < selective && how.repeated != Repeated::experts) {
    changes.push_back(
        {"--recompute selective", recomputing(training, selective, Repeated::attention_core)});
    if (training.model->experts > 0)
      changes.push_back({"--recompute experts", recomputing(training, none, Repeated::experts)});
  }
  if (how.recompute < full)
    changes.push_back({"--recompute full", recomputing(training, full, Repeated::block)});
  return changes;
}

// Returns the highest sharding that experiments/scenario/layout_choice.cc allows.
parallel::Sharding most_sharing(const TrainingPlan& training) {
  using enum parallel::Sharding;
  const Parallelism& how = *training.parallelism;
  if (is_onebit(training.optimizer()) || !training.model->pyramid.empty()) return none;
  const FrameworkName name = how.framework.name;
  const bool deepspeed = name == FrameworkName::deepspeed;
  if ((deepspeed || name == FrameworkName::colossalai) && how.layout.pp > 1)
    return std::min(optimizer, how.framework.most_sharing);
  return deepspeed && how.layout.tp > 1 ? gradients : how.framework.most_sharing;
}

Changes more_sharing(const TrainingPlan& training) {
  Changes changes;
  TrainingPlan with = training;
  Parallelism& how = *with.parallelism;
  if (how.sharding == parallel::Sharding::none) how.shard_ranks = how.replicas();
  while (how.sharding < most_sharing(training)) {
    how.sharding = static_cast<parallel::Sharding>(static_cast<int>(how.sharding) + 1);
    changes.push_back({fmt::format("--zero-stage {}", static_cast<int>(how.sharding)), with});
  }
  return changes;
}

bool is_legal(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  const parallel::LayoutUse use = how.use(training.gpus, training.batch.gas, training.seq_len);
  return std::ranges::none_of(
      parallel::check(how.layout, *training.model, use), [](const Finding& finding) {
        return finding.severity == Severity::error || finding.code == "layout-beyond-node";
      });
}

// Returns repeated doublings of one axis, which take the ranks from data parallelism.
Changes more_division(const TrainingPlan& training, const char* flag,
                      int parallel::ParallelLayout::*axis) {
  Changes changes;
  TrainingPlan with = training;
  Parallelism& how = *with.parallelism;
  parallel::ParallelLayout& layout = how.layout;
  if (!how.framework.divides_model || !training.model->pyramid.empty() ||
      (is_onebit(training.optimizer()) && is_mpi(training.backend())))
    return changes;
  const bool among_all = how.shard_ranks == how.replicas();
  while (layout.dp % 2 == 0) {
    layout.dp /= 2;
    layout.*axis *= 2;
    with.batch.gas *= 2;
    if (how.sharding != parallel::Sharding::none && among_all) how.shard_ranks = how.replicas();
    if (!is_legal(with) || how.sharding > most_sharing(with) ||
        how.replicas() % std::max(1, how.shard_ranks) != 0)
      break;
    changes.push_back({fmt::format("{} {}", flag, layout.*axis), with});
  }
  return changes;
}

// Returns repeated doublings of expert parallelism, within the same ranks.
Changes more_expert_ranks(const TrainingPlan& training) {
  Changes changes;
  TrainingPlan with = training;
  parallel::ParallelLayout& layout = with.parallelism->layout;
  while (layout.ep < training.model->experts) {
    layout.ep *= 2;
    if (!is_legal(with)) break;
    changes.push_back({fmt::format("--ep {}", layout.ep), with});
  }
  return changes;
}

// Returns the change that offloads the optimizer to the host, if DeepSpeed's Adam already shards
// states.
Changes optimizer_on_host(const TrainingPlan& training) {
  TrainingPlan with = training;
  Parallelism& how = *with.parallelism;
  const bool adam =
      training.optimizer() == OptimizerType::adam || training.optimizer() == OptimizerType::adamw;
  if (how.framework.name != FrameworkName::deepspeed || !adam ||
      how.sharding == parallel::Sharding::none || how.optimizer_on == OptimizerOn::host)
    return {};
  how.optimizer_on = OptimizerOn::host;
  return {{"--offload-optimizer cpu", with}};
}

std::vector<Changes> kinds_of_change(const TrainingPlan& training) {
  return {copied_tokens(training),
          more_recomputation(training),
          more_sharing(training),
          more_division(training, "--tp", &parallel::ParallelLayout::tp),
          more_division(training, "--pp", &parallel::ParallelLayout::pp),
          more_expert_ranks(training),
          optimizer_on_host(training)};
}

// Returns the flags of a change. With fewer replicas, they increase gradient accumulation to keep
// the batch.
std::string same_batch(const Change& change, std::int64_t steps_before) {
  const std::int64_t steps = change.training.batch.gas;
  return steps == steps_before ? change.flags
                               : fmt::format("{} --grad-accum {}", change.flags, steps);
}

std::optional<std::string> with_smaller_steps(const Change& change, std::int64_t steps_before) {
  const auto in_steps = smaller_steps(change.training);
  if (!in_steps) return std::nullopt;
  if (in_steps->batch.micro == change.training.batch.micro)
    return with_peak(same_batch(change, steps_before), *in_steps);
  return with_peak(fmt::format("{} {}", change.flags, steps_flags(in_steps->batch)), *in_steps);
}

// Returns the smallest sufficient change of each kind, with the run's micro batch or a smaller one.
std::vector<std::string> least_changes(const TrainingPlan& training, bool smaller,
                                       const std::string& before = {}) {
  std::vector<std::string> remedies;
  for (const Changes& changes : kinds_of_change(training))
    for (auto [flags, with] : changes) {
      flags = before + flags;
      if (smaller) {
        const auto remedy = with_smaller_steps({flags, with}, training.batch.gas);
        if (!remedy) continue;
        remedies.push_back(*remedy);
      } else if (forecast_memory(with).fits) {
        remedies.push_back(with_peak(same_batch({flags, with}, training.batch.gas), with));
      } else {
        continue;
      }
      break;
    }
  return remedies;
}

// Returns changes that suffice with a smaller micro batch; if there are none, changes that also
// need full recomputation.
std::vector<std::string> combined_changes(const TrainingPlan& training) {
  std::vector<std::string> remedies = least_changes(training, true);
  if (!remedies.empty() || training.parallelism->recompute == parallel::Recompute::full)
    return remedies;
  return least_changes(recomputing(training, parallel::Recompute::full, Repeated::block), true,
                       "--recompute full ");
}

}  // namespace

std::vector<std::string> memory_remedies(const TrainingPlan& training) {
  std::vector<std::string> remedies;
  if (training.batch.micro > 1)
    if (const auto in_steps = smaller_steps(training))
      remedies.push_back(with_peak(steps_flags(in_steps->batch), *in_steps));
  if (training.parallelism) {
    for (std::string& remedy : least_changes(training, false))
      remedies.push_back(std::move(remedy));
    if (remedies.empty()) remedies = combined_changes(training);
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
  const TrainingPlan smallest = in_steps_of(training, 1);
  const MemoryForecast one = forecast_memory(smallest);
  std::string text;
  if (!one.fits && training.parallelism)
    text = fmt::format("even --micro-batch 1 needs {}; ", to_text(one.peak));
  else if (!one.fits)
    text = fmt::format(
        "even --micro-batch 1 needs {}, {} of it weights, gradients and optimizer state{}; ",
        to_text(one.peak), to_text(one.states),
        has_zero(training.recipe)
            ? ""
            : fmt::format(", which DeepSpeed cannot divide among ranks with {}",
                          name_of(training.optimizer())));
  const std::vector<std::string> remedies = memory_remedies(training);
  if (remedies.empty() && training.parallelism)
    return text + fmt::format(
                      "no micro batch, recomputation, ZeRO stage, --tp, --pp, --ep or offload "
                      "that was tried fits on {} GPUs",
                      training.gpus);
  if (remedies.empty())
    return text + "it takes weights divided among GPUs: " +
           (is_onebit(training.optimizer()) ? "--tp or --pp" : "--zero-stage 3, --tp or --pp") +
           " (lambcast plan searches them)";
  return fmt::format("{}what fits: {}", text, fmt::join(remedies, ", or "));
}

}  // namespace lambcast
