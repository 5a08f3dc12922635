// GaLore (Zhao et al. 2024, arXiv:2403.03507) with 8-bit AdamW, as in Colossal-AI's DistGaloreAwamW
// (colossalai/nn/optimizer/distributed_galore.py): a matrix's gradient is projected to a low rank,
// at which its moments are kept in 8 bits. It saves states, not bytes on the wire: whole gradients
// are averaged before. The first step and every update_proj_gap-th step after it recompute the
// projections (StepKind::refresh, galore_refresh_flops).
#include "models/optimizer/galore.h"

#include <algorithm>

namespace lambcast {
namespace {

// An estimate, not counted from a run, in bytes per element: clone of p 8, addition of the back
// projection 12, decay 12; one torch.cuda.synchronize() per tensor. Adam in the small space and the
// products are counted separately. Fused: projection 4, weights and their 16-bit copy 10, and 1/2
// for each of the two factors (kernels/cuda/galore.h, counted in kernels/limits.md at rank 128 of
// 1,024). Three launches including Adam's, each over all tensors, without synchronisation.
Passes galore_update(StepKind, Kernels kernels, bool) {
  if (kernels == Kernels::fused) return {4.5 + 10.5, 3, 0, 0, 0};
  return {8 + 12 + 12, 0, 14, 0, 1};
}

double galore_states(const StateTensor& tensor, const Projection& projection) {
  constexpr double scale = 8.0 / 256;  // bytes of two block scales per element
  const double elements = galore_small_elements(tensor, projection);
  const bool in_8_bits = elements >= static_cast<double>(projection.min_8bit_size);
  const double moments = (in_8_bits ? 2 + scale : 8) * elements;
  if (!galore_projects(tensor, projection)) return moments;
  const auto rank = static_cast<double>(projection.rank);
  return moments + 2 * std::min(tensor.rows, tensor.columns) * rank;  // the basis has 16 bits
}

}  // namespace

bool galore_projects(const StateTensor& tensor, const Projection& projection) {
  return std::min(tensor.rows, tensor.columns) > static_cast<double>(projection.rank);
}

double galore_small_elements(const StateTensor& tensor, const Projection& projection) {
  const auto rank = static_cast<double>(projection.rank);
  return galore_projects(tensor, projection) ? rank * std::max(tensor.rows, tensor.columns)
                                             : tensor.elements;
}

// Bytes: zeros for the update 4, its first value, the gradient, 4, and two 8-bit codes that are
// read and written. The fused kernel has only the codes (kernels/cuda/eight_bit.h). Launches are
// counted with the update.
Passes galore_small_passes(Kernels kernels) {
  if (kernels == Kernels::fused) return {12, 0, 0, 0, 0, "eight_bit_adam"};
  return {4 + 4 + 8 + 4, 0, 0, 0, 0};
}

double galore_flops(const StateTensor& tensor, const Projection& projection) {
  const auto rank = static_cast<double>(projection.rank);
  return galore_projects(tensor, projection) ? 4 * tensor.elements * rank : 0;
}

double galore_refresh_flops(const StateTensor& tensor, const Projection& projection) {
  if (!galore_projects(tensor, projection)) return 0;
  const double small = std::min(tensor.rows, tensor.columns);
  return 4 * tensor.elements * small + 8 * small * small * small;
}

namespace {

// Number of steps that recompute GaLore's projections, the first and every `gap`-th after it, and
// the number of those that also exchange, if only multiples of `every` do.
struct Refreshes {
  std::int64_t all = 0, exchanging = 0;
};
Refreshes refreshes_of(std::int64_t steps, std::int64_t gap, std::int64_t every) {
  Refreshes refreshes{(steps + gap - 1) / gap, 0};
  // At most one of `every` consecutive values of k makes step 1 + gap k an exchange.
  for (std::int64_t k = 0; k < std::min(every, refreshes.all); ++k)
    if ((1 + gap * k) % every == 0) refreshes.exchanging += 1 + (refreshes.all - 1 - k) / every;
  return refreshes;
}

// Returns phases in which some steps send nothing and some refresh the projections.
StepPhases galore_phases(const RunOfSteps& run) {
  if (run.refresh_gap == 0) return uniform_phases(run);
  const std::int64_t sending = run.steps / run.steps_per_exchange;
  const Refreshes refreshes = refreshes_of(run.steps, run.refresh_gap, run.steps_per_exchange);
  const std::int64_t local = refreshes.all - refreshes.exchanging;
  return {{StepKind::silent, run.steps - sending - local},
          {StepKind::uniform, sending - refreshes.exchanging},
          {StepKind::refresh, local, true},
          {StepKind::refresh, refreshes.exchanging}};
}

}  // namespace

const OptimizerModel galore_adamw8bit_model{.type = OptimizerType::galore_adamw8bit,
                                            .name = "galore_adamw8bit",
                                            .title = "GaLore with 8-bit AdamW",
                                            .label = "DistGaloreAwamW",
                                            .plain = OptimizerType::galore_adamw8bit,
                                            .of_deepspeed = false,
                                            .update = galore_update,
                                            .phases = galore_phases,
                                            .same_states = false,
                                            .state_bytes = galore_states};

}  // namespace lambcast
