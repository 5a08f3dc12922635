// Decides when compression may begin: the criterion of the 1-bit Adam paper, per tensor. The
// variance has settled if it hardly changes over its memory of D = 1 / (1 - b2) steps:
//
//   threshold <= |v_k|_1 / |v_(k-D)|_1 <= 1 / threshold
//
// for tensors that hold `share` of all elements. Compression may not begin before `earliest`, the
// end of the learning rate's warm-up, nor before 2 D, while the variance still grows from zero. The
// paper has only the lower bound, over the whole model, with threshold 0.96. The upper bound
// excludes a variance that still grows.
//
// The variance may never settle. If each gradient is clipped, the variance of the whole model
// always sums to the square of the clipped norm, while the shares of the tensors keep moving
// (experiments/convergence). `latest` is the step at which the warm-up ends in any case, such as
// the 15 % of the run in published recipes; 0: none.
//
// Each measurement costs one reduction of the variance (cuda/lamb.h, variance_norms). Source: 1-bit
// Adam, arXiv:2102.02888 (number of warm-up steps needed).
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "kernels/layout.h"

namespace lambcast::reference {

struct FreezeOptions {
  double threshold = 0.96;
  double beta2 = 0.999;
  int interval = 1;  // steps between measurements
  int earliest = 1;
  int latest = 0;
  double share = 0.9;  // share of the elements
};

// Returns the number of measurements in D, the memory of the variance in steps.
int memory(const FreezeOptions& options);
std::size_t measurements(const FreezeOptions& options);
// Whether a norm has settled; `before` is the norm D steps ago.
bool settled(const FreezeOptions& options, double before, double now);
// Returns the earliest step at which compression may begin.
int earliest(const FreezeOptions& options);

struct FreezeMonitor {
  TensorLayout tensors;
  FreezeOptions options;
  std::deque<std::vector<double>> norms = {};  // norms of the last D steps, oldest first
  int frozen_at = 0;                           // step at which the criterion was met; 0: not yet
};

// Throws Error for options outside 0 < threshold < 1, 0 <= beta2 < 1, interval >= 1, 0 < share
// <= 1, latest >= 0.
FreezeMonitor freeze_monitor(const TensorLayout& tensors, const FreezeOptions& options);

// Whether a step must be measured; and whether, by its norms, compression may begin with the next
// step. Once true, the latter stays true. A tensor of zero variance counts as settled, but if all
// are zero, there has been no gradient yet.
bool measures(const FreezeMonitor& monitor, int step);
bool may_freeze(FreezeMonitor& monitor, int step, std::span<const double> norms);

// Returns |v|_1 of every tensor.
std::vector<double> variance_norms(std::span<const float> v, const TensorLayout& tensors);

}  // namespace lambcast::reference
