// When compression may begin: the criterion of the 1-bit Adam paper, per tensor. The variance has
// settled when it changes no more over the time it remembers, D = 1 / (1 - b2) steps:
//
//   threshold <= |v_k|_1 / |v_(k-D)|_1 <= 1 / threshold
//
// for tensors that hold `share` of all elements. It may not begin before `earliest`, the end of the
// learning rate's warm-up, nor before 2 D, while the variance still grows from zero. The paper has
// the lower bound only, over the whole model, with threshold 0.96. The upper bound excludes a
// variance that still grows.
//
// The variance may never settle. If each gradient is clipped, the variance of the whole model
// always sums to the square of the clipped norm, while the shares of the tensors keep moving
// (experiments/convergence). `latest` is the step at which the warm-up ends in any case, such as
// the 15 % of the run in published recipes. 0: none.
//
// Its cost is one reduction of the variance per measurement (cuda/lamb.h, variance_norms).
// Source: 1-bit Adam, arXiv:2102.02888 (how many steps of warm-up are needed).
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
  double share = 0.9;  // of the elements
};

// Steps that the variance remembers, D, and the measurements that lie that far apart.
int memory(const FreezeOptions& options);
std::size_t measurements(const FreezeOptions& options);
// Whether a norm has settled, `before` being that of D steps ago.
bool settled(const FreezeOptions& options, double before, double now);
// No earlier step can be the one.
int earliest(const FreezeOptions& options);

struct FreezeMonitor {
  TensorLayout tensors;
  FreezeOptions options;
  std::deque<std::vector<double>> norms = {};  // of the last D steps, the oldest first
  int frozen_at = 0;                           // the step that said so; 0: none has
};

// Throws Error for options outside 0 < threshold < 1, 0 <= beta2 < 1, interval >= 1, 0 < share
// <= 1, latest >= 0.
FreezeMonitor freeze_monitor(const TensorLayout& tensors, const FreezeOptions& options);

// Whether a step is to be measured, and what its norms say: that compression may begin with the
// next step. Once it has said so it stays so. A tensor of zero variance counts as settled, but
// where all are zero no gradient has come yet.
bool measures(const FreezeMonitor& monitor, int step);
bool may_freeze(FreezeMonitor& monitor, int step, std::span<const double> norms);

// |v|_1 of every tensor.
std::vector<double> variance_norms(std::span<const float> v, const TensorLayout& tensors);

}  // namespace lambcast::reference
