// What GaLore does to one tensor: a gradient of m x n is projected to rank r, Adam's step taken on
// the r max(m, n) elements of that, its update projected back, 4 m n r; and every update_proj_gap
// steps a singular value decomposition of the whole gradient on every rank, 4 m n s + 8 s^3 with s
// the smaller side, which a GPU runs at a few percent of its peak. Vectors, and matrices whose
// smaller side is no larger than r, take AdamW as they are.
//
// What scales the update has no part in what it costs.
#pragma once

#include "models/optimizer/optimizer_model.h"

namespace lambcast {

inline constexpr double svd_share_of_peak = 0.03;  // assumed: bound by panels and host round trips

// Elements that Adam steps on, and whose moments are kept.
double galore_small_elements(const StateTensor& tensor, const Projection& projection);
// Adam's kernel on each of them, of bitsandbytes or of kernels/.
Passes galore_small_passes(Kernels kernels);

double galore_flops(const StateTensor& tensor, const Projection& projection);
double galore_refresh_flops(const StateTensor& tensor, const Projection& projection);

}  // namespace lambcast
