// Training recipe, from any file or flag: optimizer, precision, sharding over ranks, compressed
// exchange and its first step. The values are independent of frameworks: decoders of their files
// (models/deepspeed/recipe.h) fill them in, and the plan of a step (models/training) reads them.
#pragma once

#include <cstdint>
#include <optional>

#include "models/optimizer/optimizer_model.h"
#include "models/recipe/curriculum.h"
#include "models/recipe/precision.h"
#include "sim/collectives/backend.h"

namespace lambcast {

// ZeRO (arXiv:1910.02054): data-parallel ranks share optimizer states (stage 1), gradients (2) and
// weights (3); and settings of the reduction of gradients.
struct Zero {
  int stage = 0;
  bool overlap = false;               // buckets are reduced during the backward pass
  bool reduce_scatter = true;         // buckets are flattened, the rank's share copied back
  std::int64_t bucket = 500'000'000;  // elements
  bool any_optimizer = false;         // accepted although not tested with ZeRO
  // Limits in stage 3, in elements: weights gathered ahead in one call; the largest tensor that
  // stays whole; all weights that are whole at once; the distance to the next use up to which
  // weights are kept.
  std::int64_t prefetch = 50'000'000, persistent = 100'000, live = 1'000'000'000,
               reuse = 1'000'000'000;

  bool operator==(const Zero&) const = default;
};

// Differences between releases of the engine that calls the optimizer.
struct Engine {
  bool checks_every_tensor =
      true;  // checks tensors for overflow one by one; else through the norm of all
  bool has_bf16_optimizer = true;
  bool wraps_bf16_as_fp16 =
      true;  // applies without ZeRO; else states are sharded and sums are fp32

  bool operator==(const Engine&) const = default;
};

struct Recipe {
  OptimizerType optimizer = OptimizerType::adam;
  Precision precision;
  Zero zero;
  Backend backend = Backend::nccl;  // library that exchanges compressed momenta
  OnebitSchedule onebit;
  Projection projection;         // GaLore's projection
  double weight_decay = 0.01;    // 0: none; default: that of published recipes that state no value
  double gradient_clipping = 0;  // 0: off
  std::optional<Curriculum> curriculum;  // curriculum of the sequence length
  Engine engine;

  bool operator==(const Recipe&) const = default;
};

// Returns the number of optimizer steps before the first compressed one, for onebit_adam and
// onebit_lamb.
//
// With fp16 or bf16 the wrapper's constructor makes a dry run that counts as a step, so the freeze
// follows step freeze_step - 1. Without a wrapper the dry run uses up the first real gradient, and
// the freeze follows step freeze_step. 0 and 1 act as 2.
std::int64_t warmup_steps(const Recipe& recipe);

}  // namespace lambcast
