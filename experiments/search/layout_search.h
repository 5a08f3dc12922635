// Finds the best layout for a model, cluster, number of GPUs and batch. Every candidate of
// layout_space.h passes through the checks of `simulate`, cheapest first:
//
//   legal    the samples divide over replicas and micro batches; models/parallel/layout_rules.h
//   run      resolve() accepts it, with the rules of the framework and the optimizer
//   memory   the fullest stage fits
//   step     run_step(), for candidates that can be among the ones shown
//            (models/training/price/least_step.h)
//
// A rejected candidate is counted under the first check that rejects it. The others are sorted by
// step time, equal ones by their order among the candidates. So the answer is the same for any
// number of threads.
//
// A layout that may not fit (models/training/memory/tight_memory.h) is marked. It ranks behind
// layouts that have room and may be as fast, by the interval of the ratio of their steps.
//
// Settings of one division of the model (tp, cp, ep, pp) are often within a percent of each other.
// So the best setting of each division is shown, unless all are requested.
//
// The step is that of the chosen optimizer; for 1-bit optimizers the compressed one. For plain
// optimizers a second search adds their 1-bit form: its step time in each layout found, and its own
// best layout. Compression changes the best layout: it saves data-parallel traffic, so it favours
// many replicas. Layouts that share weights are also forecast with ZeRO++'s messages: weights in
// int8, gradients in int4. Layouts that sum gradients over several replicas are also forecast with
// their exchange in fp8 (gradient_exchange.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/search/layout_space.h"
#include "models/training/memory/memory.h"
#include "models/training/run/error_source.h"
#include "models/training/run/step.h"

namespace lambcast {

class LayoutJudge;

// Parts of a step's time, as shares of it.
struct StepShares {
  double compute = 0;  // forward and backward passes, recomputation included
  // collectives between products, gathered weights, sends; exposed parts only
  double layers = 0;
  double gradients = 0;  // exposed collectives at the end of the step
  double bubble = 0;     // waiting for other stages
  double compression = 0;
  double optimizer = 0;
  // Returns the largest share except compute: "layers", "gradients", ...
  std::pair<std::string, double> largest_loss() const;
};

// Effect of compression on a layout.
struct CompressedLayout {
  std::string optimizer;               // with which
  std::optional<double> step_time_us;  // nothing: refused
  RatioInterval speedup = {};          // of the step
  std::string refused;                 // why, in words
};

struct FoundLayout {
  LayoutCandidate layout;
  WhatIf what_if;
  std::string split = "none";  // split of the layers over stages; "none" without a pipeline
  int dp = 1;
  std::int64_t micro_batches = 1;
  StepMetrics step;
  StepShares shares;
  TimeAtEnds time;  // time of a step
  Bytes peak;
  Bytes peak_high;     // high end of the peak's interval
  bool tight = false;  // the peak fits, but its high end does not
  double samples_per_s = 0, tokens_per_s = 0, tflops_per_gpu = 0;
  double utilization = 0;  // MFU (forecast_output.h)
  std::optional<CompressedLayout> compressed;
  std::optional<CompressedLayout> quantized;  // with ZeRO++, if weights are sharded
  std::optional<CompressedLayout> fp8;        // with gradients exchanged in 8 bits
};

struct RefusedLayouts {
  std::string reason;  // "memory", "batch", "layout-heads", ..., "refused"
  std::size_t count = 0;
  std::string example;  // error message of the first one
};

// Best layout of another framework, if the whole interval of its speed-up is above 1. The
// errors of kernels and collectives are taken as common to both frameworks.
struct FasterFramework {
  FoundLayout found;
  RatioInterval speedup;
};

struct LayoutSearch {
  LayoutSpace space;
  std::string optimizer;
  std::size_t candidates = 0, forecast = 0;
  std::vector<FoundLayout> best;
  std::vector<RefusedLayouts> refused;  // most frequent reason first
  std::string compressing;              // 1-bit form of a plain optimizer; empty if there is none
  // The best layout for the 1-bit form among those with several replicas, since only these have an
  // exchange to compress. Absent if none of them runs.
  std::optional<FoundLayout> best_compressed;
  std::optional<FasterFramework> faster;  // set only by add_faster_framework()
  bool complete = true;                   // false if the search was stopped
};

struct SearchOptions {
  int jobs = 1;
  std::size_t best = 10;
  bool every_setting = false;  // false: only the best setting of each division
  bool compression = true;     // whether to run the second search
  // Called with the number of candidates done and their total; returning false stops the search.
  std::function<bool(std::size_t, std::size_t)> progress;
};

// Searches all layouts. Throws Error (usage) if the question cannot run in any layout.
LayoutSearch search_layouts(const WhatIf& asked, const SearchOptions& options,
                            const std::shared_ptr<DescriptionTexts>& texts);

// Forecasts a candidate that runs.
FoundLayout found_layout(const LayoutSpace& space, const LayoutCandidate& candidate,
                         LayoutJudge& judge);

}  // namespace lambcast
