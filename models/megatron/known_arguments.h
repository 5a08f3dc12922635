// Arguments of Megatron-LM, Megatron-DeepSpeed and torchrun that affect a step's cost, for finding
// misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

// Returns argument names without "--", with '-' for '_'.
const std::vector<std::string>& known_arguments();

// An argument that affects the cost and is not modelled, and a sentence on the assumption used
// instead.
struct NamedArgument {
  std::string_view name, sentence;
};

std::span<const NamedArgument> named_arguments();

// Arguments with which a run is refused, for any value.
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

// Returns whether an argument is read or refused.
bool bears_on_cost(std::string_view name);

}  // namespace lambcast::megatron
