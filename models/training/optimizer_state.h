// What an optimizer keeps beside the master weights of a whole model, and does beside its passes.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "models/optimizer/optimizer_model.h"
#include "models/shape/shape.h"
#include "models/training/work.h"

namespace lambcast {

// A tensor as factored states see it: one side of a matrix is the model's hidden size; where that
// does not divide it, it is taken for a square.
StateTensor state_tensor(const ModelShape& model, const Tensor& tensor);

// Mean over all elements that the optimizer is given.
double state_bytes_per_element(OptimizerType type, const ModelShape& model,
                               const Projection& projection = {});

// What a 1-bit optimizer keeps beside its states, in bytes by part; empty for others. `elements`:
// that the rank updates, `padded` to its buffers, over so many ranks. DeepSpeed clones the
// momentum, keeps fp32 gradients and a byte per sign; the fused kernels need the packed signs
// alone.
std::vector<std::pair<std::string_view, double>> compression_state(OptimizerType type,
                                                                   Kernels kernels, double elements,
                                                                   double padded, int ranks);

// How the ranks that update the same part of a model divide it.
struct UpdateDivision {
  double of_model = 1;   // a stage's part
  int shards = 1;        // of states, among data-parallel ranks
  int tensor_ranks = 1;  // of the tensors themselves
  // Column means are summed over the shards: by Colossal-AI's LowLevelZero plugin, which gives its
  // optimizers no tensor-parallel group, so that they take the world. Elsewhere every shard keeps
  // the means of its own rows.
  bool sums_columns = false;
};

// Blocking, one after another.
struct SharedCall {
  enum class Among { shards, tensor_ranks };
  const char* name;
  Among among;
  Op op;
  Bytes bytes;
  std::int64_t times;
};

// What the update does beside its passes. A matrix whose rows do not divide into the shards has its
// gradient and the square of it gathered whole in fp32, once for each vector of column means
// (colossalai/nn/optimizer/distributed_adafactor.py, distributed_came.py). GaLore's refresh
// decomposes whole gradients on every rank: where tensors are divided it gathers them before
// (distributed_galore.py). Its kernels are those of its small space.
struct UpdateExtras {
  std::vector<KernelWork> kernels;
  std::vector<ProductWork> products;
  std::vector<SharedCall> calls;
};
UpdateExtras update_extras(OptimizerType type, StepKind step, Kernels kernels,
                           const ModelShape& model, const UpdateDivision& division,
                           double gradient_bytes, const Projection& projection = {});

}  // namespace lambcast
