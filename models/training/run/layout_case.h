// A training of a layout, for tests.
#pragma once

#include "models/training/run/training_case.h"

namespace lambcast {

// gpt2-xl (48 blocks, hidden 1600, 25 heads) in 16 bits on DGX A100s.
struct LayoutCase {
  int tp = 1, cp = 1, dp = 1, pp = 1, chunks = 1;
  std::int64_t micro = 1, micro_batches = 8;
  parallel::Sharding sharding = parallel::Sharding::none;
  FrameworkName framework = FrameworkName::megatron;
  bool sequence_parallel = false;
  OptimizerOn optimizer_on = OptimizerOn::gpu;
};

inline TrainingPlan layout_training(const LayoutCase& of) {
  TrainingPlan training =
      training_of({OptimizerType::adamw, of.tp * of.cp * of.dp * of.pp, "dgx-a100-80g"});
  training.model = std::make_shared<const ModelShape>(load_model("gpt2-xl", {}));
  training.seq_len = 1024;
  training.batch = {of.micro * of.micro_batches * of.dp, of.micro, of.micro_batches};
  Parallelism how;
  how.layout = {of.tp, of.cp, 1, of.dp, of.pp, of.chunks, 8, parallel::default_order};
  how.schedule = of.chunks > 1 ? parallel::PipelineSchedule::interleaved
                               : parallel::PipelineSchedule::one_f_one_b;
  how.framework = framework_of(of.framework);
  how.sharding = of.sharding;
  how.shard_ranks = of.sharding == parallel::Sharding::none ? 1 : how.replicas();
  how.sequence_parallel = of.sequence_parallel;
  how.optimizer_on = of.optimizer_on;
  training.parallelism = how;
  training.kernels = Kernels::nvidia;
  return training;
}

}  // namespace lambcast
