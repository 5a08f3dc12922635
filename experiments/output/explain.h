// Explains a forecast so that it can be checked: the operations of a step (plan), and the cost and
// interval of each operation and of the calls inside passes (prices). Counts the work of the
// program (stats):
//
//   operations, collectives   of the step; cost queries, and how many of them the cache answered
//   events, flows, solves     of the engine, of the flow model, and of its max-min rates
//   took                      wall time to plan, price, execute and account (the parts of a
//                             forecast); two parts of it, mostly within price:
//     routes                  to find the path of each flow over the topology
//     lowering                to write the schedules of all candidate algorithms as rounds, and
//                             price them
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

const std::vector<std::string>&
explanation_names();  // "plan", "prices", "stats"; "inputs" of input_ledger.h and the words of
                      // forecast_explanation.h

// One table for each distinct step of the run. Throws Error (usage) for any other name.
std::string explain(const TrainingPlan& training, std::string_view what);

}  // namespace lambcast
