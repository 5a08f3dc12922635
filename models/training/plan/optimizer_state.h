// State of an optimizer in addition to the master weights of a whole model, and its work in
// addition to its passes.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "models/optimizer/optimizer_model.h"
#include "models/shape/shape.h"
#include "models/training/plan/parallelism.h"
#include "models/training/plan/work.h"

namespace lambcast {

// Returns the rows and columns of a tensor for factored states. One side of a matrix is the model's
// hidden size: its rows if tensor parallelism cuts it by inputs, else its columns. If the hidden
// size does not divide the elements, the matrix is taken as square.
StateTensor state_tensor(const ModelShape& model, const Tensor& tensor);
// Returns the slice of the tensor on one of `tensor_ranks` tensor-parallel ranks.
StateTensor slice_of(const ModelShape& model, const Tensor& tensor, int tensor_ranks);

// How ranks that share states get the whole matrices that some optimizers need (muon.h).
enum class WholeMatrices {
  owned,      // each matrix and its gradient belong to one rank
  exchanged,  // an all-to-all before the computation and one after it
  gathered,   // DeepSpeed's ZeRO stage 3
};

WholeMatrices whole_matrices(const Parallelism& how);

// How the model's update is divided over ranks.
struct UpdateDivision {
  double of_model = 1;   // part of the model on one stage
  int shards = 1;        // data-parallel ranks that share the states
  int tensor_ranks = 1;  // tensor-parallel ranks that divide the tensors
  // Whether column means are summed over the shards. Colossal-AI's LowLevelZero plugin does: it
  // gives its optimizers no tensor-parallel group, so that they use all ranks. Otherwise every
  // shard keeps the means of its own rows.
  bool sums_columns = false;
  // Whether the optimizer gets each parameter group, or a rank's shard of it, as one vector
  // (TrainingPlan::flattens).
  bool flat = false;
  WholeMatrices matrices = WholeMatrices::owned;
  int copies = 1;  // ranks with the same states
};

// Returns the bytes of state per element of a rank, averaged over all elements that it updates.
// Factored statistics do not shrink in proportion to the elements. Of an H x W matrix on t
// tensor-parallel ranks and d shards of states, a rank keeps
//                     row means                             column means
//   cut by outputs    H/td if d divides H/t, else H/t       W
//   cut by inputs     H/d if d divides H, else H            W/t
//   whole             H/d if d divides H, else H            W
// (colossalai/nn/optimizer/distributed_{adafactor,came}.py), and of a vector 1/d of all elements.
double state_bytes_per_element(OptimizerType type, const ModelShape& model,
                               const UpdateDivision& division = {},
                               const Projection& projection = {});

// Returns the bytes by part that a 1-bit optimizer keeps in addition to its states; empty for other
// optimizers. `elements` are updated by the rank; `padded` are rounded up to its buffers, over
// `ranks` ranks. DeepSpeed clones the momentum, and keeps fp32 gradients and a byte per sign; the
// fused kernels need only the packed signs.
std::vector<std::pair<std::string_view, double>> compression_state(OptimizerType type,
                                                                   Kernels kernels, double elements,
                                                                   double padded, int ranks);

// Collectives that the update waits for, one after another.
struct SharedCall {
  enum class Among { shards, tensor_ranks, copies };
  const char* name;
  Among among;
  Op op;
  Bytes bytes;
  std::int64_t times;
};

// Work of the update in addition to its passes, in fp32. Calls for each factored statistic of a
// matrix, in the terms of the table above:
//   cut by outputs    all_reduce of W column means over t; if d divides, all_gather of the H/d
//                     row means over t
//   cut by inputs     if d divides, all_reduce of H/d row means over t
//   whole             with shards, all_reduce of W column means over t (sums_columns: over d)
//   if d does not divide, gradient and square of the rank's part of the matrix gathered over d
// One number for each tensor is summed over the shards, and over t if the tensor is cut. With
// shards, DistributedLamb also sums both its norms of whole tensors over t (distributed_lamb.py).
// Flat vectors belong to one rank, since the optimizer has no information on others. GaLore's
// refresh decomposes whole gradients on every rank, and first gathers those that are cut
// (distributed_galore.py); its kernels work in the small space. Muon computes with whole matrices,
// an equal share on each rank that shares states. Shampoo computes with blocks (shampoo.h).
struct UpdateExtras {
  std::vector<KernelWork> kernels;
  std::vector<ProductWork> products;
  std::vector<SharedCall> calls;
};
UpdateExtras update_extras(OptimizerType type, StepKind step, Kernels kernels,
                           const ModelShape& model, const UpdateDivision& division,
                           double gradient_bytes, const Projection& projection = {});

}  // namespace lambcast
