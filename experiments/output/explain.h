// Explains a forecast so that it can be checked: the operations of a step (plan), and the cost and
// interval of each operation and of the calls inside passes (prices). Also counts the work of the
// program (stats):
//
//   operations, collectives   operations of the step; cost queries and cache hits
//   events, flows, solves     of the engine, of the flow model, and of its max-min rates
//   took                      wall time to plan, price, execute and account (the parts of a
//                             forecast). Two shares of it, mostly within price:
//     routes                  finding the path of each flow over the topology
//     lowering                writing and pricing the schedules of all candidate algorithms
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Returns "plan", "prices", "stats", "inputs" (input_ledger.h) and the words of
// forecast_explanation.h.
const std::vector<std::string>& explanation_names();

// Explains each distinct step of the run as a table. Throws Error (usage) for an unknown name.
std::string explain(const TrainingPlan& training, std::string_view what);

}  // namespace lambcast
