// Tornado diagram of a run's elasticities, the strongest on top, with each input's share of the
// interval.
#pragma once

#include "experiments/compare/sensitivity.h"
#include "experiments/report/drawing.h"

namespace lambcast {

// Draws as many inputs with an effect as fit. `left_out` gives the reason if there are none.
report::Figure sensitivity_figure(const Sensitivity& sensitivity);

}  // namespace lambcast
