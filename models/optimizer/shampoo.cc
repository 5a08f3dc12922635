#include "models/optimizer/shampoo.h"

#include <cmath>

namespace lambcast {
namespace {

constexpr double max_preconditioner_dim = 8192;

// The blocks of a side: their number, and the sums of their squared and cubed lengths.
struct SideBlocks {
  double count, squares, cubes;
};

SideBlocks blocks_of(double side) {
  const double b = max_preconditioner_dim, full = std::floor(side / b), rest = side - full * b;
  return {full + (rest > 0 ? 1 : 0), full * b * b + rest * rest,
          full * b * b * b + rest * rest * rest};
}

double factor_cubes(const StateTensor& matrix) {
  const SideBlocks n = blocks_of(matrix.rows), m = blocks_of(matrix.columns);
  return n.cubes * m.count + m.cubes * n.count;
}

// PyTorch expressions on lists of blocks (distributed_shampoo.py), in bytes per element: second
// moment 8 + 12, mean of gradients 12 and its correction 8, Adam's direction 8 + 8 + 8 + 12, two
// norms 8, grafting 8, learning rate 8, step 12, weight decay 12. Launches per tensor: four
// products, and two for each factor.
Passes shampoo_update(StepKind, Kernels, bool decays) {
  return {20 + 20 + 36 + 8 + 8 + 8 + 12 + (decays ? 12.0 : 0), 15, 8, 0, 0};
}

double shampoo_states(const StateTensor& tensor, const Projection&) {
  const SideBlocks n = blocks_of(tensor.rows), m = blocks_of(tensor.columns);
  return 8 * (tensor.elements + n.squares * m.count + m.squares * n.count);
}

}  // namespace

double shampoo_product_flops(const StateTensor& matrix, double every) {
  const double sides = matrix.rows * blocks_of(matrix.columns).squares +
                       matrix.columns * blocks_of(matrix.rows).squares;
  return 4 * sides + 2 * factor_cubes(matrix) / every;
}

double shampoo_decomposition_flops(const StateTensor& matrix, double every) {
  return 9 * factor_cubes(matrix) / every;
}

const OptimizerModel shampoo_model{
    .type = OptimizerType::shampoo,
    .name = "shampoo",
    .title = "Shampoo",
    .label = "Shampoo",
    .plain = OptimizerType::shampoo,
    .of_deepspeed = false,
    .matrix_work =
        MatrixWork{shampoo_product_flops, 0.05, "shampoo_share_of_peak",
                   "products in fp32 at 80 % of its peak, a sixteenth of the half-precision one",
                   shampoo_decomposition_flops, nullptr, 100, true},
    .in_kernels = false,
    .update = shampoo_update,
    .same_states = false,
    .state_bytes = shampoo_states};

}  // namespace lambcast
