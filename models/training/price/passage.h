// Time of one micro batch forward and backward if no layout divides the model (pipeline_plan.h has
// the layouts):
//
//   measured   if the model or its blocks were timed on this GPU (models/device/compute.h), scaled
//              to the cluster's stack; in fp32 longer by the same factor as its kernels
//   kernels    else by shape, priced as a layout of one stage that divides nothing under DeepSpeed
//              (pass_price.h), if the GPU's rates are known and the model has blocks; no faster
//              than the host starts these kernels. If starting those of an unfused program would
//              take longer, the interval reaches that time, and no coverage is claimed
//   rate       else FLOPs, divided by the rate of another model or block, or by a share of the peak
//
// Options of the passes (pass_options.h) make a measured time longer or shorter by the ratio of the
// kernels' times with and without them; the interval grows by the part of the time that they
// change.
//
// Another program may have timed this model on this GPU. If that time lies outside the interval,
// the two sources disagree: the interval then reaches the time, and no coverage is claimed.
//
// Memory forecasts use the same attention kernel: a fused one keeps no scores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/device/compute.h"
#include "models/training/price/pass_price.h"

namespace lambcast {

// Time of the same passes on this GPU under a program other than the run's.
struct OtherTiming {
  std::string program;
  Provenance provenance;
  Duration passes;
  double uncertainty =
      0;  // half-width in logarithms, for a micro batch or length that was not timed
};

struct Passage {
  Duration forward, backward;
  ComputeWidth width;
  Basis basis = Basis::rate;
  std::vector<NumberRead> rests_on;
  // With Basis::kernels: further sources of the time of both passes.
  std::optional<ChunkReads> kernels;
  ExpertUse experts;
  // The timing farthest outside the interval, which `width` was enlarged to reach.
  std::optional<OtherTiming> contradicted_by = {};
};

// Returns the layout that divides nothing under DeepSpeed, with the run's pass options. It prices
// passes without a layout. Absent if the model has no blocks or the GPU no rates.
std::optional<Parallelism> undivided(const TrainingPlan& training);

// Returns the layout that prices the run's kernels: its own, or one that divides nothing if there
// is no better basis; else absent.
std::optional<Parallelism> priced_as(const TrainingPlan& training);

// Returns the layout that the user stated: the run's own, or one that divides nothing if the passes
// have options.
std::optional<Parallelism> stated_layout(const TrainingPlan& training);

// Returns the default attention kernel: the newest of the GPU. Windows of images, whose scores have
// a bias for each pair, have no fused kernel.
AttentionKernel usual_attention(const ModelShape& model, const Device& device);

// Returns DeepSpeed's default pass options; absent if undivided() is. A model whose passes were
// timed on this GPU has the attention of its description.
std::optional<PassOptions> usual_pass_options(const TrainingPlan& training);

// Whether attention keeps its scores for the backward pass. Depends on the attention kernel that
// passes are priced with, or else on the model's description.
bool keeps_scores(const TrainingPlan& training);

Passage passage(const TrainingPlan& training, std::int64_t seq_len, CollectiveCosts& costs);

}  // namespace lambcast
