// Times of the collectives of a pipeline's passes if several stages lie on one node and share its
// NICs.
//
// A call of one stage takes T_1 if the other s - 1 stages of the node are silent, and T_s if all of
// them make the same call at once (`siblings` of ProcessGroup). A stage is in such a call for the
// share u of the step, so that a call meets (s - 1) u calls of other stages on average:
//
//   T = T_1 + (T_s - T_1) u,    u = mean over stages of (calls of a stage in a step) / makespan
//
// T and u depend on each other. The pipeline is priced with u = 1 first, and again with the u that
// results. If calls fill the NICs, m micro batches and p stages on every node give
//
//   makespan = W (1 + (p - 1) / (p m)),   W = the time for which all calls keep a NIC busy
//
// where the second term is the calls of the first stages while the pipeline fills.
//
// Not modelled: which stages issue calls at the same time. The shared network (shared_step.h) finds
// this itself, so its calls are priced with the siblings of their own stage only.
#pragma once

#include <algorithm>
#include <optional>

#include "models/training/price/pass_price.h"

namespace lambcast {

class MeetingStages {
 public:
  // `on` is the cluster and its network model; the group is taken from each call. `meeting` is u.
  // With `only`, collectives of other kinds take their expected times at the ends for wires.
  MeetingStages(const PipelinePlan& plan, const CollectiveCosts::Setting& on,
                CollectiveCosts& costs, End end, double meeting,
                std::optional<CallKind> only = std::nullopt)
      : plan_(plan), on_(on), costs_(costs), end_(end), meeting_(meeting), only_(only) {}

  // Returns the cost if all `priced_with` stages make the call at once.
  const CollectiveCost& cost(const Call& call) const;
  int priced_with(const Call& call) const;
  Duration time(const Call& call) const;

 private:
  const CollectiveCost& cost_among(const Call& call, int silent) const;

  const PipelinePlan& plan_;
  CollectiveCosts::Setting on_;
  CollectiveCosts& costs_;
  End end_;
  double meeting_;
  std::optional<CallKind> only_;
};

// Returns u of a priced pipeline.
double meeting_of(const PipelinePlan& plan, const PipelinePrice& price);

// Returns `price(u)` for the u that results from this price. Three rounds come within 2 % of the
// fixed point; their number is fixed, so that the answer changes continuously.
template <typename PriceWith>
PipelinePrice with_stages_meeting(const PipelinePlan& plan, const PriceWith& price_with) {
  constexpr int rounds = 3;
  PipelinePrice price = price_with(1.0);
  for (int round = 0; round < rounds; ++round) {
    const double meeting = meeting_of(plan, price);
    if (meeting == 0) break;
    price = price_with(meeting);
  }
  return price;
}

}  // namespace lambcast
