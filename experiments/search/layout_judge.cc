#include "experiments/search/layout_judge.h"

#include "experiments/scenario/words.h"
#include "models/parallel/layout_rules.h"
#include "models/training/memory/memory.h"
#include "models/training/price/least_step.h"

namespace lambcast {
namespace {

constexpr std::int64_t most_micro_batches = 65536;

// Returns the step by which a search compares layouts.
DistinctStep compared_step(OptimizerType optimizer, std::int64_t seq_len) {
  return {is_onebit(optimizer) ? StepKind::compression : StepKind::uniform, seq_len, 1};
}

}  // namespace

Judged LayoutJudge::judge(const LayoutCandidate& candidate) {
  if (auto refused = illegal(candidate)) return *refused;
  TrainingPlan training;
  try {
    training = resolve(with_layout(space_, candidate), catalog_).training;
  } catch (const Error& error) {
    return {{}, refused_by_resolve, error.what()};
  }
  const MemoryForecast memory = forecast_memory(training);
  if (!fits_host(*training.cluster, memory))
    return {{},
            "host-memory",
            to_text(memory.host) + " of host memory where a node of " + training.cluster->name +
                " has " + to_text(*training.cluster->host_capacity)};
  if (!memory.fits)
    return {{},
            "memory",
            to_text(memory.peak) + " where " + training.device->name + " has " +
                to_text(training.device->memory_capacity)};
  return {least_step_time(training, compared_step(training.optimizer(), training.seq_len), costs_),
          {},
          {}};
}

std::optional<Duration> LayoutJudge::least_of_blocks(const LayoutCandidate& candidate) {
  if (illegal(candidate)) return std::nullopt;
  const BlockSettings settings{candidate.tp,
                               candidate.cp,
                               candidate.ep,
                               candidate.etp,
                               candidate.micro_batch,
                               candidate.recompute,
                               candidate.sequence_parallel};
  auto block = blocks_.find(settings);
  if (block == blocks_.end()) {
    try {
      const TrainingPlan training = resolve(with_layout(space_, candidate), catalog_).training;
      const DistinctStep step = compared_step(training.optimizer(), training.seq_len);
      block = blocks_.emplace(settings, least_block_time(training, step)).first;
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  const std::int64_t replicas =
      space_.base.gpus / (candidate.tp * candidate.cp * candidate.pp) * candidate.micro_batch;
  const std::int64_t blocks = (space_.base.model->layers + candidate.pp - 1) / candidate.pp;
  return block->second * (space_.global_batch / replicas * blocks);
}

std::optional<double> LayoutJudge::step_time_us(const LayoutCandidate& candidate, double limit_us) {
  const TrainingPlan training = resolve(with_layout(space_, candidate), catalog_).training;
  const auto step = run_step_within(limit_us, training,
                                    compared_step(training.optimizer(), training.seq_len), costs_);
  return step ? std::optional(step->metrics.step_time.us()) : std::nullopt;
}

StepRun LayoutJudge::step(const TrainingPlan& training, Intervals intervals) {
  return run_step(training, compared_step(training.optimizer(), training.seq_len), costs_,
                  intervals);
}

std::optional<Judged> LayoutJudge::illegal(const LayoutCandidate& candidate) const {
  const TrainingPlan& base = space_.base;
  parallel::ParallelLayout layout = base.parallelism->layout;
  layout.tp = candidate.tp;
  layout.cp = candidate.cp;
  layout.pp = candidate.pp;
  layout.ep = candidate.ep;
  layout.etp = candidate.etp;
  layout.virtual_stages = candidate.interleave;
  layout.dp = base.gpus / (candidate.tp * candidate.cp * candidate.pp);
  const std::int64_t samples = layout.dp * candidate.micro_batch;
  if (space_.global_batch % samples != 0)
    return Judged{{},
                  "batch",
                  std::to_string(space_.global_batch) + " samples do not divide into " +
                      std::to_string(layout.dp) + " replicas x micro batches of " +
                      std::to_string(candidate.micro_batch)};
  if (space_.global_batch / samples > most_micro_batches)
    return Judged{{},
                  "micro-batches",
                  std::to_string(space_.global_batch / samples) +
                      " micro batches a step, of which a replica replays each"};
  parallel::LayoutUse use =
      base.parallelism->use(base.gpus, space_.global_batch / samples, base.seq_len);
  use.sequence_parallel = candidate.sequence_parallel == "true";
  use.schedule = schedule_of(candidate);
  use.split = split_of(space_, candidate);
  for (const Finding& finding : parallel::check(layout, *base.model, use))
    if (finding.severity == Severity::error) return Judged{{}, finding.code, finding.message};
  return std::nullopt;
}

parallel::PipelineSchedule LayoutJudge::schedule_of(const LayoutCandidate& candidate) const {
  const auto asked = space_.asked.find("pipeline_schedule");
  if (asked != space_.asked.end())
    return parallel::parse_pipeline_schedule(asked->second, flag("pipeline_schedule"));
  return candidate.interleave > 1 ? parallel::PipelineSchedule::interleaved
                                  : parallel::PipelineSchedule::one_f_one_b;
}

}  // namespace lambcast
