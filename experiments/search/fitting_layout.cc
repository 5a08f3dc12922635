#include "experiments/search/fitting_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "experiments/scenario/words.h"
#include "models/training/memory/memory.h"
#include "models/training/memory/memory_remedy.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

// Changes of one kind, each dividing the model further.
using Divisions = std::vector<WhatIf>;

WhatIf divided_by(int tp, int pp) {
  WhatIf what_if;
  if (tp > 1) what_if["tp"] = fmt::format("{}", tp);
  if (pp > 1) what_if["pp"] = fmt::format("{}", pp);
  return what_if;
}

std::vector<Divisions> kinds_of_sizes(const TrainingPlan& training) {
  const int node = training.gpus_per_node;
  Divisions tensor, pipeline, both;
  for (int tp = 2; tp <= node; tp *= 2) tensor.push_back(divided_by(tp, 1));
  for (int pp = 2; pp <= training.gpus && pp <= training.model->layers; pp *= 2) {
    pipeline.push_back(divided_by(1, pp));
    both.push_back(divided_by(node, pp));
  }
  return {{{{"zero_stage", "3"}}}, tensor, pipeline, both};
}

// Returns the run with these sizes and the same batch; nothing if it is invalid.
std::optional<Scenario> with_sizes(const Scenario& scenario, const WhatIf& changes,
                                   Catalog& catalog) {
  WhatIf asked = scenario.asked;
  asked.erase("grad_accum");
  if (changes.contains("gpus"))
    for (const char* key : {"nodes", "hosts"}) asked.erase(key);
  asked.insert_or_assign("global_batch", fmt::format("{}", scenario.training.batch.train));
  for (const auto& [key, value] : changes) asked.insert_or_assign(key, value);
  try {
    return resolve(asked, catalog);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string flags_of_division(const WhatIf& changes) {
  std::vector<std::string> flags;
  for (const auto& [key, value] : changes)
    flags.push_back(fmt::format("{} {}", flag(key).key, value));
  std::ranges::reverse(flags);  // list tp before pp
  return fmt::format("{}", fmt::join(flags, " "));
}

// Returns doubled numbers of GPUs, with the run's ZeRO stage and with stage 3.
Divisions more_gpus(const Scenario& scenario) {
  constexpr int most = 64;
  Divisions sizes;
  for (int factor = 2; factor <= most; factor *= 2) {
    const std::string gpus = fmt::format("{}", scenario.training.gpus * factor);
    sizes.push_back({{"gpus", gpus}});
    if (!scenario.training.parallelism) sizes.push_back({{"gpus", gpus}, {"zero_stage", "3"}});
  }
  return sizes;
}

// Whether a run fits at the high end of its forecast, or only as forecast.
enum class Fit { at_the_high_end, as_forecast };

bool is_sure(const MemoryForecast& memory, Bytes capacity, Fit fit) {
  return memory.fits && (fit == Fit::as_forecast || memory.high() <= capacity);
}

// Returns the first of the sizes that fits.
std::optional<std::string> least_of(const Scenario& scenario, const Divisions& sizes,
                                    bool recomputed, Fit fit, Catalog& catalog) {
  for (WhatIf changes : sizes) {
    if (recomputed) changes["recompute"] = "full";
    const auto with = with_sizes(scenario, changes, catalog);
    if (!with) continue;
    const MemoryForecast memory = forecast_memory(with->training);
    if (!is_sure(memory, with->training.device->memory_capacity, fit)) continue;
    const std::int64_t steps = with->training.batch.gas;
    const bool more = scenario.asked.contains("grad_accum") && steps != scenario.training.batch.gas;
    return fmt::format("{}{} ({})", flags_of_division(changes),
                       more ? fmt::format(" --grad-accum {}", steps) : "", to_text(memory.peak));
  }
  return std::nullopt;
}

// Returns the remedies that keep the GPU.
std::vector<std::string> without_another_gpu(std::vector<std::string> remedies) {
  std::erase_if(remedies, [](const std::string& remedy) { return remedy.starts_with("--device"); });
  return remedies;
}

}  // namespace

std::vector<std::string> fitting_layouts(const Scenario& scenario, Catalog& catalog) {
  const TrainingPlan& training = scenario.training;
  if (forecast_memory(training).fits || !without_another_gpu(memory_remedies(training)).empty())
    return {};
  const std::vector<Divisions> kinds =
      training.parallelism ? std::vector<Divisions>() : kinds_of_sizes(training);
  for (const Fit fit : {Fit::at_the_high_end, Fit::as_forecast}) {
    for (const bool recomputed : {false, true}) {
      std::vector<std::string> found;
      for (const Divisions& sizes : kinds)
        if (auto least = least_of(scenario, sizes, recomputed, fit, catalog))
          found.push_back(*std::move(least));
      if (!found.empty()) return found;
    }
  }
  for (const bool recomputed : {false, true})
    if (const auto more =
            least_of(scenario, more_gpus(scenario), recomputed, Fit::as_forecast, catalog))
      return {*more};
  return {};
}

std::string smallest_change(const Scenario& scenario, Catalog& catalog) {
  if (forecast_memory(scenario.training).fits) return "";
  const std::vector<std::string> remedies = memory_remedies(scenario.training);
  for (const std::vector<std::string>& changes :
       {without_another_gpu(remedies), fitting_layouts(scenario, catalog), remedies})
    if (!changes.empty()) return changes.front();
  return "";
}

std::vector<Finding> find_fitting_layouts(const Scenario& scenario, bool fits, Catalog& catalog) {
  if (fits || scenario.training.parallelism) return {};
  const std::vector<std::string> found = fitting_layouts(scenario, catalog);
  if (found.empty()) return {};
  return {{Severity::note, "layout-that-fits",
           fmt::format("it fits with {}; lambcast plan finds the fastest layout",
                       fmt::join(found, ", or "))}};
}

}  // namespace lambcast
