// The products of GaLore: projecting a gradient of m x n to rank r and its update back, 4 m n r,
// and every `galore_gap` steps a singular value decomposition of the whole gradient on every rank,
// 4 m n s + 8 s^3 with s the smaller side, which a GPU runs at a few percent of its peak.
#pragma once

#include "models/optimizer/optimizer_model.h"

namespace lambcast {

inline constexpr double galore_rank = 256;
inline constexpr std::int64_t galore_gap = 200;
inline constexpr double svd_share_of_peak = 0.03;  // assumed: bound by panels and host round trips

double galore_flops(const StateTensor& tensor);
double galore_refresh_flops(const StateTensor& tensor);

}  // namespace lambcast
