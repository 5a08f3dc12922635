// The candidates of a layout search (layout_search.h), as the what-if keys that a user would give.
//
//   tp            divisors of the GPUs of a node
//   cp            divisors that leave a rank at least 4,096 tokens of a sequence, the least in the
//                 published pre-training tables of validate/replay
//   pp            divisors of the remaining ranks, up to the number of layers
//   ep            divisors of the experts that divide the ranks of dp x cp
//   etp           as tp, or 1, if there are experts
//   interleave    divisors of the layers of a stage (including the ends for count_ends)
//   split         the framework's own, and its other ones that divide the layers differently:
//                 count_ends if layers and ends divide evenly, spread and fill if layers do not
//   micro_batch   divisors of the samples of a replica, up to 64
//   zero_stage, recompute, sequence_parallel, split
//                 as offered by the framework, in the table of layout_space.cc
//
// A key given by the user keeps its value. dp follows from tp, cp and pp, so a given dp excludes
// candidates with another one. The numbers of all candidates divide evenly;
// models/parallel/layout_rules.h decides whether the model can be divided that way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"

namespace lambcast {

struct LayoutCandidate {
  int tp = 1, cp = 1, pp = 1, ep = 1, interleave = 1;
  int etp = 0;  // tensor parallelism inside an expert; 0: same as tp
  int zero_stage = 0;
  std::int64_t micro_batch = 1;
  std::string recompute = "none";
  std::string sequence_parallel = "false";
  // Split of layers over stages. Empty: the framework's own, or the one given by the user.
  std::optional<parallel::SplitMethod> split{};

  // Returns whether both divide the model in the same way; the other members are settings.
  bool divides_as(const LayoutCandidate& other) const {
    return tp == other.tp && cp == other.cp && pp == other.pp && ep == other.ep;
  }
};

// The run whose layouts are searched.
struct LayoutSpace {
  WhatIf asked;  // including the defaults of a search
  // one replica per GPU and one sample at a time; has model, device, GPUs, sequence
  TrainingPlan base;
  std::int64_t global_batch = 0;
};

// Throws Error (usage) if no layout can run.
LayoutSpace layout_space(const WhatIf& asked, Catalog& catalog);

// Returns all candidates in a fixed order, simpler ones first.
std::vector<LayoutCandidate> layout_candidates(const LayoutSpace& space);

// Returns how the layers of a candidate are split over stages.
parallel::SplitMethod split_of(const LayoutSpace& space, const LayoutCandidate& candidate);

// Returns the what-if of one candidate, as accepted by `simulate`.
WhatIf with_layout(const LayoutSpace& space, const LayoutCandidate& candidate);

}  // namespace lambcast
