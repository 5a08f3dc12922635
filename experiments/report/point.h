// One row of results.csv with names, so that figures and verdict speak of GPUs and freeze shares,
// not of columns. Empty fields are NaN (numbers) or empty (text): "does not apply".
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

#include "experiments/report/name.h"
#include "models/optimizer/passes.h"
#include "models/training/step_parts.h"

namespace lambcast::report {

inline constexpr double absent = std::numeric_limits<double>::quiet_NaN();

struct StageFigures {
  StepKind kind = StepKind::uniform;  // of stage_kinds
  double step_time_us = absent;
  std::array<double, step_parts.size()> parts_us{};  // an empty field counts as 0
};

struct Point {
  Name model, cluster, optimizer, backend, cuda_aware, kernels, network, device, precision,
      zero_stage, overlap, symmetry;
  Name settings;  // other keys that were set, but for those that nic_Gbps and steps say
  double nodes = absent, gpus_per_node = absent, gpus = absent, micro_batch = absent,
         grad_accum = absent, global_batch = absent, seq_len = absent, steps = absent,
         freeze_step = absent, nic_Gbps = absent;
  std::vector<StageFigures> stages;
  double run_time_s = absent, samples_per_s = absent, tokens_per_s = absent, speedup = absent,
         speedup_low = absent, speedup_high = absent, warmup_steps = absent;
  double fused_speedup = absent, fused_low = absent, fused_high = absent;  // with fused kernels
  Name baseline;  // the plain optimizer that `speedup` compares with
  Name status, cost_source;
  Name measure_first;  // what would narrow the speed-up's interval most
  Name findings;       // codes, with spaces between

  bool ok() const { return status == "ok"; }
  bool compressed() const { return !baseline.empty() && baseline != optimizer; }
  // Share of the run spent in warm-up, at most 1 (freeze_step may lie past the last step).
  double freeze_share() const { return std::min(freeze_step / steps, 1.0); }
};

}  // namespace lambcast::report
