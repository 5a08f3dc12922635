// Curves of training as a file, a row per point: what convergence is judged by is recorded, so that
// nobody has to train for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/convergence/training.h"

namespace lambcast::convergence {

std::string curves_csv(const std::vector<Curve>& curves);
// The curves of `runs`, in their order; runs of which the file has no row are left out. Throws
// Error for a file that is none of these.
std::vector<Curve> parse_curves(std::string_view text, std::string_view name,
                                const std::vector<Run>& runs);

// The mean loss of the last `points` points.
double final_loss(const Curve& curve, std::size_t points = 4);

}  // namespace lambcast::convergence
