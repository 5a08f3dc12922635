// A custom optimizer in a planned step: plan the step of Adam, replace the passes of its update,
// price and execute it.
#include <fmt/format.h>

#include "experiments/scenario/scenario.h"
#include "models/training/run/step.h"

int main() {
  using namespace lambcast;
  Catalog catalog;
  const TrainingPlan training = resolve({{"model", "bert-large"},
                                         {"cluster", "dgx-a100-80g"},
                                         {"gpus", "16"},
                                         {"optimizer", "adam"},
                                         {"micro_batch", "32"},
                                         {"grad_accum", "1"},
                                         {"steps", "1000"}},
                                        catalog)
                                    .training;
  const DistinctStep step{StepKind::uniform, training.seq_len, training.steps};
  StepPlan plan = plan_step(training, step);
  for (PlanOp& op : plan.ops)
    // Sign descent in one kernel: reads gradient and weights, writes weights and their fp16 copy.
    if (op.name == "optimizer") std::get<KernelWork>(op.work).passes = {2 + 4 + 4 + 2, 1};
  CollectiveCosts costs;
  const std::vector<Price> prices = price(plan, training, costs);
  Duration adam, own;
  const StepRun usual = run_step(training, step, costs);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].part != Category::optimizer) continue;
    own += prices[i].time;
    adam += usual.prices[i].time;
  }
  fmt::print("updates: Adam {:.2f} ms, sign descent {:.2f} ms of a step of {:.1f} ms\n", adam.ms(),
             own.ms(), usual.metrics.step_time.ms());
}
