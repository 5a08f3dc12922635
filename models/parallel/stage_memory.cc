#include "models/parallel/stage_memory.h"

#include "sim/base/check.h"

namespace lambcast::parallel {

std::vector<std::pair<std::string_view, Bytes>> StageMemory::parts() const {
  std::vector<std::pair<std::string_view, Bytes>> parts;
  const auto add = [&](std::string_view name, Bytes bytes) {
    if (bytes > Bytes()) parts.emplace_back(name, bytes);
  };
  add("weights", states.weights);
  add("gradients", states.gradients);
  add("optimizer", states.optimizer);
  add("activations", activations.kept);
  add("recomputed", activations.recomputed);
  return parts;
}

std::vector<StageMemory> memory_by_stage(const ModelShape& shape, const ParallelLayout& layout,
                                         const Pipeline& pipeline,
                                         std::span<const ChunkContent> contents,
                                         const ActivationSetting& setting, const StateBytes& bytes,
                                         Sharding sharding) {
  LAMBCAST_CHECK(setting.tp == layout.tp && setting.cp == layout.cp,
                 "tp {} and cp {} for {} and {}", setting.tp, setting.cp, layout.tp, layout.cp);
  const Replicas replicas{layout.dp * layout.cp, layout.expert_replicas()};
  const auto chunks = rank_parameters(shape, layout, pipeline, contents);
  const auto activations = activation_memory(shape, pipeline, contents, setting);
  std::vector<StageMemory> stages;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    RankParameters held;
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
      held += chunks[static_cast<std::size_t>(pipeline.position(stage, chunk))];
    stages.push_back({state_memory(held, bytes, sharding, replicas),
                      activations[static_cast<std::size_t>(stage)]});
  }
  return stages;
}

}  // namespace lambcast::parallel
