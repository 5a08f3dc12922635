#include "models/training/price/meeting_stages.h"

#include "models/training/price/nic_sharing.h"

namespace lambcast {

int MeetingStages::priced_with(const Call& call) const {
  return on_.network == NetworkModel::flow ? 1 : stages_among(plan_, call);
}

const CollectiveCost& MeetingStages::cost_among(const Call& call, int silent) const {
  CollectiveCosts::Setting setting = on_;
  setting.group = call.group;
  setting.group.siblings /= silent;
  setting.first_node = call.place.node;
  return costs_.cost(setting, call.backend, call.op, call.bytes, call.algorithm);
}

const CollectiveCost& MeetingStages::cost(const Call& call) const {
  const bool shared = on_.network == NetworkModel::flow;
  return cost_among(call, shared ? stages_among(plan_, call) : 1);
}

Duration MeetingStages::time(const Call& call) const {
  const bool errs = !only_ || *only_ == call_kind(call);
  const auto at_end = [&](const CollectiveCost& cost) {
    if (!errs) return cost.time;
    if (end_ == End::wires_low) return cost.interval.low;
    return end_ == End::wires_high ? cost.interval.high : cost.time;
  };
  const Duration all = at_end(cost(call));
  const int stages = priced_with(call);
  if (stages == 1 || meeting_ == 1) return all;
  const Duration one = at_end(cost_among(call, stages));
  return one.scaled(1 - meeting_) + all.scaled(meeting_);
}

double meeting_of(const PipelinePlan& plan, const PipelinePrice& price) {
  Duration all;
  for (const Duration stage : price.meeting) all += stage;
  if (all == Duration()) return 0;
  return std::min(1.0, all / (price.time.makespan * plan.pipeline.stages));
}

}  // namespace lambcast
