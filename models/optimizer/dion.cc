// Dion (Ahn et al. 2025, arXiv:2504.05295): the momentum of a matrix is orthonormalised in a
// subspace of rank r, a quarter of the smaller side n (nearly lossless at 3B; the default of its
// repository, microsoft/dion, is all of n). With M of n x m elements a step computes
//
//   P = M Q, R = M^T P, M -= (1 - mu) P R^T, W -= P Q^T                  2 n m r FLOPs each
//   orthonormal columns of P, by a sketch and Cholesky's QR              6.5 m r^2 + 2.2 r^3
//
// It never needs a whole matrix: ranks that share one add up P and R, in fp32. Embeddings, head and
// vectors run AdamW. Left out: gradients that replicas exchange only in low rank
// (replicate_mesh_grad_sync); --exchange powersgd:R has those bytes.
#include <algorithm>

#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

constexpr double rank_fraction = 0.25;

double rank_of(const StateTensor& matrix) {
  return rank_fraction * std::min(matrix.rows, matrix.columns);
}

double dion_flops(const StateTensor& matrix, double) {
  const double r = rank_of(matrix), m = std::max(matrix.rows, matrix.columns);
  return 8 * matrix.elements * r + 6.5 * m * r * r;
}

double dion_decompositions(const StateTensor& matrix, double) {
  const double r = rank_of(matrix);
  return 2.2 * r * r * r;
}

double dion_factors(const StateTensor& matrix) {
  return rank_of(matrix) * (matrix.rows + matrix.columns);
}

// Bytes: momentum plus gradient 12, weight decay 8, update 12. Twelve of the launches compute in
// the subspace.
Passes dion_update(StepKind, Kernels, bool decays) {
  return {12 + 12 + (decays ? 8.0 : 0), 0, 14, 0, 0};
}

double dion_states(const StateTensor& tensor, const Projection&) {
  if (tensor.rows == 0) return 8 * tensor.elements;
  return 4 * (tensor.elements + rank_of(tensor) * tensor.columns);
}

}  // namespace

const OptimizerModel dion_model{
    .type = OptimizerType::dion,
    .name = "dion",
    .title = "Dion",
    .label = "Dion",
    .plain = OptimizerType::dion,
    .of_deepspeed = false,
    .matrix_work = MatrixWork{dion_flops, 0.4, "dion_share_of_peak",
                              "products of rank n / 4 at 40 % of the half-precision peak",
                              dion_decompositions, dion_factors},
    .in_kernels = false,
    .update = dion_update,
    .same_states = false,
    .state_bytes = dion_states};

}  // namespace lambcast
