// How a forecast came about, for people who want to check it: what a step does (plan), what each of
// its operations costs and how far that may be off, the calls inside passes one by one (prices),
// and what the program did to find out (stats):
//
//   operations, collectives   of the step; prices asked for, and how many were known by then
//   events, flows, solves     of the engine, of the flow model, and of its max-min rates
//   took                      wall time to plan, price, execute and account (the parts of a
//                             forecast), and of these, mostly of price
//     routes                  what way each flow takes over the topology
//     lowering                schedules of every algorithm in question written out as rounds,
//     priced
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
