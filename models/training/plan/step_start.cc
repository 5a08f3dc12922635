#include "models/training/plan/step_start.h"

namespace lambcast {

std::vector<StepPart> step_start(const Parallelism& how, OptimizerType optimizer,
                                 bool with_adapters, const parallel::RankParameters& held) {
  const bool kept = how.framework.keeps_buffers && how.sharding != parallel::Sharding::weights;
  if (!kept || model_of(optimizer).layerwise) return {};
  std::vector<StepPart> parts;
  const auto moved = [&](const char* name, double bytes) {
    if (bytes > 0) parts.push_back({name, Category::optimizer, MemoryWork{bytes}});
  };
  moved("clear gradients", held.total() * how.gradient_bytes());
  const bool scaled = how.format != MatrixFormat::single && how.format != MatrixFormat::half;
  if (scaled && !with_adapters)
    moved("quantize weights", (held.divided - held.vocabulary + held.experts) *
                                  (how.fp8_gather ? 2 : 2 + 2 * bytes_per_element(how.format)));
  return parts;
}

}  // namespace lambcast
