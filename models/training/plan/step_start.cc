#include "models/training/plan/step_start.h"

namespace lambcast {

std::vector<StepPart> step_start(const TrainingPlan& training,
                                 const parallel::RankParameters& held) {
  const Parallelism& how = *training.parallelism;
  const bool kept = how.framework.keeps_buffers && how.sharding != parallel::Sharding::weights;
  if (!kept || model_of(training.optimizer()).layerwise) return {};
  std::vector<StepPart> parts;
  const auto moved = [&](const char* name, double bytes) {
    if (bytes > 0) parts.push_back({name, Category::optimizer, MemoryWork{bytes}});
  };
  moved("clear gradients", held.total() * how.gradient_bytes());
  const bool scaled = how.format != MatrixFormat::single && how.format != MatrixFormat::half;
  if (scaled && !training.model->adapters)
    moved("quantize weights", (held.divided - held.vocabulary + held.experts) *
                                  (how.fp8_gather ? 2 : 2 + 2 * bytes_per_element(how.format)));
  return parts;
}

}  // namespace lambcast
