// Reads a user's training runs as measured figures, without a mapping: columns are what-if keys
// (including "model.layers" and "cluster.nic.bandwidth") and measured quantities.
#pragma once

#include "validate/replay/source.h"

namespace lambcast {

// Measured columns have the names of measured_quantity.h; mfu_pct needs a column peak_tflops, and
// arithmetic is counted as the model's own. A column `case` names the row. Throws Error for any
// other column, for a measured value that is not above zero, and if nothing is measured.
std::vector<SourceFigure> figures_of_runs(const csv::Table& table);

}  // namespace lambcast
