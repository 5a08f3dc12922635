// Weights, gradients and optimizer state of a rank, and their division over replicas by sharding.
//
// Bytes per parameter (Megatron-LM, docs on the distributed optimizer; Rajbhandari et al. 2020,
// section 3.1), with d replicas:
//                                       whole   sharded::optimizer
//   fp16, 16-bit gradients (Megatron)   20      4 + 16/d   (the optimizer's own fp32 gradients)
//   bf16, fp32 gradients (Megatron)     18      6 + 12/d
//   fp32                                16      8 + 8/d
//   fp16 (DeepSpeed)                    16      4 + 12/d
//   bf16 (DeepSpeed's BF16_Optimizer)   20      8 + 12/d   (bf16 gradients and their fp32 sums)
// Further sharding divides gradients (ZeRO stage 2: 2 + 14/d instead of 4 + 12/d) and weights
// (stage 3: 16/d). Adam and LAMB have two fp32 moments, 8 bytes; momentum SGD one.
#pragma once

#include <string_view>

#include "models/parallel/rank_parameters.h"
#include "sim/base/units.h"

namespace lambcast::parallel {

// Bytes per parameter of each kind of state.
struct StateBytes {
  double weights = 2;
  double gradients = 2;        // of a micro batch, or accumulated over micro batches
  double gradient_sums = 0;    // fp32 sums in addition to a micro batch's 16-bit gradients
  double gradient_copies = 0;  // the optimizer's fp32 copy of 16-bit gradients
  double master = 4;           // fp32 weights; 0 if the weights are fp32
  double moments = 8;
  double frozen = 2;     // weights without gradients
  double quantized = 2;  // frozen matrices of the blocks, if quantized
  // Share of the parameters with gradients that the optimizer updates: BERT's pooler has gradients,
  // but pre-training does not use its output.
  double updated = 1;
};

// Bytes per element of Adam's states, which can be narrower than fp32 (Transformer Engine's
// FusedAdam, Megatron-LM --use-precision-aware-optimizer). Master weights in 2 bytes are fp16, or
// the half of an fp32 value that the bf16 weight lacks. Scales of fp8 states are not counted.
struct StateTypes {
  double momentum = 4, variance = 4, master = 4;

  bool are_usual() const { return *this == StateTypes{}; }
  // Returns the bytes per element by which an update's traffic is smaller than with fp32 states.
  double saved_traffic() const { return 2 * (12 - momentum - variance - master); }
  bool operator==(const StateTypes&) const = default;
};

inline constexpr StateBytes fp16_copied_gradients = {.gradient_copies = 4};
inline constexpr StateBytes bf16_fp32_gradients = {.gradients = 4};
inline constexpr StateBytes fp16_states = {};
inline constexpr StateBytes bf16_summed_gradients = {.gradient_sums = 4};
inline constexpr StateBytes fp32_states = {.weights = 4, .gradients = 4, .master = 0};

// States that the replicas divide, each including the previous ones: ZeRO stages 0 to 3.
enum class Sharding { none, optimizer, gradients, weights };
// Returns what is divided: "nothing", "optimizer states", "gradients", "weights".
std::string_view name_of(Sharding sharding);

// Number of ranks that share the states of the same parameters.
struct Shards {
  int dense = 1;
  int experts = 1;
};

struct StateMemory {
  Bytes weights, gradients, gradient_sums, gradient_copies, master, moments;
  Bytes total() const {
    return weights + gradients + gradient_sums + gradient_copies + master + moments;
  }
};

StateMemory state_memory(const RankParameters& parameters, const StateBytes& bytes,
                         Sharding sharding, const Shards& shards);

}  // namespace lambcast::parallel
