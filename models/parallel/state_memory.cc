#include "models/parallel/state_memory.h"

#include "sim/base/check.h"

namespace lambcast::parallel {

std::string_view name_of(Sharding sharding) {
  constexpr std::string_view names[] = {"nothing", "optimizer states", "gradients", "weights"};
  return names[static_cast<std::size_t>(sharding)];
}

StateMemory state_memory(const RankParameters& parameters, const StateBytes& bytes,
                         Sharding sharding, const Replicas& replicas) {
  LAMBCAST_CHECK(replicas.dense >= 1 && replicas.experts >= 1, "{} and {} replicas", replicas.dense,
                 replicas.experts);
  const double whole = parameters.total();
  const double sharded = (parameters.divided + parameters.whole) / replicas.dense +
                         parameters.experts / replicas.experts;
  const auto held = [&](Sharding from) { return Bytes(sharding >= from ? sharded : whole); };
  const double frozen = (parameters.frozen - parameters.quantized) * bytes.frozen +
                        parameters.quantized * bytes.quantized;
  const int shards = sharding == Sharding::weights ? replicas.dense : 1;
  return {held(Sharding::weights) * bytes.weights + Bytes(frozen / shards),
          held(Sharding::gradients) * bytes.gradients,
          held(Sharding::optimizer) * bytes.optimizer()};
}

}  // namespace lambcast::parallel
