#include "models/optimizer/soap.h"

namespace lambcast {
namespace {

constexpr double max_precond_dim = 10'000;

// Returns the length of a side with a basis, else 0.
double based(double side) { return side <= max_precond_dim ? side : 0; }

double cubes(const StateTensor& matrix) {
  const double n = based(matrix.rows), m = based(matrix.columns);
  return n * n * n + m * m * m;
}

// PyTorch expressions on one tensor after another (soap.py), in bytes: lerp_ of the first moment
// 12, mul_ and addcmul_ of the second 8 + 12, sqrt, add_ and division 8 + 8 + 12, step 12, weight
// decay 8. Launches: these eight, nine products, and the transpositions of four of them.
Passes soap_update(StepKind, Kernels, bool decays) {
  return {12 + 20 + 28 + 12 + (decays ? 8.0 : 0), 0, 21, 0, 0};
}

double soap_states(const StateTensor& tensor, const Projection&) {
  const double n = based(tensor.rows), m = based(tensor.columns);
  return 8 * (tensor.elements + n * n + m * m);
}

}  // namespace

double soap_product_flops(const StateTensor& matrix, double every) {
  const double sides = based(matrix.rows) + based(matrix.columns);
  return 6 * matrix.rows * matrix.columns * sides + 6 * cubes(matrix) / every;
}

double soap_decomposition_flops(const StateTensor& matrix, double every) {
  return 8.0 / 3 * cubes(matrix) / every;
}

const OptimizerModel soap_model{
    .type = OptimizerType::soap,
    .name = "soap",
    .title = "SOAP",
    .label = "SOAP",
    .plain = OptimizerType::soap,
    .of_deepspeed = false,
    .matrix_work =
        MatrixWork{soap_product_flops, 0.05, "soap_share_of_peak",
                   "products in fp32 at 80 % of its peak, a sixteenth of the half-precision one",
                   soap_decomposition_flops, nullptr, 10},
    .in_kernels = false,
    .update = soap_update,
    .same_states = false,
    .state_bytes = soap_states};

}  // namespace lambcast
