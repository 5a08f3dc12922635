// One training run, checked and complete: everything a forecast depends on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/device/device.h"
#include "models/recipe/batch.h"
#include "models/recipe/batch_ramp.h"
#include "models/recipe/wrapper.h"
#include "models/shape/shape.h"
#include "models/training/plan/exchange.h"
#include "models/training/plan/optimizer_cost.h"
#include "models/training/plan/overlap.h"
#include "models/training/plan/parallelism.h"
#include "models/training/plan/pass_options.h"
#include "sim/collectives/process_group.h"
#include "sim/network/network.h"
#include "topologies/cluster.h"

namespace lambcast {

struct TrainingPlan {
  std::shared_ptr<const ModelShape> model;
  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const Device> device;
  Recipe recipe;
  Batch batch;                      // train = micro * gas * data_parallel()
  std::optional<BatchRamp> ramp{};  // on which the run grows to that batch
  // The level of this program on this machine, if it was measured (measured_program.h).
  std::optional<ProgramLevel> program{};
  ProgramPrior prior{};                                // of that level, if it was not
  FrameworkName framework = FrameworkName::deepspeed;  // the program that runs
  int gpus = 1;
  int gpus_per_node = 1;
  std::int64_t seq_len = 0;
  std::int64_t steps = 1;
  // Steps before the checkpoint that this run resumes from: freeze_step counts them too.
  std::int64_t steps_done = 0;
  Kernels kernels = Kernels::deepspeed;
  // Update kernels of the framework. DeepSpeed has others for each optimizer (stack_kernels).
  std::optional<Kernels> framework_kernels{};
  Overlap overlap = Overlap::none;  // or ddp; ZeRO's is in the recipe
  Exchange exchange{};              // of steps that sum gradients
  NetworkModel network = NetworkModel::analytic;
  bool expand = false;     // --symmetry off: every rank and round on its own
  bool per_block = false;  // one task per micro batch and block, for traces and --symmetry off

  // Set if the model is divided over ranks, or its states in ways other than DeepSpeed's stages 0
  // to 2; the batch's `gpus` are then the layout's dp.
  std::optional<Parallelism> parallelism;
  // Without that: how passes run, if a user says otherwise than DeepSpeed does.
  std::optional<PassOptions> passes{};

  OptimizerType optimizer() const { return recipe.optimizer; }
  Backend backend() const { return recipe.backend; }
  Wrapper wrapper() const { return wrapper_of(recipe); }
  // Ranks among which the optimizer's state is divided.
  int shards() const { return is_sharded(wrapper()) ? gpus : 1; }
  // Whether DeepSpeed hands the optimizer each parameter group, or a rank's shard of it, as one
  // vector; under a pipeline bf16 keeps BF16_Optimizer. Other frameworks track the owner of each
  // shard.
  bool flattens() const {
    if (model_of(optimizer()).matrix_work) return false;  // it reads whole matrices of the vector
    if (!parallelism) return is_flat(wrapper());
    if (parallelism->framework.name != FrameworkName::deepspeed) return false;
    const bool bf16 = recipe.precision.weights == DataType::bf16;
    return is_flat(wrapper()) || (bf16 && parallelism->layout.pp > 1);
  }
  // Ranks that see different samples.
  int data_parallel() const { return parallelism ? parallelism->layout.dp : gpus; }
  int nodes() const { return (gpus + gpus_per_node - 1) / gpus_per_node; }
  // Model, cluster and device are compared by address.
  bool operator==(const TrainingPlan&) const = default;
};

// The ranks of pure data parallelism, node by node.
inline ProcessGroup all_ranks(const TrainingPlan& training) {
  return {training.gpus, training.gpus_per_node};
}

}  // namespace lambcast
