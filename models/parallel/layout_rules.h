// Requirements of a layout on the model and on the run: rules without which programs refuse to
// start, and choices with unexpected costs.
//
// Sources: Megatron-LM training/arguments.py (validate_args), core/parallel_state.py and
// core/transformer/transformer_config.py.
//
// Codes of severity error: layout-world, layout-family, layout-heads, layout-kv-heads, layout-ffn,
// layout-schedule, layout-layers, layout-sequence, layout-experts. Warnings: layout-beyond-node,
// layout-uneven. Notes: layout-few-micro-batches, layout-no-effect, layout-repeated-keys.
#pragma once

#include <cstdint>
#include <vector>

#include "models/finding.h"
#include "models/parallel/parallel_layout.h"
#include "models/parallel/pipeline_schedule.h"
#include "models/parallel/stage_split.h"
#include "models/shape/shape.h"

namespace lambcast::parallel {

struct LayoutUse {
  int gpus = 1;
  int micro_batches = 1;     // micro batches of a pipeline in one step
  std::int64_t seq_len = 0;  // 0: samples have no length
  bool sequence_parallel = false;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  SplitMethod split = SplitMethod::even;
  bool exchanges_heads = false;  // context parallelism divides the heads of attention too
  bool one_mesh = false;         // experts and other layers share axes (Colossal-AI)
  // Experts with tensor parallelism need sequence parallelism (Megatron-LM validate_args).
  bool experts_need_parts = false;
};

std::vector<Finding> check(const ParallelLayout& layout, const ModelShape& shape,
                           const LayoutUse& use);

}  // namespace lambcast::parallel
