// Figures of loss against steps and against forecast hours, drawn by gnuplot.
#pragma once

#include <vector>

#include "experiments/convergence/wall_time.h"
#include "experiments/report/drawing.h"

namespace lambcast::convergence {

std::vector<report::Figure> figures(const std::vector<Study>& studies);

}  // namespace lambcast::convergence
