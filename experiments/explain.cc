#include "experiments/explain.h"

#include <fmt/format.h>

#include <chrono>

#include "models/training/step.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

std::string describe(const PassWork& work) {
  if (work.from == 0 && work.to == 1) return "a micro batch";
  return fmt::format("{:.4g} to {:.4g} of a micro batch", work.from, work.to);
}

std::string describe(const StageWork& work) {
  return fmt::format("stage {}, stretch {} of its micro batches", work.stage, work.segment);
}

std::string describe(const MemoryWork& work) {
  return fmt::format("{} of GPU memory", to_text(Bytes(work.bytes)));
}

std::string describe(const KernelWork& work) {
  const Passes& passes = work.passes;
  return fmt::format("{:.0f} elements x {:.4g} B, {:.0f} launches, {:.0f} waits", work.elements,
                     passes.bytes_per_element,
                     passes.launches + passes.launches_per_tensor * work.tensors,
                     passes.syncs + passes.syncs_per_tensor * work.tensors);
}

std::string describe(const ProductWork& work) {
  return fmt::format("{:.4g} TFLOP at {:.0f} % of the peak", work.flops / 1e12,
                     100 * work.share_of_peak.value);
}

std::string describe(const HostCopy& work) {
  return fmt::format("{} down, {} up, {}", to_text(Bytes(work.down_bytes)),
                     to_text(Bytes(work.up_bytes)), work.pinned ? "pinned" : "pageable");
}

std::string describe(const Call& call) {
  return fmt::format("{} of {} over {} ranks by {}{}{}", name_of(call.op), to_text(call.bytes),
                     call.group.ranks, traits_of(call.backend).in_words,
                     call.algorithm.empty() ? "" : ", ", call.algorithm);
}

std::string describe(const Wait&) { return "order only"; }

std::string describe(const Slowdown& work) {
  return fmt::format("lost to: {}", describe(work.beside));
}

std::string waits_for(const PlanOp& op, std::size_t index) {
  if (op.after.empty()) return "-";
  if (op.after.size() == 1 && op.after[0] + 1 == index) return "^";
  return fmt::format("{}", fmt::join(op.after, " "));
}

// What stands in the passes of blocks with experts, twice forward and twice backward.
std::string exchanges(const ExpertPlan& plan) {
  std::string text;
  for (const auto& [name, call] : {std::pair{"tokens to experts and back", &plan.inside},
                                   std::pair{"and between nodes", &plan.between},
                                   std::pair{"rows gathered inside experts", &plan.rows_gather},
                                   std::pair{"rows scattered", &plan.rows_scatter}})
    if (*call) text += fmt::format("     each pass of a block: {}, {}\n", name, describe(**call));
  return text;
}

std::string plan_table(const StepPlan& plan) {
  std::string out = fmt::format("{:>4} {:>8} {:>6}  {:<13} {}\n{:>22}{}\n", "op", "after", "times",
                                "stream", "part", "", "name: what");
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const PlanOp& op = plan.ops[i];
    out += fmt::format("{:>4} {:>8} {:>6}  {:<13} {}\n{:>22}{}: {}\n", i, waits_for(op, i),
                       op.times, name_of(op.stream), name_of(op.part), "", op.name,
                       std::visit([](const auto& work) { return describe(work); }, op.work));
  }
  if (plan.pipeline && plan.pipeline->experts) out += exchanges(*plan.pipeline->experts);
  return out;
}

// The costs with the kind of their numbers, as "nic_bandwidth (published)".
std::string rests_on(const StepPlan& plan, const PlanOp& op, const TrainingPlan& training,
                     CollectiveCosts& costs) {
  StepPlan alone{{op}, plan.seq_len, plan.rank_classes, plan.pipeline};
  CostSources sources;
  price(alone, training, costs, Intervals::left_out, &sources);
  std::string text;
  for (const CostSource& source : sources.shares())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", source.cost,
                        name_of(source.provenance.kind));
  return text;
}

std::string price_table(const StepRun& step, const TrainingPlan& training, CollectiveCosts& costs) {
  std::string out =
      fmt::format("{:>4} {:>14} {:>14} {:>14} {:>14} {:>14}\n{:>6}{}\n", "op", "time_us", "low_us",
                  "high_us", "begin_us", "wire_bytes", "", "name: what its price rests on");
  for (std::size_t i = 0; i < step.plan.ops.size(); ++i) {
    const Price& price = step.prices[i];
    const Interval interval = interval_of(price.time, price.wires, price.compute);
    out += fmt::format("{:>4} {:>14.3f} {:>14.3f} {:>14.3f} {:>14.3f} {:>14.0f}\n{:>6}{}: {}\n", i,
                       price.time.us(), interval.low.us(), interval.high.us(),
                       step.execution.timeline.spans[i].begin.since_start().us(),
                       price.wire_bytes_per_gpu.value(), "", step.plan.ops[i].name,
                       rests_on(step.plan, step.plan.ops[i], training, costs));
  }
  return out + fmt::format("step {:.3f} us, interval {:.3f} to {:.3f} us\n",
                           step.metrics.step_time.us(), step.metrics.step_time_low.us(),
                           step.metrics.step_time_high.us());
}

double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

const std::vector<std::string>& explanation_names() {
  static const std::vector<std::string> names{"plan", "prices", "stats"};
  return names;
}

std::string explain(const TrainingPlan& training, std::string_view what) {
  if (what != "plan" && what != "prices" && what != "stats")
    fail_unknown({"", 0, "--explain"}, "value", std::string(what), explanation_names());
  std::string out;
  CollectiveCosts costs;
  for (const Stage& stage : stages_of(training)) {
    if (stage.steps == 0) continue;
    const CollectiveCosts::Counts before = costs.counts();
    const auto start = std::chrono::steady_clock::now();
    const StepRun step = run_step(training, stage, costs);
    const double took_us = microseconds_since(start);
    out += fmt::format("{}{} step, {} times{}\n", out.empty() ? "" : "\n", name_of(stage.kind),
                       stage.steps,
                       stage.seq_len > 0 ? fmt::format(", sequences of {}", stage.seq_len) : "");
    if (what == "plan") {
      out += plan_table(step.plan);
    } else if (what == "prices") {
      out += price_table(step, training, costs);
    } else {
      const CollectiveCosts::Counts& now = costs.counts();
      out += fmt::format(
          "operations {}, collectives in the step {}, prices asked {}, found in the cache {}\n"
          "planned, priced and executed in {:.0f} us\n",
          step.plan.ops.size(), step.metrics.num_collectives, now.asked - before.asked,
          now.asked - before.asked - (now.planned - before.planned), took_us);
    }
  }
  return out;
}

}  // namespace lambcast
