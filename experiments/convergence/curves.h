// Training curves as a file, one row per point. The curves behind the convergence results are
// recorded, so that checking them needs no training.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/convergence/training.h"

namespace lambcast::convergence {

std::string curves_csv(const std::vector<Curve>& curves);
// Returns the curves of `runs`, in their order. Leaves out runs without rows. Throws Error for a
// file that does not contain curves.
std::vector<Curve> parse_curves(std::string_view text, std::string_view name,
                                const std::vector<Run>& runs);

// Returns the mean loss of the last `points` points.
double final_loss(const Curve& curve, std::size_t points = 4);

}  // namespace lambcast::convergence
