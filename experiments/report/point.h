// One row of results.csv with named fields, so that figures and verdict need no column titles.
// Empty fields are NaN (numbers) or empty (text): "does not apply".
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/report/name.h"
#include "models/optimizer/passes.h"
#include "models/training/run/step_parts.h"

namespace lambcast::report {

inline constexpr double absent = std::numeric_limits<double>::quiet_NaN();
// Compares numbers; two absent ones are equal.
inline bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct StepFigures {
  StepKind kind = StepKind::uniform;  // one of step_kinds
  double step_time_us = absent;
  double low_us = absent, high_us = absent;          // interval of the step time, if there is one
  std::array<double, step_parts.size()> parts_us{};  // an empty field counts as 0

  bool operator==(const StepFigures&) const = default;
};

// The steps of a row, one of each kind. Rows that differ only in the length of the run or the
// freeze step share them, since a sweep has millions of such rows.
class StepsByKind {
 public:
  StepsByKind() = default;
  StepsByKind(std::vector<StepFigures> figures)
      : shared_(figures.empty()
                    ? nullptr
                    : std::make_shared<const std::vector<StepFigures>>(std::move(figures))) {}

  bool empty() const { return shared_ == nullptr; }
  std::size_t size() const { return empty() ? 0 : shared_->size(); }
  const StepFigures* begin() const { return empty() ? nullptr : shared_->data(); }
  const StepFigures* end() const { return begin() + size(); }

 private:
  std::shared_ptr<const std::vector<StepFigures>> shared_;
};

// Reports traverse all points many times. The fields that most figures use come first, to share few
// cache lines.
struct Point {
  Name model, cluster, optimizer, backend;
  Name baseline;  // plain optimizer that `speedup` is relative to
  Name status;
  double gpus = absent, global_batch = absent, nodes = absent, gpus_per_node = absent,
         micro_batch = absent, grad_accum = absent, seq_len = absent, steps = absent,
         freeze_step = absent, nic_Gbps = absent;
  double run_time_s = absent, run_low_s = absent, run_high_s = absent, samples_per_s = absent,
         tokens_per_s = absent, speedup = absent, speedup_low = absent, speedup_high = absent,
         warmup_steps = absent;
  Name kernels, network, device, precision, zero_stage, overlap, symmetry, cuda_aware;
  Name settings;  // other keys that were set, except those in nic_Gbps and steps
  StepsByKind kinds;
  double fused_speedup = absent, fused_low = absent, fused_high = absent;  // with fused kernels
  Name cost_source;
  Name measure_first;  // the measurement that would narrow the speed-up's interval most
  Name findings;       // codes of findings, separated by spaces

  bool ok() const { return status == "ok"; }
  bool compressed() const { return !baseline.empty() && baseline != optimizer; }
  // Returns whether this is a plain optimizer with an exchange other than the uncompressed
  // all-reduce. Such a row has a name of its own: "adam with fp8".
  bool exchanges() const {
    return compressed() && optimizer.text().starts_with(baseline.text() + " with ");
  }
  // Share of the run spent in warm-up, at most 1 (freeze_step may lie past the last step).
  double freeze_share() const { return std::min(freeze_step / steps, 1.0); }
};

}  // namespace lambcast::report
