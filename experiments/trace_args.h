// What an operation moves or computes, as the args of its slice in a trace. How long the pieces of
// a step take is priced again from what `costs` remembers.
#pragma once

#include <nlohmann/json.hpp>

#include "models/training/collective_costs.h"
#include "models/training/step_plan.h"
#include "models/training/training_plan.h"

namespace lambcast {

class TraceArgs {
 public:
  TraceArgs(const TrainingPlan& training, CollectiveCosts& costs)
      : training_(training), costs_(costs) {}

  nlohmann::ordered_json of(const Work& work) const;
  // And how long one takes alone.
  const CollectiveCost& cost(const Call& call) const;

 private:
  nlohmann::ordered_json args(const PassWork& work) const;
  nlohmann::ordered_json args(const StageWork& work) const;
  nlohmann::ordered_json args(const MemoryWork& work) const;
  nlohmann::ordered_json args(const KernelWork& work) const;
  nlohmann::ordered_json args(const ProductWork& work) const;
  nlohmann::ordered_json args(const HostCopy& work) const;
  nlohmann::ordered_json args(const HostUpdate& work) const;
  nlohmann::ordered_json args(const Call& call) const;
  nlohmann::ordered_json args(const Wait& work) const;
  nlohmann::ordered_json args(const Slowdown& work) const;

  const TrainingPlan& training_;
  CollectiveCosts& costs_;
};

// Shares of a message may be no whole bytes; what is shown is.
std::int64_t whole_bytes(double bytes);

}  // namespace lambcast
