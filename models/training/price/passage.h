// How long one micro batch takes forward and backward where no layout divides the model
// (pipeline_plan.h has the others):
//
//   measured   if the model or its blocks were timed on this GPU (models/device/compute.h), scaled
//              as the cluster's stack says; in fp32 as much longer as its kernels are
//   kernels    else by shape, as a layout of one stage that divides nothing is priced under
//              DeepSpeed (pass_price.h), where the GPU's rates are known and the model has blocks;
//              no faster than the host starts these kernels. Where it would take longer to start
//              those of an unfused program, so long may the passes take, and no share is claimed
//   rate       else FLOPs, over what another model or block reached or over a share of the peak
//
// A GPU may have been timed with this model by another program. Where that time lies outside the
// interval, two sources disagree: the interval then reaches the time, and no share is claimed.
//
// Which attention that is, memory asks here too: one in one kernel keeps no scores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/device/compute.h"
#include "models/training/price/pass_price.h"

namespace lambcast {

// Time of the same passes on this GPU by a program other than the run's.
struct OtherTiming {
  std::string program;
  Provenance provenance;
  Duration passes;
  double uncertainty = 0;  // in logarithms, of a micro batch or length that was not timed itself
};

struct Passage {
  Duration forward, backward;
  ComputeWidth width;
  Basis basis = Basis::rate;
  std::vector<NumberRead> rests_on;
  // By kernels: what both rest on beside that.
  std::optional<ChunkReads> kernels;
  ExpertUse experts;
  // The timing farthest outside the interval, to which `width` then reaches.
  std::optional<OtherTiming> contradicted_by = {};
};

// DeepSpeed's layout that divides nothing, as which passes are priced and held where nobody asks
// for one; none where the model has no blocks or the GPU no rates.
std::optional<Parallelism> undivided(const TrainingPlan& training);

// What a run is priced by kernel as: its own layout, or where nothing better is known one that
// divides nothing; else none.
std::optional<Parallelism> priced_as(const TrainingPlan& training);

// Where nobody asks for a kernel: the newest of the GPU; of windows of images, whose scores have a
// bias for each pair, none of one kernel.
AttentionKernel usual_attention(const ModelShape& model, const Device& device);

// Whether attention keeps its scores for the backward pass: as the kernel does that passes are
// priced with, else as the description of the model says.
bool keeps_scores(const TrainingPlan& training);

Passage passage(const TrainingPlan& training, std::int64_t seq_len, CollectiveCosts& costs);

}  // namespace lambcast
