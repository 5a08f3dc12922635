#include "models/optimizer/muon.h"

#include <algorithm>

namespace lambcast {
namespace {

// PyTorch expressions on one tensor after another (torch/optim/_muon.py), in bytes: momentum and
// Nesterov lerp_ 12 each, cast to bf16 6, norm 2, division 4, weight decay 8, update with a bf16
// direction 10. Launches: these seven, a transposition, and three products in each of five
// iterations.
Passes muon_update(StepKind, Kernels, bool) { return {12 + 12 + 6 + 2 + 4 + 8 + 10, 0, 23, 0, 0}; }

// A matrix has one momentum, all other tensors the two moments of AdamW.
double muon_states(const StateTensor& tensor, const Projection&) {
  return (tensor.rows > 0 ? 4 : 8) * tensor.elements;
}

}  // namespace

double muon_flops(const StateTensor& matrix) {
  const double n = std::min(matrix.rows, matrix.columns), m = std::max(matrix.rows, matrix.columns);
  return 5 * (4 * n * n * m + 2 * n * n * n);
}

const OptimizerModel muon_model{
    .type = OptimizerType::muon,
    .name = "muon",
    .title = "Muon",
    .label = "Muon",
    .plain = OptimizerType::muon,
    .of_deepspeed = true,
    .matrix_work =
        MatrixWork{[](const StateTensor& matrix, double) { return muon_flops(matrix); }, 0.4,
                   "newton_schulz_share_of_peak",
                   "products of Newton-Schulz iterations at 40 % of the half-precision peak"},
    .in_kernels = false,
    .update = muon_update,
    .same_states = false,
    .state_bytes = muon_states};

}  // namespace lambcast
