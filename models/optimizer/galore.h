// Costs of GaLore for one tensor. A gradient of m x n elements is projected to rank r, Adam's step
// is taken on its r max(m, n) elements, and the update is projected back, 4 m n r FLOPs. Every
// update_proj_gap steps each rank computes a singular value decomposition of the whole gradient, 4
// m n s + 8 s^3 with s the smaller side, in fp32. A GPU runs it at a few percent of its fp32 peak,
// limited by panels and round trips to the host. Vectors, and matrices whose smaller side is at
// most r, use plain AdamW.
//
// Scaling factors of the update do not affect its cost.
#pragma once

#include "models/optimizer/optimizer_model.h"

namespace lambcast {

// Assumed rate of decompositions, as a share of the peak of half-precision products. On A100 and
// H100, fp32 outside the tensor units has 1/16 of that peak. MAGMA's gesdd of 4160 x 4160 reaches 3
// % of the fp32 peak (4.3 s on a Titan X, pytorch#1373).
inline constexpr double svd_share_of_peak = 0.002;

// Returns whether a matrix's smaller side exceeds the rank. Other tensors are not projected or
// decomposed, and keep whole moments.
bool galore_projects(const StateTensor& tensor, const Projection& projection);

// Returns the number of elements that Adam updates and keeps moments of.
double galore_small_elements(const StateTensor& tensor, const Projection& projection);
// Returns the costs of Adam's kernel (of bitsandbytes or of kernels/) per such element.
Passes galore_small_passes(Kernels kernels);

double galore_flops(const StateTensor& tensor, const Projection& projection);
double galore_refresh_flops(const StateTensor& tensor, const Projection& projection);

}  // namespace lambcast
