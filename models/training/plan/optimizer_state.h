// State of an optimizer in addition to the master weights of a whole model, and work in addition to
// its passes.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "models/optimizer/optimizer_model.h"
#include "models/shape/shape.h"
#include "models/training/plan/parallelism.h"
#include "models/training/plan/work.h"

namespace lambcast {

// A tensor as factored states see it: one side of a matrix is the model's hidden size, the rows of
// one that tensor parallelism cuts by inputs, else the columns; where that does not divide it, it
// is taken for a square.
StateTensor state_tensor(const ModelShape& model, const Tensor& tensor);
// Returns the slice of it that one of `tensor_ranks` tensor-parallel ranks holds.
StateTensor slice_of(const ModelShape& model, const Tensor& tensor, int tensor_ranks);

// How ranks that share states come to whole matrices, for optimizers that need them (muon.h).
enum class WholeMatrices {
  owned,      // each matrix and its gradient belong to one rank
  exchanged,  // an all-to-all before the computation and one after it
  gathered,   // DeepSpeed's ZeRO stage 3
};

WholeMatrices whole_matrices(const Parallelism& how);

// How the ranks that update the same part of a model divide it.
struct UpdateDivision {
  double of_model = 1;   // a stage's part
  int shards = 1;        // of states, among data-parallel ranks
  int tensor_ranks = 1;  // of the tensors themselves
  // Column means are summed over the shards: by Colossal-AI's LowLevelZero plugin, which gives its
  // optimizers no tensor-parallel group, so that they take the world. Elsewhere every shard keeps
  // the means of its own rows.
  bool sums_columns = false;
  // The optimizer sees each parameter group, or a rank's shard of it, as one vector
  // (TrainingPlan::flattens).
  bool flat = false;
  WholeMatrices matrices = WholeMatrices::owned;
};

// Bytes of state per element of a rank, mean over all elements that it updates. Factored statistics
// do not shrink in proportion to the elements. Of a matrix of H x W on t tensor-parallel ranks and
// d shards of states, a rank keeps
//                     row means                             column means
//   cut by outputs    H/td where d divides H/t, else H/t    W
//   cut by inputs     H/d where d divides H, else H         W/t
//   whole             H/d where d divides H, else H         W
// (colossalai/nn/optimizer/distributed_{adafactor,came}.py); of a vector a d-th of all.
double state_bytes_per_element(OptimizerType type, const ModelShape& model,
                               const UpdateDivision& division = {},
                               const Projection& projection = {});

// Returns the bytes by part that a 1-bit optimizer keeps in addition to its states; empty for
// others. `elements`: updated by the rank; `padded`: rounded up to its buffers, over `ranks` ranks.
// DeepSpeed clones the momentum, keeps fp32 gradients and a byte per sign; the fused kernels need
// only the packed signs.
std::vector<std::pair<std::string_view, double>> compression_state(OptimizerType type,
                                                                   Kernels kernels, double elements,
                                                                   double padded, int ranks);

// Blocking, one after another.
struct SharedCall {
  enum class Among { shards, tensor_ranks };
  const char* name;
  Among among;
  Op op;
  Bytes bytes;
  std::int64_t times;
};

// Work of the update in addition to its passes, in fp32. For each factored statistic of a matrix,
// in the terms of the table above:
//   cut by outputs    all_reduce of W column means over t; where d divides, all_gather of the H/d
//                     row means over t
//   cut by inputs     where d divides, all_reduce of H/d row means over t
//   whole             with shards, all_reduce of W column means over t (sums_columns: over d)
//   where d does not divide, gradient and square of the rank's part of the matrix gathered over d
// A number of each tensor is summed over the shards, and over t if the tensor is cut.
// DistributedLamb sums both its norms over t of whole tensors too, if there are shards
// (distributed_lamb.py). Flat vectors belong to one rank: the optimizer has no information on
// others. GaLore's refresh decomposes whole gradients on every rank: it gathers those that are cut
// before (distributed_galore.py). Its kernels are those of its small space. Muon computes with
// whole matrices, an equal share on each rank that shares states.
struct UpdateExtras {
  std::vector<KernelWork> kernels;
  std::vector<ProductWork> products;
  std::vector<SharedCall> calls;
};
UpdateExtras update_extras(OptimizerType type, StepKind step, Kernels kernels,
                           const ModelShape& model, const UpdateDivision& division,
                           double gradient_bytes, const Projection& projection = {});

}  // namespace lambcast
