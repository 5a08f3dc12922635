// Arguments of the slices of a trace: the bytes or work of each operation. The times of the parts
// of a step are priced again from the cache in `costs`.
#pragma once

#include "models/training/plan/step_plan.h"
#include "models/training/plan/training_plan.h"
#include "models/training/price/collective_costs.h"
#include "sim/base/json.h"

namespace lambcast {

class TraceArgs {
 public:
  TraceArgs(const TrainingPlan& training, CollectiveCosts& costs)
      : training_(training), costs_(costs) {}

  Json of(const Work& work) const;
  // Returns the cost of one such call without contention.
  const CollectiveCost& cost(const Call& call) const;

 private:
  Json args(const PassWork& work) const;
  Json args(const StageWork& work) const;
  Json args(const MemoryWork& work) const;
  Json args(const KernelWork& work) const;
  Json args(const ProductWork& work) const;
  Json args(const HostCopy& work) const;
  Json args(const HostUpdate& work) const;
  Json args(const Call& call) const;
  Json args(const Wait& work) const;
  Json args(const Slowdown& work) const;

  const TrainingPlan& training_;
  CollectiveCosts& costs_;
};

// Rounds the bytes of a share of a message, which may be a fraction.
std::int64_t whole_bytes(double bytes);

}  // namespace lambcast
