// Options of the passes that do not divide the model, as set by --recompute, --attention, --fusion
// and similar flags.
//
// A layout that divides nothing, under DeepSpeed or in NVIDIA's recipes, is not a layout: its step
// is planned by step_plan.h, and its passes are priced (passage.h) and held in memory
// (pass_memory.h) with these options.
#pragma once

#include "models/training/plan/parallelism.h"

namespace lambcast {

struct PassOptions {
  parallel::Recompute recompute = parallel::Recompute::none;
  Repeated repeated = Repeated::nothing;
  AttentionKernel attention = AttentionKernel::flash2;
  bool fp8_attention = false, fp8_gates = false;
  Fusion fusion = Fusion::fused;
  bool eager_loss = false, fp32_gradients = false, captured = false;
  ExpertUse experts;

  bool operator==(const PassOptions&) const = default;
};

PassOptions pass_options_of(const Parallelism& how);
void set_pass_options(Parallelism& how, const PassOptions& options);

// Whether every rank runs the whole model, as with DeepSpeed's stages 0 to 2 and NVIDIA's recipes:
// only data parallelism, and states shared by all ranks or by none, on the GPU.
bool runs_whole_model(const Parallelism& how);

}  // namespace lambcast
