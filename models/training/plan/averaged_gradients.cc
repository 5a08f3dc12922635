#include "models/training/plan/averaged_gradients.h"

#include "models/training/plan/exchange_levels.h"
#include "models/training/plan/gradient_reduction.h"

namespace lambcast {

AveragedGradients AveragedGradients::part(double of_all) const {
  AveragedGradients gradients = *this;
  gradients.elements *= of_all;
  gradients.share *= of_all;
  gradients.expert_share *= of_all;
  return gradients;
}

AveragedGradients averaged_gradients(const TrainingPlan& training) {
  AveragedGradients gradients;
  gradients.ranks = all_ranks(training);
  gradients.elements = static_cast<double>(parameters(*training.model));
  gradients.bytes = gradient_bytes(training);
  gradients.shared = training.shards() > 1;
  return gradients;
}

AveragedGradients averaged_gradients(const TrainingPlan& training,
                                     const parallel::RankParameters& held,
                                     const ProcessGroup& ranks) {
  const Parallelism& how = *training.parallelism;
  AveragedGradients gradients;
  gradients.ranks = ranks;
  gradients.elements = held.total();
  gradients.tensor_parallel = how.layout.tp;
  gradients.expert_tensor_parallel = how.layout.expert_tp();
  const parallel::RankParameters all = parallel::sliced_parameters(*training.model, how.layout);
  gradients.share = (held.divided + held.whole) / (all.divided + all.whole);
  gradients.expert_share = all.experts > 0 ? held.experts / all.experts : 0;
  gradients.bytes = gradient_bytes(training);
  gradients.shared = how.sharding != parallel::Sharding::none;
  return gradients;
}

AveragedGradients exchanged_gradients(const Exchange& exchange, AveragedGradients gradients) {
  const ExchangeLevels levels = levels_of(exchange, gradients.ranks);
  gradients.ranks = levels.between;
  return levels.is_sharded() ? gradients.part(1.0 / levels.shards) : gradients;
}

}  // namespace lambcast
