// One checked and complete training run: all inputs of a forecast.
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
  std::optional<BatchRamp> ramp{};  // the ramp that ends at `batch`
  // The level of this program on this machine, if it was measured (measured_program.h).
  std::optional<ProgramLevel> program{};
  ProgramPrior prior{};  // prior of the level, if the program was not measured
  FrameworkName framework = FrameworkName::deepspeed;  // the program that runs
  int gpus = 1;
  int gpus_per_node = 1;
  std::int64_t seq_len = 0;
  std::int64_t steps = 1;
  // Steps before the checkpoint that this run resumes from: freeze_step counts them too.
  std::int64_t steps_done = 0;
  Kernels kernels = Kernels::deepspeed;
  // Update kernels of the framework. DeepSpeed's depend on the optimizer (stack_kernels).
  std::optional<Kernels> framework_kernels{};
  Overlap overlap = Overlap::none;  // none or ddp; ZeRO's overlap is in the recipe
  Exchange exchange{};              // used in steps that sum gradients
  NetworkModel network = NetworkModel::analytic;
  bool expand = false;     // --symmetry off: every rank and round is simulated
  bool per_block = false;  // one task per micro batch and block, for traces and --symmetry off

  // Set if the model is divided over ranks, or its states in ways other than DeepSpeed's stages 0
  // to 2. The batch's `gpus` are then the layout's dp.
  std::optional<Parallelism> parallelism;
  // Without parallelism: options of the passes, if the user changes DeepSpeed's.
  std::optional<PassOptions> passes{};

  OptimizerType optimizer() const { return recipe.optimizer; }
  Backend backend() const { return recipe.backend; }
  Wrapper wrapper() const { return wrapper_of(recipe); }
  // Returns the number of ranks that share the optimizer's state.
  int shards() const { return is_sharded(wrapper()) ? gpus : 1; }
  // Whether the run has DeepSpeed's wrappers and its copies of gradients (models/recipe/wrapper.h).
  bool runs_as_deepspeed() const {
    return !parallelism || parallelism->framework.name == FrameworkName::deepspeed;
  }
  // Whether DeepSpeed's BF16_Optimizer updates the weights. Under a pipeline it does so with bf16
  // in every release that has it.
  bool has_bf16_optimizer() const {
    const bool pipeline = parallelism && parallelism->layout.pp > 1;
    const bool bf16 = recipe.precision.weights == DataType::bf16;
    return runs_as_deepspeed() && recipe.engine.has_bf16_optimizer &&
           (wrapper() == Wrapper::bf16 || (pipeline && bf16));
  }
  // Whether the optimizer gets each parameter group, or a rank's shard of it, as one vector. Other
  // frameworks track the owner of each shard.
  bool has_flat_groups() const {
    return runs_as_deepspeed() && (is_flat(wrapper()) || has_bf16_optimizer());
  }
  // Whether the optimizer also computes with these vectors. Some optimizers read whole matrices
  // from them instead.
  bool flattens() const { return has_flat_groups() && !model_of(optimizer()).matrix_work; }
  // Returns the number of ranks with different samples.
  int data_parallel() const { return parallelism ? parallelism->layout.dp : gpus; }
  int nodes() const { return (gpus + gpus_per_node - 1) / gpus_per_node; }
  // Model, cluster and device are compared by address.
  bool operator==(const TrainingPlan&) const = default;
};

// Returns the group of all ranks of pure data parallelism, filled node by node.
inline ProcessGroup all_ranks(const TrainingPlan& training) {
  return {training.gpus, training.gpus_per_node};
}

}  // namespace lambcast
