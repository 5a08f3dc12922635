#include "models/training/averaged_gradients.h"

#include "models/parallel/rank_parameters.h"
#include "models/training/gradient_reduction.h"

namespace lambcast {

AveragedGradients averaged_gradients(const TrainingPlan& training) {
  AveragedGradients gradients;
  gradients.ranks = all_ranks(training);
  gradients.elements = static_cast<double>(parameters(*training.model));
  gradients.bytes = gradient_bytes(training);
  gradients.shared = training.shards() > 1;
  return gradients;
}

AveragedGradients averaged_gradients(const TrainingPlan& training, double elements,
                                     const ProcessGroup& ranks) {
  const Parallelism& how = *training.parallelism;
  AveragedGradients gradients;
  gradients.ranks = ranks;
  gradients.elements = elements;
  gradients.tensor_parallel = how.layout.tp;
  gradients.share = elements / parallel::sliced_parameters(*training.model, how.layout);
  gradients.bytes = gradient_bytes(training);
  gradients.shared = how.sharding != parallel::Sharding::none;
  return gradients;
}

}  // namespace lambcast
