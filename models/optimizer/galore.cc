// GaLore (Zhao et al. 2024, arXiv:2403.03507) with 8-bit AdamW, as Colossal-AI's DistGaloreAwamW
// runs it (colossalai/nn/optimizer/distributed_galore.py): a matrix's gradient is projected to rank
// 256, its moments kept there in 8 bits. It saves states, not bytes on the wire: gradients are
// averaged whole before. Every 200th step computes the projections anew (StepKind::refresh,
// galore_refresh).
#include <algorithm>

#include "models/optimizer/galore.h"

namespace lambcast {
namespace {

// An estimate, not counted from a run: clone of p 8, back projection added 12, decay 12, and 8 for
// the moments in 8 bits with their update, which are smaller than p; one torch.cuda.synchronize() a
// tensor. The projections are products (galore_flops).
Passes update(StepKind, Kernels) { return {8 + 12 + 12 + 8, 0, 14, 0, 1}; }

double states(const StateTensor& tensor) {
  constexpr double scale = 8.0 / 256;  // bytes of two block scales per element
  constexpr double min_8bit = 4096;
  const double small = std::min(tensor.rows, tensor.columns);
  if (small <= galore_rank) return (tensor.elements < min_8bit ? 8 : 2 + scale) * tensor.elements;
  const double projected = std::max(tensor.rows, tensor.columns) * galore_rank;
  return (2 + scale) * projected + 2 * small * galore_rank;  // and the basis, in 16 bits
}

}  // namespace

double galore_flops(const StateTensor& tensor) {
  if (std::min(tensor.rows, tensor.columns) <= galore_rank) return 0;
  return 4 * tensor.elements * galore_rank;
}

double galore_refresh_flops(const StateTensor& tensor) {
  const double small = std::min(tensor.rows, tensor.columns);
  if (small <= galore_rank) return 0;
  return 4 * tensor.elements * small + 8 * small * small * small;
}

const OptimizerModel galore_model{.type = OptimizerType::galore_adamw8bit,
                                  .name = "galore_adamw8bit",
                                  .label = "DistGaloreAwamW",
                                  .plain = OptimizerType::galore_adamw8bit,
                                  .of_deepspeed = false,
                                  .update = update,
                                  .state_bytes = states};

}  // namespace lambcast
