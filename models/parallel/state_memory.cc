#include "models/parallel/state_memory.h"

#include "sim/base/check.h"

namespace lambcast::parallel {

std::string_view name_of(Sharding sharding) {
  constexpr std::string_view names[] = {"nothing", "optimizer states", "gradients", "weights"};
  return names[static_cast<std::size_t>(sharding)];
}

StateMemory state_memory(const RankParameters& parameters, const StateBytes& bytes,
                         Sharding sharding, const Shards& shards) {
  LAMBCAST_CHECK(shards.dense >= 1 && shards.experts >= 1, "{} and {} shards", shards.dense,
                 shards.experts);
  const double whole = parameters.total();
  const double share =
      (parameters.divided + parameters.whole) / shards.dense + parameters.experts / shards.experts;
  const auto held = [&](Sharding from) { return Bytes(sharding >= from ? share : whole); };
  const double frozen = (parameters.frozen - parameters.quantized) * bytes.frozen +
                        parameters.quantized * bytes.quantized;
  const int divided_by = sharding == Sharding::weights ? shards.dense : 1;
  const Bytes updated = held(Sharding::optimizer) * bytes.updated;
  return {held(Sharding::weights) * bytes.weights + Bytes(frozen / divided_by),
          held(Sharding::gradients) * bytes.gradients,
          held(Sharding::gradients) * bytes.gradient_sums * bytes.updated,
          updated * bytes.gradient_copies,
          updated * bytes.master,
          updated * bytes.moments};
}

}  // namespace lambcast::parallel
