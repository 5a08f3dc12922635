// Training recipe, from any file or flag: optimizer, precision, sharing among ranks, compressed
// exchange and its first step. Neutral values; the decoders of frameworks' files
// (models/deepspeed/recipe.h) fill them in, the plan of a step (models/training) reads them.
#pragma once

#include <cstdint>
#include <optional>

#include "models/optimizer/optimizer_model.h"
#include "models/recipe/curriculum.h"
#include "models/recipe/precision.h"
#include "sim/collectives/backend.h"

namespace lambcast {

// ZeRO (arXiv:1910.02054): what data-parallel ranks share of optimizer states (stage 1), gradients
// (2) and weights (3), and how gradients are reduced then.
struct Zero {
  int stage = 0;
  bool overlap = false;               // buckets are reduced while the backward pass goes on
  bool reduce_scatter = true;         // a bucket is flattened, and the rank's share copied back
  std::int64_t bucket = 500'000'000;  // elements
  bool any_optimizer = false;         // taken though nobody tested it with ZeRO
  // Elements in stage 3: gathered ahead in one call, of the largest weights that stay whole, of all
  // that are whole at once, and until the next use of weights that are kept for it.
  std::int64_t prefetch = 50'000'000, persistent = 100'000, live = 1'000'000'000,
               reuse = 1'000'000'000;

  bool operator==(const Zero&) const = default;
};

// Differences among releases of the engine that runs the optimizer.
struct Engine {
  bool checks_every_tensor = true;  // for overflow, one by one; else the norm tells
  bool wraps_bf16_as_fp16 = true;   // without ZeRO; else it shards states and sums in fp32

  bool operator==(const Engine&) const = default;
};

struct Recipe {
  OptimizerType optimizer = OptimizerType::adam;
  Precision precision;
  Zero zero;
  Backend backend = Backend::nccl;  // of compressed momenta
  OnebitSchedule onebit;
  Projection projection;                 // of GaLore
  double weight_decay = 0.01;            // 0: none; as in published recipes where nothing is said
  double gradient_clipping = 0;          // 0: off
  std::optional<Curriculum> curriculum;  // of the sequence length
  Engine engine;

  bool operator==(const Recipe&) const = default;
};

// The optimizer steps before the first compressed one, for onebit_adam and onebit_lamb.
//
// With fp16 or bf16 the wrapper's constructor makes a dry run that counts as a step, so the freeze
// falls after step freeze_step - 1; without a wrapper the dry run eats the first real gradient and
// the freeze falls after step freeze_step. 0 and 1 act as 2.
std::int64_t warmup_steps(const Recipe& recipe);

}  // namespace lambcast
