// Peak memory of a rank of each pipeline stage: states and activations together.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/parallel/activation_memory.h"
#include "models/parallel/state_memory.h"

namespace lambcast::parallel {

struct StageMemory {
  StateMemory states;
  StageActivations activations;

  Bytes total() const { return states.total() + activations.total(); }
  // Returns "weights", "gradients", "optimizer", "activations" and "recomputed", without those that
  // are zero.
  std::vector<std::pair<std::string_view, Bytes>> parts() const;
};

// `setting` must have the layout's tp and cp.
std::vector<StageMemory> memory_by_stage(const ModelShape& shape, const ParallelLayout& layout,
                                         const Pipeline& pipeline,
                                         std::span<const ChunkContent> contents,
                                         const ActivationSetting& setting, const StateBytes& bytes,
                                         Sharding sharding);

}  // namespace lambcast::parallel
