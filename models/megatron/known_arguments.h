// Arguments of Megatron-LM, Megatron-DeepSpeed and torchrun that bear on a step's cost, so that a
// slip in a name is found.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

// Without "--", with '-' for '_'.
const std::vector<std::string>& known_arguments();

// An argument that bears on the cost and is not modelled, with what is taken instead.
struct NamedArgument {
  std::string_view name, sentence;
};

std::span<const NamedArgument> named_arguments();

// Arguments that a run is refused for, with any value.
inline constexpr const char* unmodelled_arguments[] = {"pipeline-model-parallel-split-rank",
                                                       "decoder-first-pipeline-num-layers",
                                                       "decoder-last-pipeline-num-layers",
                                                       "pipeline-model-parallel-layout",
                                                       "hierarchical-context-parallel-sizes",
                                                       "multi-latent-attention",
                                                       "mtp-num-layers",
                                                       "moe-shared-expert-intermediate-size",
                                                       "moe-layer-freq",
                                                       "cpu-offloading",
                                                       "optimizer-cpu-offload",
                                                       "hybrid-attention-ratio"};

// Whether it is read or refused.
bool bears_on_cost(std::string_view name);

}  // namespace lambcast::megatron
