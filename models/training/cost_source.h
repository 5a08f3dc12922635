// Where the number behind each operation of a step comes from: what a forecast rests on is the
// union over the operations that it priced, so that no cost can be forgotten and none is listed
// that was not used.
#pragma once

#include <string>
#include <vector>

#include "models/training/step_plan.h"
#include "sim/base/provenance.h"

namespace lambcast {

// One cost that enters the forecast and where its number comes from.
struct CostSource {
  std::string cost;
  Provenance provenance;
};

// The costs that price() reads for this operation.
std::vector<CostSource> sources_of(const PlanOp& op, const TrainingPlan& training,
                                   std::int64_t seq_len);

// The costs of a whole plan, each once, in the order they first occur.
void add_sources(const StepPlan& plan, const TrainingPlan& training,
                 std::vector<CostSource>& sources);

// The weakest kind among the sources: what they rest on together.
Kind weakest(const std::vector<CostSource>& sources);

}  // namespace lambcast
