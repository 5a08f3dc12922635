// The sensitivity of a run as a picture: a tornado of elasticities, the strongest on top, and
// beside each input the share of the interval that its measurement makes.
#pragma once

#include "experiments/compare/sensitivity.h"
#include "experiments/report/drawing.h"

namespace lambcast {

// The inputs that move something, as many as fit; `left_out` says why there is none.
report::Figure sensitivity_figure(const Sensitivity& sensitivity);

}  // namespace lambcast
