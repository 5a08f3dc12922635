// What GaLore does to one tensor: a gradient of m x n is projected to rank r, Adam's step taken on
// the r max(m, n) elements of that, its update projected back, 4 m n r; and every update_proj_gap
// steps a singular value decomposition of the whole gradient on every rank, 4 m n s + 8 s^3 with s
// the smaller side, in fp32, which a GPU runs at a few percent of
// that peak, bound by panels and round trips to the host. Vectors, and matrices whose
// smaller side is no larger than r, take AdamW as they are.
//
// What scales the update has no part in what it costs.
#pragma once

#include "models/optimizer/optimizer_model.h"

namespace lambcast {

// Share of the peak of half-precision products. fp32 outside the tensor units has 1/16 of it on
// A100 and H100; MAGMA's gesdd of 4160 x 4160 reaches 3 % of that, 4.3 s on a Titan X
// (pytorch#1373).
inline constexpr double svd_share_of_peak = 0.002;

// Whether a matrix's smaller side is above the rank. Of others nothing is projected or decomposed,
// and the moments are whole.
bool galore_projects(const StateTensor& tensor, const Projection& projection);

// Elements that Adam steps on, and whose moments are kept.
double galore_small_elements(const StateTensor& tensor, const Projection& projection);
// Adam's kernel on each of them, of bitsandbytes or of kernels/.
Passes galore_small_passes(Kernels kernels);

double galore_flops(const StateTensor& tensor, const Projection& projection);
double galore_refresh_flops(const StateTensor& tensor, const Projection& projection);

}  // namespace lambcast
